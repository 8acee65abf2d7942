"""Every command, configuration and program of the README and docs runs in the folder of a reader who follows them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from auditor.run import AuditHandle
from tests.support.cli_runner import CommandOutput, run
from tests.support.docs_blocks import ESTIMATE_ONLY_SECTIONS, PROVIDER_PAGE, Block, blocks, configs, write_block_files
from tests.support.docs_workspace import (
    ROOT,
    DocumentedCommand,
    Letters,
    create_workspace,
    documented_commands,
    script,
    scripted,
)
from tests.support.fake_server import FakeServer

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = {page.name: list(documented_commands(page)) for page in PAGES}
CONFIGS = {page.name: list(blocks(page, "toml")) for page in PAGES}
PROGRAMS = [block for page in PAGES for block in blocks(page, "python") if not block.skip_reason]
DEMO = "auditor demo"
ACCEPTED_EXIT_CODES = {"check": {0, 3, 4}, "surveys check": {0, 1}}
"""Accepted exit codes of commands that report findings by them; only 0 for all others."""
PROBE_PAGE = "probes.md"
"""Page that tests/e2e/test_probe_plugin.py follows, since it installs a package."""
TUNING_PAGE = "training.md"
"""Its script needs libraries that are not installed; tests/e2e/test_tuning_example.py runs it where they are."""
REAL_PREFIXES = ("openai/gpt-4", "anthropic/", "hosted_vllm/")
"""Models that `auditor init` writes on the pages."""


@pytest.fixture(scope="module")
def docs_workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The reader's folder before any page is followed, and the URL of the fake server."""
    folder = tmp_path_factory.mktemp("reader")
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    patch.delenv("AUDITOR_STORAGE", raising=False)
    patch.delenv("OPENAI_API_KEY", raising=False)  # `auditor init` says that it is to be set
    patch.setattr("auditor.models.embeddings.load_encoder", lambda name: Letters())
    patch.setattr("auditor.models.embeddings.check_encoder", lambda name: None)
    with FakeServer(script) as server:
        create_workspace(folder, server.url)
        yield folder, server.url
    patch.undo()


@pytest.fixture(scope="module")
def demo_workspace(
    docs_workspace: tuple[Path, str],
    worked_example: tuple[Path, CommandOutput],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The reader's folder after `auditor demo`, with which several pages begin."""
    folder = shutil.copytree(docs_workspace[0], tmp_path_factory.mktemp("demo") / "here")
    return shutil.copytree(worked_example[0], folder, dirs_exist_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [name for name, commands in COMMANDS.items() if any(not c.skip_reason for c in commands)]
)
def test_the_commands_of_a_page_run(
    docs_workspace: tuple[Path, str],
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    commands = [command for command in COMMANDS[page] if not command.skip_reason]
    completed: CommandOutput | None = None
    folder, url = docs_workspace
    if commands[0].line == DEMO:
        folder, (_, completed) = map(request.getfixturevalue, ("demo_workspace", "worked_example"))
    reader_folder = shutil.copytree(folder, tmp_path / "here")
    monkeypatch.chdir(reader_folder)
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path))
    for command in commands:
        follow(command, reader_folder, url, completed)
        completed = None


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [name for name, page_blocks in CONFIGS.items() if any(not b.skip_reason for b in page_blocks)]
)
def test_the_configurations_of_a_page_run(
    docs_workspace: tuple[Path, str], page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader_folder = shutil.copytree(docs_workspace[0], tmp_path / "here")
    monkeypatch.chdir(reader_folder)
    write_block_files(reader_folder)
    if page in ("surveys.md", "distribution.md"):  # the survey that commands of the first page import
        official = ["WVS_Cross-National_Wave_7.csv", "--mapping", "wvs7", "-o", "my_wvs.csv"]
        assert run(["surveys", "import", *official]).returncode == 0
    for block in CONFIGS[page]:
        for table in () if block.skip_reason else configs(block, docs_workspace[1]):
            path = reader_folder / f"{table['name']}.yaml"
            path.write_text(json.dumps(table), encoding="utf-8")  # JSON is YAML
            command = "estimate" if ESTIMATE_ONLY_SECTIONS & table.keys() else "run"
            completed = run([command, path.name])
            assert completed.returncode == 0, f"{block.id}: auditor {command}\n{json.dumps(table)}\n{completed.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("block", PROGRAMS, ids=lambda block: block.id)
def test_the_programs_of_a_page_run(
    docs_workspace: tuple[Path, str],
    block: Block,
    audit_of: Callable[[Path], AuditHandle],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reader_folder = shutil.copytree(docs_workspace[0], tmp_path / "here")
    monkeypatch.chdir(reader_folder)
    namespace: dict[str, Any] = {}
    exec(compile(block.text, block.id, "exec"), namespace)
    tests = [namespace[name] for name in namespace if name.startswith("test_")]
    assert tests or capsys.readouterr().out or "print(" not in block.text
    for test in tests:  # as pytest would call it; three countries are too few for the interval
        with pytest.raises(AssertionError, match="pearson"):
            test(lambda file_name: audit_of(reader_folder / file_name))


def follow(command: DocumentedCommand, folder: Path, url: str, completed: CommandOutput | None = None) -> None:
    """Run one command as a shell would: without its comment, with its piped input and its `>>` redirection.

    Args:
        completed: what it printed, if it was run in this folder.
    """
    line, stdin_text = command.line, ""
    if (pipe := re.match(r"printf '(.*?)' \| (.*)", line)) is not None:
        stdin_text, line = pipe[1].replace("\\n", "\n"), pipe[2]
    words = shlex.split(line, comments=True)
    target = words[words.index(">>") + 1] if ">>" in words else None
    words = words[: words.index(">>")] if target else words
    if words[1:2] == ["init"]:
        Path(words[2]).unlink(missing_ok=True)
    sends_nothing = words[1] == "init" or "--dry-run" in words or (words[1] == "estimate" and bool(command.output))
    with database_before_the_run() if sends_nothing else scripted_models(folder):
        completed = completed or run(words[1:], stdin_text)
    accepted_codes = ACCEPTED_EXIT_CODES.get(words[1]) or ACCEPTED_EXIT_CODES.get(" ".join(words[1:3]), {0})
    assert completed.returncode in accepted_codes, (
        f"{command.page}: {command.line}\n{completed.stdout}\n{completed.stderr}"
    )
    if command.output:
        printed = completed.stderr + "\n" + completed.stdout
        assert is_output(command.output, printed), (
            f"{command.page}: {command.line} prints\n{printed}\nand not\n{command.output}"
        )
    if target:
        with open(folder / target, "a", encoding="utf-8") as file:
            file.write(completed.stdout)
    if words[1:2] == ["init"] and "--provider" not in words:  # the reader then enters their own models
        starter_text = Path(words[2]).read_text(encoding="utf-8")
        assert scripted(starter_text, url) != starter_text
        shutil.copy(folder / "mine.toml", words[2])


def is_output(shown: str, printed: str) -> bool:
    """Whether a command printed what a page shows: `...` stands for any text, or none, and white space is ignored."""
    parts = [re.escape("".join(part.split())) for part in shown.split("...")]
    return re.fullmatch(".*".join(parts), "".join(printed.split())) is not None


@contextlib.contextmanager
def database_before_the_run() -> Iterator[None]:
    """Use a database without audits for one command: the folder's has the audit that the reader runs later."""
    with mock.patch.dict(os.environ, AUDITOR_STORAGE="sqlite:///before.db"):
        yield


@contextlib.contextmanager
def scripted_models(folder: Path) -> Iterator[None]:
    """Use scripted models in place of those that `auditor init --provider` has written, for one command."""
    texts = {path: path.read_text(encoding="utf-8") for path in folder.glob("*.toml")}
    real = {path: text for path, text in texts.items() if any(f'model = "{p}' in text for p in REAL_PREFIXES)}
    for path in real:
        shutil.copy(folder / "mine.toml", path)
    try:
        yield
    finally:
        for path, text in real.items():
            path.write_text(text, encoding="utf-8")


def test_other_output_than_shown_is_noticed() -> None:
    shown = "One\n...\nthree four\n"
    assert is_output(shown, "One\nthree\nfour")
    assert is_output(shown, "One two three four\n")
    assert not is_output(shown, "One two three five")
    assert not is_output(shown, "Zero One three four")


def test_few_commands_are_not_run_and_each_says_why() -> None:
    all_commands = [command for page_commands in COMMANDS.values() for command in page_commands]
    skipped = [
        command for command in all_commands if command.skip_reason and command.page not in (PROBE_PAGE, TUNING_PAGE)
    ]
    skipped_auditor_commands = [command for command in skipped if command.line.startswith("auditor")]
    assert len(all_commands) > 80
    assert len(skipped) <= 24, Counter(command.skip_reason for command in skipped)
    assert len(skipped_auditor_commands) <= 6, [command.line for command in skipped_auditor_commands]
    assert all(len(command.skip_reason) > 10 for command in skipped)


def test_few_configurations_are_not_run_and_there_are_programs() -> None:
    all_blocks = [block for page_blocks in CONFIGS.values() for block in page_blocks]
    assert len(all_blocks) >= 20
    pages = [block.page for block in all_blocks if block.skip_reason]
    assert sorted(page for page in pages if page not in (PROVIDER_PAGE, PROBE_PAGE)) == [
        "own-paper.md",  # parts of a preset, which tests/replications/test_paper_files.py runs
        "review.md",
        *["surveys.md"] * 3,
    ]
    assert len(PROGRAMS) >= 3
