"""The command line in this process, as a shell would run it: a process of its own takes seconds to start."""

from __future__ import annotations

import contextlib
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
class Done:
    """A command that has ended, named as `subprocess` names it."""

    returncode: int
    stdout: str
    stderr: str


def auditor(*words: str | Path, cwd: Path | None = None, **env: str) -> Done:
    """Run a command in a folder, with variables beside those that are set."""
    with mock.patch.dict(os.environ, env), contextlib.chdir(cwd or "."):
        return run([str(word) for word in words])


def run(words: Sequence[str], given: str = "") -> Done:
    """Run a command here, with what it is given on its standard input."""
    out, err = StringIO(), StringIO()
    with (
        mock.patch.object(sys, "argv", ["auditor", *words]),
        mock.patch.object(sys, "stdin", StringIO(given)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = _code()
    return Done(code, out.getvalue(), err.getvalue())


def _code() -> int:
    """What the process would end with."""
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code
