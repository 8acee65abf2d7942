"""Every command, configuration and program of README and docs is run in the folder of somebody who follows them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.run import AuditHandle
from tests.support.audit_configs import KEY, KEY_VARIABLE
from tests.support.cli_runner import run
from tests.support.docs_blocks import UNHEARD, Block, blocks, configs, supply
from tests.support.docs_workspace import ROOT, Letters, Shown, furnish, script, scripted, shown
from tests.support.fake_server import FakeServer

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = {page.name: list(shown(page)) for page in PAGES}
CONFIGS = {page.name: list(blocks(page, "toml")) for page in PAGES}
PROGRAMS = [block for page in PAGES for block in blocks(page, "python")]
FINE = {"check": {0, 3, 4}, "surveys check": {0, 1}}
"""Exit codes of commands that tell something by them; 0 of all others."""


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The folder as it is before any page is followed, and the server's address."""
    folder = tmp_path_factory.mktemp("reader")
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    patch.setenv(KEY_VARIABLE, KEY)
    patch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1")
    patch.delenv("AUDITOR_STORAGE", raising=False)
    patch.setattr("auditor.models.embeddings.load_encoder", lambda name: Letters())
    patch.setattr("auditor.models.embeddings.check_encoder", lambda name: None)
    with FakeServer(script) as server:
        furnish(folder, server.url)
        yield folder, server.url
    patch.undo()


@pytest.mark.slow
@pytest.mark.parametrize("page", [name for name, found in COMMANDS.items() if any(not c.why_not for c in found)])
def test_the_commands_of_a_page_run(
    furnished: tuple[Path, str], page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = shutil.copytree(furnished[0], tmp_path / "here")
    monkeypatch.chdir(here)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path))
    for command in COMMANDS[page]:
        if not command.why_not:
            follow(command, here, furnished[1])


@pytest.mark.slow
@pytest.mark.parametrize("page", [name for name, found in CONFIGS.items() if any(not b.why_not for b in found)])
def test_the_configurations_of_a_page_run(
    furnished: tuple[Path, str], page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = shutil.copytree(furnished[0], tmp_path / "here")
    monkeypatch.chdir(here)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    supply(here)
    if page == "surveys.md":  # what the page's own commands make
        official = ["WVS_Cross-National_Wave_7.csv", "--mapping", "wvs7", "-o", "my_wvs.csv"]
        assert run(["surveys", "import", *official]).returncode == 0
    for block in CONFIGS[page]:
        for table in () if block.why_not else configs(block, furnished[1]):
            path = here / f"{table['name']}.yaml"
            path.write_text(json.dumps(table), encoding="utf-8")  # JSON is YAML
            for command in ["estimate"] if UNHEARD & table.keys() else ["estimate", "run"]:
                done = run([command, path.name])
                assert done.returncode == 0, f"{block.id}: auditor {command}\n{json.dumps(table)}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("block", PROGRAMS, ids=lambda block: block.id)
def test_the_programs_of_a_page_run(
    furnished: tuple[Path, str],
    block: Block,
    audit_of: Callable[[Path], AuditHandle],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = shutil.copytree(furnished[0], tmp_path / "here")
    monkeypatch.chdir(here)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    made: dict[str, Any] = {}
    exec(compile(block.text, block.id, "exec"), made)
    tests = [made[name] for name in made if name.startswith("test_")]
    assert tests or "audit" in made
    for test in tests:  # as pytest calls it; three countries are too few for the interval that is asked for
        with pytest.raises(AssertionError, match="pearson"):
            test(lambda what: audit_of(here / what))


def follow(command: Shown, here: Path, url: str) -> None:
    """Run one command as a shell would: with its comment left out, its input and its output where they belong."""
    line, given = command.line, ""
    if (pipe := re.match(r"printf '(.*?)' \| (.*)", line)) is not None:
        given, line = pipe[1].replace("\\n", "\n"), pipe[2]
    words = shlex.split(line, comments=True)
    target = words[words.index(">>") + 1] if ">>" in words else None
    words = words[: words.index(">>")] if target else words
    if words[1:2] == ["init"]:
        Path(words[2]).unlink()
    done = run(words[1:], given)
    fine = FINE.get(words[1]) or FINE.get(" ".join(words[1:3]), {0})
    assert done.returncode in fine, f"{command.page}: {command.line}\n{done.stdout}\n{done.stderr}"
    if target:
        with open(here / target, "a", encoding="utf-8") as file:
            file.write(done.stdout)
    if words[1:2] == ["init"]:  # the reader puts models of their own into it
        made = Path(words[2]).read_text(encoding="utf-8")
        assert scripted(made, url) != made
        shutil.copy(here / "mine.toml", words[2])


def test_few_commands_are_not_run_and_each_says_why() -> None:
    every = [command for found in COMMANDS.values() for command in found]
    skipped = [command for command in every if command.why_not]
    ours = [command for command in skipped if command.line.startswith("auditor")]
    assert len(every) > 80
    assert len(skipped) <= 24, Counter(command.why_not for command in skipped)
    assert len(ours) <= 6, [command.line for command in ours]
    assert all(len(command.why_not) > 10 for command in skipped)


def test_few_configurations_are_not_run_and_there_are_programs() -> None:
    every = [block for found in CONFIGS.values() for block in found]
    assert len(every) >= 20
    assert sorted(block.page for block in every if block.why_not) == ["review.md", "surveys.md"]
    assert len(PROGRAMS) >= 3
