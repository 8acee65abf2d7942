"""The server of the review in a browser: who is let in, how many, and that no process outlives its connection."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from auditor.cli.app import build_app

pytest.importorskip("textual_serve")

import aiohttp
from aiohttp import WSCloseCode, WSMsgType, web

from auditor.errors import StorageError, UsageError
from auditor.tui.web_driver import END_TIMEOUT_S
from auditor.tui.web_server import HEADERS, MAX_SESSIONS, ReviewServer
from tests.support.patience import PATIENCE_S

STARTS_EMPTY = True
REPORT_PID = "import os, pathlib, sys; pathlib.Path(sys.argv[1], str(os.getpid())).touch(); "
START = r"sys.stdout.buffer.write(b'__GANGLION__\nD\0\0\0\5hello'); sys.stdout.flush(); "
OBEDIENT = REPORT_PID + START + "sys.stdin.buffer.read(1)"
"""A program in place of the app that ends when it is told to."""
STUBBORN = REPORT_PID + START + "import time; time.sleep(600)"


class Served(NamedTuple):
    """A server that listens, and a browser that has opened its address."""

    server: ReviewServer
    browser: aiohttp.ClientSession
    processes: Path
    """Folder with a file for each process that was started, named by its id."""

    def is_running(self) -> bool:
        """Whether any process runs."""
        return any(Path(f"/proc/{file.name}").exists() for file in self.processes.iterdir())

    async def processes_end(self) -> None:
        """Wait until no process runs."""
        await wait_until(lambda: not self.is_running())

    @property
    def socket_url(self) -> str:
        return f"{self.server.public_url}/ws?width=80&height=24"


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database with the audit `moral`, which the command uses."""
    shutil.copy(template, tmp_path / "audits.db")
    monkeypatch.setenv("AUDITOR_STORAGE", f"sqlite:///{tmp_path}/audits.db")


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def serve(folder: Path, port: int, program: str = OBEDIENT) -> AsyncIterator[Served]:
    """Serve a program on the loopback interface."""
    processes = folder / "processes"
    processes.mkdir()
    command = [sys.executable, "-c", program, str(processes)]
    server = ReviewServer(command, host="127.0.0.1", port=port, public_url=None, announce=lambda _: None)
    runner = web.AppRunner(await server._make_app(), access_log=None, shutdown_timeout=END_TIMEOUT_S)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    jar = aiohttp.CookieJar(unsafe=True)  # the host is an IP address
    async with aiohttp.ClientSession(cookie_jar=jar) as browser:
        yield Served(server, browser, processes)
    await runner.cleanup()


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition of another process or of the server holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(0.02)


async def status_of(browser: aiohttp.ClientSession, url: str, **headers: str) -> int:
    async with browser.get(url, headers=headers) as response:
        status: int = response.status
        return status


async def socket_status(browser: aiohttp.ClientSession, url: str, **headers: str) -> int:
    """The HTTP status with which a WebSocket is refused; 101 if it is opened."""
    try:
        async with browser.ws_connect(url, headers=headers):
            return 101
    except aiohttp.WSServerHandshakeError as error:
        return error.status


async def read_first(connection: aiohttp.ClientWebSocketResponse) -> aiohttp.WSMessage:
    return await asyncio.wait_for(connection.receive(), PATIENCE_S)


async def test_only_a_browser_that_opened_the_address_is_let_in(tmp_path: Path, unused_port: int) -> None:
    async with serve(tmp_path, unused_port) as served:
        url = served.server.public_url
        for path in ("/", "/?token=wrong", "/ws", "/download/key", "/static/js/textual.js"):
            assert await status_of(served.browser, url + path) == 403, path
        assert await socket_status(served.browser, served.socket_url) == 403
        async with served.browser.get(served.server.address) as response:
            assert response.status == 200
            cookie = response.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert served.server.token not in cookie
        for _ in range(2):  # a page can be loaded again
            assert await status_of(served.browser, url) == 200
        assert await socket_status(served.browser, served.socket_url) == 101
        assert await status_of(served.browser, f"{url}/download/unknown") == 404


async def test_a_request_of_another_page_or_to_another_host_is_refused(tmp_path: Path, unused_port: int) -> None:
    async with serve(tmp_path, unused_port) as served:
        await status_of(served.browser, served.server.address)
        url = served.server.public_url
        assert await status_of(served.browser, url, Origin=url) == 200
        assert await status_of(served.browser, url, Host="evil.example") == 403
        for origin in ("http://evil.example", "http://127.0.0.1:1", "null"):
            assert await status_of(served.browser, url, Origin=origin) == 403
            assert await socket_status(served.browser, served.socket_url, Origin=origin) == 403


NO_HTTP = {
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "NUL": b"GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n",
    "no address": b"GET http://[::1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "a long line": b"GET / HTTP/1.1\r\nHost: " + b"a" * 20_000 + b"\r\n\r\n",
    "an encoding": b"GET / HTTP/1.1\r\nHost: a\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc",
    "no origin": b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nOrigin: http://[::1\r\n\r\n",
}


@pytest.mark.parametrize("name", NO_HTTP)
async def test_a_request_that_is_not_http_prints_nothing_on_the_rater_s_terminal(
    tmp_path: Path, unused_port: int, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    async with serve(tmp_path, unused_port):
        reader, writer = await asyncio.open_connection("127.0.0.1", unused_port)
        writer.write(NO_HTTP[name].replace(b"%d", str(unused_port).encode()))
        status_line = await asyncio.wait_for(reader.readline(), PATIENCE_S)
        writer.close()
    assert status_line.split()[1] in (b"400", b"403")
    assert not caplog.records


async def test_each_start_has_a_new_token_and_cookie(tmp_path: Path) -> None:
    servers = [ReviewServer(["true"], host="127.0.0.1", port=1, public_url=None, announce=print) for _ in range(2)]
    assert len({server.token for server in servers} | {server._cookie for server in servers}) == 4
    assert all(len(server.token) >= 32 for server in servers)


async def test_no_page_can_be_framed_or_load_anything_foreign(tmp_path: Path, unused_port: int) -> None:
    async with serve(tmp_path, unused_port) as served:
        url = served.server.public_url
        for path in ("/", served.server.address.removeprefix(url), "/", "/static/css/xterm.css", "/nothing"):
            async with served.browser.get(url + path) as response:
                assert response.headers["X-Frame-Options"] == "DENY"
                assert HEADERS.items() <= dict(response.headers).items()
                policy = response.headers["Content-Security-Policy"]
                body = await response.text()
            assert policy.startswith("default-src 'none'; script-src 'self'")
            assert "frame-ancestors 'none'" in policy
            assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
            if path == "/":
                assert "https://" not in body


async def test_a_process_ends_with_its_connection(tmp_path: Path, unused_port: int) -> None:
    async with serve(tmp_path, unused_port) as served:
        await status_of(served.browser, served.server.address)
        async with served.browser.ws_connect(served.socket_url) as connection:
            assert (await read_first(connection)).data == b"hello"
            assert served.is_running()
        await served.processes_end()


async def test_a_process_that_does_not_end_is_killed(tmp_path: Path, unused_port: int) -> None:
    assert END_TIMEOUT_S < 5
    async with serve(tmp_path, unused_port, STUBBORN) as served:
        await status_of(served.browser, served.server.address)
        async with served.browser.ws_connect(served.socket_url) as connection:
            await read_first(connection)
        await served.processes_end()


async def test_processes_end_with_the_server(tmp_path: Path, unused_port: int) -> None:
    async with serve(tmp_path, unused_port) as served:
        await status_of(served.browser, served.server.address)
        connection = await served.browser.ws_connect(served.socket_url)
        await read_first(connection)
        task = asyncio.create_task(read_first(connection))
        await served.server.on_shutdown(web.Application())
        message = await task
        assert (message.type, message.data) == (WSMsgType.CLOSE, WSCloseCode.GOING_AWAY)
        await served.processes_end()


async def test_at_most_eight_reviews_are_open(tmp_path: Path, unused_port: int) -> None:
    assert MAX_SESSIONS == 8
    async with serve(tmp_path, unused_port) as served:
        await status_of(served.browser, served.server.address)
        connections = [await served.browser.ws_connect(served.socket_url) for _ in range(MAX_SESSIONS)]
        for connection in connections:
            await read_first(connection)
        async with served.browser.ws_connect(served.socket_url) as refused:
            message = await read_first(refused)
            assert (message.type, message.data) == (WSMsgType.CLOSE, WSCloseCode.TRY_AGAIN_LATER)
        assert len(list(served.processes.iterdir())) == MAX_SESSIONS
        for connection in connections:
            await connection.close()
        await served.processes_end()
        await wait_until(lambda: not served.server._n_sessions)
        async with served.browser.ws_connect(served.socket_url) as connection:
            assert (await read_first(connection)).data == b"hello"


async def test_a_message_that_no_page_sends_ends_the_connection(tmp_path: Path, unused_port: int) -> None:
    async with serve(tmp_path, unused_port) as served:
        await status_of(served.browser, served.server.address)
        for text in ("[]", "{}", "no JSON", '["stdin"]', '["stdin", 1]', '["resize", {}]', "1"):
            async with served.browser.ws_connect(served.socket_url) as connection:
                await read_first(connection)
                await connection.send_str(text)
                assert (await read_first(connection)).type is WSMsgType.CLOSE, text
        await served.processes_end()


def test_the_server_listens_on_this_machine_only_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[dict[str, Any]] = []

    def note(self: ReviewServer, debug: bool = False) -> None:
        started.append({"host": self.host, "port": self.port, "address": self.address})

    monkeypatch.setattr(ReviewServer, "serve", note)
    run(["review", "moral", "--serve"])
    assert started[0]["host"] == "127.0.0.1"
    assert started[0]["address"].startswith("http://127.0.0.1:8321/?token=")


def run(arguments: Sequence[str]) -> Any:
    return CliRunner().invoke(build_app(), arguments, catch_exceptions=True)


def test_an_audit_that_does_not_exist_is_named_before_anything_is_served() -> None:
    assert isinstance(run(["review", "unknown", "--serve"]).exception, StorageError)


def test_every_interface_needs_the_address_that_browsers_use() -> None:
    error = run(["review", "--serve", "--host", "0.0.0.0"]).exception
    assert isinstance(error, UsageError)
    assert "--public-url" in str(error)


def test_a_port_in_use_is_named(unused_port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", unused_port))
        taken.listen()
        error = run(["review", "--serve", "--port", str(unused_port)]).exception
    assert isinstance(error, UsageError)
    assert f"port {unused_port}" in str(error)
    assert "--port" in str(error)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("textual_serve", "textual_serve.server", "textual_serve.app_service", "auditor.tui.web_server"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if not Path(folder, "textual_serve").is_dir()])
    error = run(["review", "--serve"]).exception
    assert isinstance(error, UsageError)
    assert "pip install 'auditor[serve]'" in str(error)
