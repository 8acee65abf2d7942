"""Commands in separate processes that tests stop and kill, forked from a server that has the slow imports loaded.

`tests/support/cli_runner.py` runs a command in the test's process, which is quicker still;
`tests/project/test_security.py` and `tests/cli/test_app.py` start the program as a shell does.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
from contextlib import chdir
from multiprocessing.context import ForkServerProcess
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryDirectory
from unittest import mock

from auditor import bootstrap
from auditor.__main__ import UNEXPECTED_ERROR_PREFIX, main

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.support.preloaded_imports", "tests.support.first_run"])
ROOT = Path(__file__).parents[2]
ENVIRONMENT = dict(os.environ)
"""The environment before any test."""
STREAMS = ("stdout", "stderr")


class RunningCommand:
    """A running command, with the interface of `subprocess.Popen`."""

    def __init__(self, words: list[str], largest_file: int) -> None:
        self.args = words
        self._streams = TemporaryDirectory(prefix="auditor-streams-")
        process_args = (words, os.getcwd(), dict(os.environ), largest_file, Path(self._streams.name))
        self._process: ForkServerProcess = CONTEXT.Process(target=_run, args=process_args)
        start_fork_server()
        self._process.start()

    @property
    def returncode(self) -> int | None:
        """Exit code, negative for a signal; None while the command runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def send_signal(self, number: int) -> None:
        assert self._process.pid is not None
        if self.returncode is not None:
            raise AssertionError(f"the command had ended with code {self.returncode}: {self.communicate()}")
        os.kill(self._process.pid, number)

    def has_written(self, words: str) -> bool:
        """Whether the command has written these words to standard error by now."""
        return words in (Path(self._streams.name) / STREAMS[1]).read_text(encoding="utf-8")

    def kill(self) -> None:
        self._process.kill()

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait until the command has ended; may be called once.

        Returns:
            Its standard output and standard error.

        Raises:
            TimeoutExpired: it still runs after `timeout` seconds.
        """
        self._process.join(timeout)
        if self.returncode is None:
            raise TimeoutExpired(self.args, timeout or 0.0)
        out, err = ((Path(self._streams.name) / name).read_text(encoding="utf-8") for name in STREAMS)
        self._streams.cleanup()
        assert UNEXPECTED_ERROR_PREFIX not in err, err
        return out, err


def start_fork_server() -> None:
    """Start the server, unless it runs.

    It starts in the project's folder, since it finds no module to preload elsewhere, and without what a test has set in
    the environment: the failpoint of a command would kill the server's own first audit.
    """
    with chdir(ROOT), mock.patch.dict(os.environ, ENVIRONMENT, clear=True):
        ensure_running()


def start(*words: str | Path, largest_file: int = resource.RLIM_INFINITY) -> RunningCommand:
    """Start a command with this folder and environment; no file that it writes grows beyond `largest_file` bytes."""
    return RunningCommand([str(word) for word in words], largest_file)


def _run(words: list[str], folder: str, environment: dict[str, str], largest_file: int, streams: Path) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    bootstrap.prepare_environment()  # the imports that usually call this were made before the fork
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    for number, name in enumerate(STREAMS, 1):
        os.dup2(os.open(streams / name, os.O_WRONLY | os.O_CREAT), number)
    sys.argv = ["auditor", *words]
    main()
