"""How a command ends after any exception: one line, an exit code, and a traceback only in debug mode."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from auditor import __main__ as program
from auditor.__main__ import UNEXPECTED_ERROR_PREFIX
from auditor.errors import SurveyError
from tests.support.cli_runner import auditor
from tests.support.patience import PATIENCE_S

COMMAND = ["surveys", "list"]


def make_command_raise(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make the command raise an error, as a bug in the program would."""

    def fail() -> Any:
        raise error

    monkeypatch.setattr("auditor.cli.surveys.builtin_surveys", fail)


class Mute(Exception):
    """An error whose `str` raises."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "name", "words"),
    [
        (TypeError("x\x1b[31m\n\u202ey" + "z" * 5000), "TypeError", "x␛[31m \\u202eyzzz"),
        (RecursionError("deep"), "RecursionError", "deep"),
        (MemoryError(), "MemoryError", "MemoryError. How"),
        (asyncio.CancelledError(), "CancelledError", "CancelledError. How"),
        (BaseExceptionGroup("two", [SurveyError("s"), KeyError("k")]), "KeyError", "'k'"),
        (ExceptionGroup("one", [ExceptionGroup("inner", [IndexError("i")])]), "IndexError", "i. How"),
        (Mute(), "Mute", "Mute. How"),
        (EOFError("end"), "EOFError", "end"),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), "FileNotFoundError", "No such file"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_unexpected_error_is_one_line_with_its_prefix(
    monkeypatch: pytest.MonkeyPatch, unexpected_errors: list[BaseException], error: BaseException, name: str, words: str
) -> None:
    make_command_raise(monkeypatch, error)
    completed = auditor(*COMMAND)
    assert completed.returncode == 1
    assert completed.stdout == ""
    line = completed.stderr.lstrip("\n")  # one that the command-line library writes after the end of the input
    assert line.startswith(f"{UNEXPECTED_ERROR_PREFIX}: {name}")
    assert words in completed.stderr
    assert "How to fix: Run the command again with --debug" in completed.stderr
    assert line.count("\n") == 1
    assert len(line) < 500
    assert [type(e).__name__ for e in unexpected_errors] == [name]


@pytest.mark.parametrize(("words", "env"), [(["--debug"], {}), ([], {"AUDITOR_DEBUG": "1"})], ids=["option", "env"])
def test_the_traceback_is_printed_in_debug_mode(
    monkeypatch: pytest.MonkeyPatch, unexpected_errors: list[BaseException], words: list[str], env: dict[str, str]
) -> None:
    make_command_raise(monkeypatch, TypeError("x\x1b[31m"))
    completed = auditor(*words, *COMMAND, cwd=None, **env)
    assert completed.returncode == 1
    assert "Traceback" in completed.stderr
    assert "\x1b" not in completed.stderr
    assert UNEXPECTED_ERROR_PREFIX in completed.stderr
    assert len(unexpected_errors) == 1


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "stopped.\n"),
        (BaseExceptionGroup("g", [TypeError(), KeyboardInterrupt()]), 130, "stopped.\n"),
        (ExceptionGroup("g", [SurveyError("no survey.", "Add one.")]), 1, "auditor: no survey. Add one.\n"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 1, ""),
        (OSError(errno.ENOSPC, "No space left on device", "x.db"), 1,
         "auditor: x.db: No space left on device. Check the name, the permissions and the free space.\n"),
        (SystemExit(7), 7, ""),
    ],
    ids=["interrupt", "interrupt in a group", "error in a group", "pipe", "disk full", "exit"],
)  # fmt: skip
def test_expected_errors_are_not_reported_as_unexpected(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, line: str
) -> None:
    make_command_raise(monkeypatch, error)
    completed = auditor(*COMMAND)
    assert (completed.returncode, completed.stderr) == (code, line)
    assert program.unhandled_errors == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
        (["run"], "Missing argument 'CONFIG'"),
        (["--\x1b[31mx"], "No such option: --\\x1b[31mx"),
        (["run", "c.toml", "--engine", "\u202emoon"], "\\u202emoon"),
        (["check", "a", "--min-pearson", "[/]"], "'--min-pearson': must be a number"),
        (["check", "a", "--max-open-conflicts", "0.5"], "'--max-open-conflicts': must be a whole number"),
        (["run", "c.toml", "--engine", "moon"], "'--engine': 'moon' is not one of 'local', 'ray'"),
        (["compare", "a", "--flips", "-1"], "'--flips'"),
        (["review", "--second-share", "7"], "'--second-share'"),
        (["import"], "Usage:"),
    ],
)
def test_a_usage_error_exits_with_2(words: list[str], message: str) -> None:
    completed = auditor(*words)
    assert completed.returncode == 2
    assert message in completed.stderr + completed.stdout
    assert "\x1b" not in completed.stderr
    assert not re.search("Traceback|Input should|Value error|valid integer|pytest", completed.stderr)


# --- as a process: streams, locale, working directory -----------------------------------------------------------


def shell(line: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which `$auditor` is the program."""
    program = f"{sys.executable} -m auditor"
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, cwd=folder, timeout=PATIENCE_S, check=False,
        env=os.environ | {"auditor": program} | env,
    )  # fmt: skip


def test_pipes_and_closed_streams(tmp_path: Path) -> None:
    line = """
    $auditor surveys list --json | true; echo "true ${PIPESTATUS[0]}"
    $auditor surveys list >&-; echo "no stdout $?"
    $auditor surveys list >/dev/null 2>&-; echo "no stderr $?"
    $auditor nonsense 2>&-; echo "no stderr for an error $?"
    $auditor review x --plain <&-; echo "no stdin $?"
    $auditor surveys list >/dev/full; echo "full $?"
    """
    completed = shell(line, tmp_path)
    codes = dict(line.rsplit(" ", 1) for line in completed.stdout.splitlines())
    assert codes.pop("true") in ("0", "1")
    assert codes == {"no stdout": "0", "no stderr": "0", "no stderr for an error": "2", "no stdin": "1", "full": "1"}
    assert "No space left on device" in completed.stderr
    for word in ("Traceback", "Exception ignored", UNEXPECTED_ERROR_PREFIX):
        assert word not in completed.stderr


def test_a_database_does_not_take_the_descriptor_of_a_closed_stream(tmp_path: Path) -> None:
    """Otherwise the database would get file descriptor 1, and output would be written into it."""
    (tmp_path / "x.csv").write_text("model,country,topic,method,score\nm,Japan,divorce,direct,0.5\n")
    line = "$auditor import scores x.csv --survey wvs7-sample --audit a 0<&- 1>&- 2>&-; $auditor status --json"
    completed = shell(line, tmp_path)
    assert '"audit": "a"' in completed.stdout
    assert (tmp_path / "auditor.db").read_bytes().startswith(b"SQLite format 3\0")


def test_an_ascii_only_locale(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(
        'name = "a"\njudges = []\nsurvey = { source = "wvs7-sample", countries = ["Japan"] }\n'
        '[[models]]\nname = "modèle 日本"\nmodel = "openai/gpt-4o"\n',
        encoding="utf-8",
    )
    for line, io_encoding in (
        ("$auditor estimate c.toml", {"PYTHONIOENCODING": "ascii:strict"}),
        ("$auditor estimate c.toml; echo $?; $auditor estimate c.toml --json", {}),
    ):
        line += "; echo $?"
        completed = shell(line, tmp_path, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", **io_encoding)
        assert completed.stdout.isascii()
        assert completed.stderr.isascii()
        assert completed.stdout.count("\n0\n") == line.count("echo"), completed.stderr
        assert "\\u65e5\\u672c" in completed.stdout
        assert "\\u202f" not in completed.stdout, "the space in 2 300 would push the columns of a table apart"


COMMANDS = [
    "status", "run c.toml", "estimate c.toml", "report a", "review a --plain", "graph", "compare a", "check a", "init",
    "doctor", "trust c.toml", "verify a", "models list", "surveys list", "surveys show wvs7-sample",
    "import scores x.csv --survey wvs7-sample --audit a", "export tables a", "logic rank c.toml",
    "experiment holdout a",
]  # fmt: skip


def test_a_deleted_working_directory(tmp_path: Path) -> None:
    """The commands run one after another in one process: one process each would take a minute."""
    code = f"""
import os, sys
from unittest import mock
from auditor.__main__ import main
os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')
for words in {COMMANDS!r}:
    with mock.patch.object(sys, 'argv', ['auditor', *words.split()]):
        try:
            main()
        except SystemExit as ended:
            print(ended.code, file=sys.stderr)
"""
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE_S
    )
    assert completed.returncode == 0
    lines = completed.stderr.splitlines()
    assert len(lines) == 2 * len(COMMANDS)
    assert set(lines[1::2]) == {"2"}
    assert len(set(lines[::2])) == 1
    assert lines[0].startswith("auditor: the working directory was deleted or moved")
    shell_output = shell("mkdir gone; cd gone; rmdir ../gone; $auditor status; echo $?; $auditor run --help", tmp_path)
    assert shell_output.stdout.startswith("2\nUsage:")
    assert shell_output.stderr.splitlines() == [lines[0]]


@pytest.mark.parametrize("module", ["lazy_imports", "errors"])
def test_an_interrupt_before_the_program_s_first_moment_prints_no_traceback(tmp_path: Path, module: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupter:
    def find_spec(self, name, *_):
        if name == "auditor.{module}":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupter())
""",
        encoding="utf-8",
    )
    completed = subprocess.run(
        [sys.executable, "-m", "auditor", "surveys", "list"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert completed.returncode in (-signal.SIGINT, 130)
    assert (completed.stdout, completed.stderr) == ("", "")


@pytest.mark.parametrize("signal_name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interrupt_while_modules_are_loaded_is_one_line(tmp_path: Path, signal_name: str) -> None:
    """Commands listen to signals from their first moment, not only while they ask."""
    stop = f"import signal, time; signal.raise_signal(signal.{signal_name}); time.sleep(60)"
    (tmp_path / "typer.py").write_text(stop, encoding="utf-8")
    # Tests that run in the background, or under nohup, hand on signals that are ignored.
    code = (
        f"import signal, sys; signal.signal(signal.{signal_name}, signal.SIG_DFL); "
        f"sys.path.insert(0, {str(tmp_path)!r}); from auditor.__main__ import main; main()"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout, completed.stderr) == (130, "", "stopped.\n")
