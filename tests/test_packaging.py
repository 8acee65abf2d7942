"""What is declared is what is on disk, and a wheel installs one top-level name."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
LINKED = ("agents", "prompts", "storage", "tui")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def packages_on_disk() -> set[str]:
    roots = {"auditor": ROOT / "auditor", **{f"auditor.{n}": ROOT / n for n in LINKED}}
    found = set()
    for name, root in roots.items():
        for init in root.rglob("__init__.py"):
            parts = init.parent.relative_to(root).parts
            if not (name == "auditor" and parts and parts[0] in LINKED):
                found.add(".".join([name, *parts]))
    return found


def test_every_package_is_declared() -> None:
    assert set(project()["tool"]["setuptools"]["packages"]) == packages_on_disk()


@pytest.mark.parametrize("name", LINKED)
def test_the_root_folders_are_linked_into_the_package(name: str) -> None:
    link = ROOT / "auditor" / name
    assert link.is_symlink()
    assert link.readlink() == Path("..") / name
    assert project()["tool"]["setuptools"]["package-dir"][f"auditor.{name}"] == name


def test_tested_versions_are_locked() -> None:
    locked = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").split() if "==" in line
    )
    assert locked["torch"] == "2.13.0"
    for name in ("litellm", "langgraph", "instructor", "sqlmodel", "textual", "pydantic", "sentence-transformers"):
        assert name in {n.lower() for n in locked}


@pytest.mark.slow
def test_the_wheel_holds_one_name_and_all_data(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            str(tmp_path),
            str(ROOT),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    [wheel] = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {n.split("/")[0] for n in names if ".dist-info" not in n} == {"auditor"}
    assert len(names) == len(set(names))
    for wanted in (
        "auditor/py.typed",
        "auditor/cli/starter.toml",
        "auditor/prompts/en/review.md",
        "auditor/surveys/data/wvs7-sample.csv",
        "auditor/surveys/data/pew2013-sample.survey.toml",
        "auditor/agents/graph.py",
        "auditor/storage/tables.py",
        "auditor/tui/app.py",
    ):
        assert wanted in names
    assert any(n.startswith("auditor/reports/templates/") for n in names)
