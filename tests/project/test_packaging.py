"""Declared packages and locked requirements match the sources, and the wheel installs one top-level package."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.project.release_check import ROOT, ReleaseError, check_version, list_broken_links, list_extras

LINKED = ("agents", "prompts", "storage", "tui")


def load_pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def packages_on_disk() -> set[str]:
    """Dotted names of all packages in the sources."""
    roots = {"auditor": ROOT / "auditor", **{f"auditor.{n}": ROOT / n for n in LINKED}}
    package_names = set()
    for name, root in roots.items():
        for init in root.rglob("__init__.py"):
            parts = init.parent.relative_to(root).parts
            if not (name == "auditor" and parts and parts[0] in LINKED):
                package_names.add(".".join([name, *parts]))
    return package_names


def test_every_package_is_declared() -> None:
    assert set(load_pyproject()["tool"]["setuptools"]["packages"]) == packages_on_disk()


@pytest.mark.parametrize("name", LINKED)
def test_the_root_folders_are_linked_into_the_package(name: str) -> None:
    link = ROOT / "auditor" / name
    assert link.is_symlink()
    assert link.readlink() == Path("..") / name
    assert load_pyproject()["tool"]["setuptools"]["package-dir"][f"auditor.{name}"] == name


def test_tested_versions_are_locked() -> None:
    locked = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").split() if "==" in line
    )
    assert locked["torch"] == "2.13.0"
    for name in ("litellm", "langgraph", "instructor", "sqlmodel", "textual", "pydantic", "sentence-transformers"):
        assert name in {n.lower() for n in locked}


LOCKS = {"requirements.lock": ("all",), "requirements-dev.lock": ("all", "dev")}
"""Extras that each file of locked requirements has."""


def locked_requirements(name: str) -> dict[str, tuple[str, int]]:
    """Version and number of hashes of each requirement in a lock, by canonical name."""
    locked: dict[str, tuple[str, int]] = {}
    for entry in re.split(r"\n(?=\w)", (ROOT / name).read_text(encoding="utf-8")):
        if pinned := re.match(r"([\w.-]+)==([^\s;]+)", entry):
            hashes = re.findall(r"--hash=sha256:[0-9a-f]{64}\b", entry)
            locked[canonicalize_name(pinned[1])] = (pinned[2], len(hashes))
    return locked


@pytest.mark.parametrize(("name", "extras"), LOCKS.items())
def test_a_lock_has_hashes_but_of_torch_and_the_tested_versions(name: str, extras: tuple[str, ...]) -> None:
    locked = locked_requirements(name)
    assert len(locked) > 100
    assert {name for name, (_, hashes) in locked.items() if not hashes} == set()
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    tested = {str(canonicalize_name(name)): version for name, _, version in (line.partition("==") for line in lines)}
    differing_versions = {n: (v, tested[n]) for n, (v, _) in locked.items() if n in tested and tested[n] != v}
    assert differing_versions == {}, "give `make lock`"
    direct = [r for r in declared_requirements(extras) if r.name != "torch"]
    missing = {r.name for r in direct if canonicalize_name(r.name) not in locked}
    assert missing == set(), "give `make lock`"
    outside_range = {r.name for r in direct if not r.specifier.contains(locked[canonicalize_name(r.name)][0])}
    assert outside_range == set(), "give `make lock`"


def test_make_installs_only_files_whose_hash_is_locked() -> None:
    """Torch is apart, since its builds differ by machine; so are tools that no user installs."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("installed", "dev"):
        [recipe] = re.findall(rf"^\$\(VENV\)/\.{target}: .*\n((?:\t.*\n)+)", makefile, flags=re.MULTILINE)
        installs = re.findall(r"install (.*)", recipe)
        assert len(installs) == 2
        assert all(
            line.startswith(("--no-deps --require-hashes -r ", "--no-deps --no-build-isolation -e ."))
            for line in installs
        )


def test_the_extra_all_has_every_extra_but_those_that_are_large_or_for_other_programs() -> None:
    extras = load_pyproject()["project"]["optional-dependencies"]
    [all_extra] = [Requirement(r) for r in extras["all"]]
    assert set(extras) - all_extra.extras == {"all", "dev", "docs", "inspect", "mlflow", "ray", "tune", "wandb"}


def declared_requirements(extras: tuple[str, ...]) -> list[Requirement]:
    """Declared requirements of the package and of extras; `all` stands for those that it names."""
    project_table = load_pyproject()["project"]
    optional = project_table["optional-dependencies"]
    [all_extra] = [Requirement(r) for r in optional["all"]]
    names = [*(all_extra.extras if "all" in extras else ()), *(name for name in extras if name != "all")]
    parts = [project_table["dependencies"], *(optional[name] for name in names)]
    return [Requirement(r) for r in chain.from_iterable(parts)]


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_package_index(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r"://|--(extra-)?index|--find-links|--trusted", text)


@pytest.mark.slow
def test_the_wheel_holds_one_name_and_all_data(tmp_path: Path) -> None:
    process = subprocess.run(
        [
            sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path),
            str(ROOT),
        ],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    [wheel] = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {n.split("/")[0] for n in names if ".dist-info" not in n} == {"auditor"}
    assert len(names) == len(set(names))
    for required_file in (
        "auditor/py.typed",
        "auditor/cli/starter.toml",
        "auditor/prompts/en/review.md",
        "auditor/reports/charts/data/countries-110m.json",
        "auditor/reports/charts/data/countries-110m.LICENSE",
        "auditor/reports/charts/data/country-paths.json",
        "auditor/reports/render/page.css",
        "auditor/reports/render/search.css",
        "auditor/reports/render/search.js",
        "auditor/surveys/data/wvs7-sample.csv",
        "auditor/surveys/data/pew2013-sample.survey.toml",
        "auditor/agents/graph.py",
        "auditor/storage/schema.py",
        "auditor/storage/migrations/env.py",
        "auditor/storage/migrations/script.py.mako",
        "auditor/storage/migrations/versions/v0024_tables.py",
        "auditor/tui/app.py",
    ):
        assert required_file in names


METADATA = Parser().parsestr(
    """Version: 1.0.0
Provides-Extra: small
Provides-Extra: large
Provides-Extra: all
Requires-Dist: numpy>=2
Requires-Dist: polars>=1.30; extra == "small"
Requires-Dist: torch>=2.6; extra == "large"
Requires-Dist: auditor[large,small]; extra == "all"
"""
)


def test_the_changelog_begins_with_the_version_and_its_date() -> None:
    check_version("1.0.0", METADATA, "# Changelog\n\n## [1.0.0] - 2026-01-02\n\n## [0.9.0]\n")
    for changelog in ("## [Unreleased]\n\n## [1.0.0] - 2026-01-02", "## [1.0.0]\n", ""):
        with pytest.raises(ReleaseError, match=r"## \[1\.0\.0\] - DATE"):
            check_version("1.0.0", METADATA, changelog)
    with pytest.raises(ReleaseError, match=r"the wheel has version 1\.0\.0"):
        check_version("1.1.0", METADATA, "## [1.1.0] - 2026-01-02")


def test_links_and_pictures_without_a_file_are_named() -> None:
    readme = '[a](docs/a.md#x) ![p](docs/p.png "title") [web](https://example.org/b) [here](#c) <img src="q.svg">'
    assert list_broken_links(readme, {"docs/a.md"}) == ["docs/p.png", "q.svg"]
    assert list_broken_links((ROOT / "README.md").read_text(encoding="utf-8"), set())


def test_extras_with_torch_are_installed_on_request_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(list_extras(METADATA, [])) == ["small"]
    assert "EXTRAS=large" in capsys.readouterr().out
    assert list(list_extras(METADATA, ["large"])) == ["large"]
    with pytest.raises(ReleaseError, match="no extra huge"):
        list(list_extras(METADATA, ["huge"]))
