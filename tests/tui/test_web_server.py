"""The review in a browser: served on the loopback interface, to its own page only."""

from __future__ import annotations

import asyncio
import json
import shlex
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
from auditor.storage.database import open_database
from auditor.tui.web_server import create_server
from tests.support.review_audit import save_review_audit
from tests.tui.test_app_terminal import PROGRAM

SERVER = "import sys; from auditor.tui.web_server import serve_app; serve_app(sys.argv[2:], port=int(sys.argv[1]))"


@pytest.fixture
def served(tmp_path: Path, unused_port: int) -> Iterator[str]:
    """The URL of the app, served on the loopback interface by another process."""
    pytest.importorskip("textual_serve")
    url = f"sqlite:///{tmp_path}/audits.db"
    with open_database(url) as db:
        save_review_audit(db)
    command = [sys.executable, "-c", PROGRAM, url]
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(unused_port), *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not _listens(unused_port):
        assert time.monotonic() < deadline, "the server did not come up"
        time.sleep(0.05)
    yield f"http://127.0.0.1:{unused_port}"
    server.send_signal(signal.SIGINT)
    _, stderr = server.communicate(timeout=60)
    assert server.returncode == 0, stderr.decode()


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
            await _read_until(browser, b"saved, u undoes:")
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
    received = b""
    async with asyncio.timeout(limit_s):
        while words not in received:
            message = await socket.receive()
            received += message.data if isinstance(message.data, bytes) else str(message.data).encode()
    return received


def test_the_default_host_is_the_loopback_interface() -> None:
    pytest.importorskip("textual_serve")
    assert create_server(["true"]).host == "127.0.0.1"
    assert create_server(["a b", "c'd"]).command == shlex.join(["a b", "c'd"])


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    with pytest.raises(UsageError, match=r"pip install 'auditor\[serve\]'"):
        create_server(["true"])


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
