"""Run the command line in this process, as a shell would: starting another process takes seconds."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from unittest import mock

import pytest

from auditor.__main__ import main


@dataclass(frozen=True)
class CommandOutput:
    """Exit code and output of a command, with the field names of `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


def auditor(*words: str | Path, cwd: Path | None = None, **env: str) -> CommandOutput:
    with mock.patch.dict(os.environ, env), contextlib.chdir(cwd or "."):
        return run([str(word) for word in words])


def succeed(*words: str | Path, cwd: Path | None = None, **env: str) -> CommandOutput:
    """Run a command as `auditor` does, and check that its exit code is 0."""
    output = auditor(*words, cwd=cwd, **env)
    assert output.returncode == 0, (words, output.stderr)
    return output


def fail(*words: str | Path, code: int, message: str, cwd: Path | None = None, **env: str) -> CommandOutput:
    """Run a command as `auditor` does, and check that it exits with a code and prints a message on standard error."""
    output = auditor(*words, cwd=cwd, **env)
    assert (output.returncode, message in output.stderr) == (code, True), (words, output)
    return output


def run(words: Sequence[str], stdin_text: str = "") -> CommandOutput:
    """Run a command in the current folder, with a text as its standard input."""
    out, err = StringIO(), StringIO()
    with (
        mock.patch.object(sys, "argv", ["auditor", *words]),
        mock.patch.object(sys, "stdin", StringIO(stdin_text)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = _code()
    return CommandOutput(code, out.getvalue(), err.getvalue())


def _code() -> int:
    """Run `main` and return its exit code; the thresholds of garbage collection, which it leaves changed, are reset."""
    thresholds = gc.get_threshold()
    with pytest.raises(SystemExit) as ended:
        main()
    gc.set_threshold(*thresholds)
    assert isinstance(ended.value.code, int)
    return ended.value.code
