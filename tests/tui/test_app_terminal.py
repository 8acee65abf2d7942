"""The real program in a real terminal: a whole review in tmux, killed in the middle; and in a browser."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import UsageError
from auditor.storage import audits, rating_log
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.database import open_database
from auditor.storage.review_queue import ConflictQueue
from tests.support.review_audit import review_case

STARTS_EMPTY = True
PROGRAM = "import sys; from auditor.tui.app import run_review; run_review(sys.argv[1], 'moral', rater='ada')"


class Tmux:
    """One terminal of 80 x 24 in a tmux server of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers = 0
        self._command: list[str] = []
        self._environment = {
            **os.environ,
            "AUDITOR_REVIEW_DIR": str(folder),
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
        }

    def start(self, command: str) -> None:
        """Run a command in a session of a new server: the one before may still be going."""
        self._servers += 1
        self._command = ["tmux", "-S", str(self._folder / f"tmux{self._servers}"), "-f", "/dev/null"]
        self._run("new-session", "-d", "-x", "80", "-y", "24", "-s", "review", command)

    def press(self, *keys: str) -> None:
        self._run("send-keys", "-t", "review", *keys)

    def pid(self) -> int:
        return int(self._run("list-panes", "-t", "review", "-F", "#{pane_pid}"))

    def text(self) -> str:
        return self._run("capture-pane", "-p", "-t", "review")

    def wait_for(self, pattern: str, limit_s: float = 60) -> re.Match[str]:
        """Wait until the screen shows something."""
        end = time.monotonic() + limit_s
        while (found := re.search(pattern, self.text())) is None:
            assert time.monotonic() < end, f"no {pattern!r} in:\n{self.text()}"
            time.sleep(0.02)
        return found

    def stop(self) -> None:
        if self._command:
            subprocess.run([*self._command, "kill-server"], capture_output=True, check=False)

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._command, *arguments], env=self._environment, capture_output=True, text=True, check=True
        )
        return done.stdout


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    terminal = Tmux(tmp_path)
    yield terminal
    terminal.stop()


def test_a_whole_review_with_a_kill_in_the_middle_loses_nothing(tmux: Tmux, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/audits.db"
    with open_database(url) as db:
        audit = review_case(db)
    command = shlex.join([sys.executable, "-c", PROGRAM, url])
    keys = "1234" * 5

    def review(begin: int, end: int) -> None:
        tmux.wait_for(r"of 20 · by what teaches most")
        tmux.press("Space")
        for number in range(begin, end):
            tmux.wait_for("not decided by you")
            tmux.press(keys[number])
            tmux.wait_for("✓ saved: ")
            if number < end - 1:
                tmux.press("Space")

    tmux.start(command)
    review(0, 9)
    os.kill(tmux.pid(), signal.SIGKILL)
    tmux.stop()
    with open_database(url) as db:
        assert len(rating_log.load_entries(db, audit.id)) == 9, "what was shown as saved is there"

    tmux.start(command)
    tmux.wait_for(r"○ 11 open   ● 9 people")
    review(9, 20)
    tmux.press("Escape")
    tmux.wait_for(r"● 20 people")
    tmux.press("Escape")
    tmux.wait_for(r"✓ done")
    tmux.press("q")
    with open_database(url) as db:
        log = rating_log.load_entries(db, audit.id)
        counts = ConflictQueue(db, audit.id, "ada").count_by_status()
    assert len(log) == len({entry.key for entry in log}) == 20
    assert counts[ConflictStatus.PERSON] == 20


def test_undecided_is_what_a_kill_before_saving_leaves(tmux: Tmux, tmp_path: Path) -> None:
    """The other half of the promise: nothing that was not shown as saved is claimed later."""
    url = f"sqlite:///{tmp_path}/audits.db"
    with open_database(url) as db:
        audit = review_case(db, conflicts=1)
        tmux.start(shlex.join([sys.executable, "-c", PROGRAM, url]))
        tmux.wait_for("1 of 1")
        tmux.press("Enter")
        tmux.wait_for("not decided by you")
        with db.engine.begin() as held:
            held.exec_driver_sql("select 1")
            tmux.press("1")
            tmux.wait_for("… saving")
            os.kill(tmux.pid(), signal.SIGKILL)
        assert rating_log.load_entries(db, audit.id) == []


# --- in a browser -----------------------------------------------------------------------------------------------


SERVER = "import sys; from auditor.tui.web_server import serve_app; serve_app(sys.argv[2:], port=int(sys.argv[1]))"


@pytest.fixture
def served(tmp_path: Path, unused_port: int) -> Iterator[str]:
    """The app on the loopback interface, in a process of its own."""
    pytest.importorskip("textual_serve")
    url = f"sqlite:///{tmp_path}/audits.db"
    with open_database(url) as db:
        review_case(db)
    command = [sys.executable, "-c", PROGRAM, url]
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(unused_port), *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    end = time.monotonic() + 60
    while not _listens(unused_port):
        assert time.monotonic() < end, "the server did not come up"
        time.sleep(0.05)
    yield f"http://127.0.0.1:{unused_port}"
    server.send_signal(signal.SIGINT)
    _, said = server.communicate(timeout=60)
    assert server.returncode == 0, said.decode()


async def test_the_app_is_served_to_its_own_page_only(served: str, tmp_path: Path) -> None:
    import aiohttp

    async with aiohttp.ClientSession() as session:
        assert await _status(session, served) == 200
        assert await _status(session, served, Host="evil.example") == 403
        assert await _status(session, served, Origin="http://evil.example") == 403
        assert await _status(session, served, Origin="http://127.0.0.1:1") == 403
        assert await _status(session, f"{served}/ws", Origin="null") == 403
        async with session.ws_connect(f"{served}/ws?width=100&height=30", origin=served) as browser:
            await _read_until(browser, b"1 of 20")
            await browser.send_str(json.dumps(["stdin", "\r"]))
            await _read_until(browser, b"1 left")
            await browser.send_str(json.dumps(["stdin", "1"]))
            await _read_until(browser, b"saved:")
    with open_database(f"sqlite:///{tmp_path}/audits.db") as db:
        assert len(rating_log.load_entries(db, audits.get_audit(db, "moral").id)) == 1


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


async def _status(session: Any, url: str, **headers: str) -> int:
    async with session.get(url, headers=headers) as response:
        status: int = response.status
        return status


async def _read_until(socket: Any, words: bytes, limit_s: float = 60) -> bytes:
    seen = b""
    async with asyncio.timeout(limit_s):
        while words not in seen:
            message = await socket.receive()
            seen += message.data if isinstance(message.data, bytes) else str(message.data).encode()
    return seen


def test_it_listens_on_the_loopback_interface_unless_told_otherwise() -> None:
    pytest.importorskip("textual_serve")
    from auditor.tui.web_server import create_server

    assert create_server(["true"]).host == "127.0.0.1"
    assert create_server(["a b", "c'd"]).command == shlex.join(["a b", "c'd"])


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from auditor.tui.web_server import create_server

    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    with pytest.raises(UsageError, match=r"pip install 'auditor\[serve\]'"):
        create_server(["true"])


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
