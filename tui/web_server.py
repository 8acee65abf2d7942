"""Serve the review app to browsers through textual-serve; every visitor gets a separate process.

Whoever gets in reviews under the rater's name. So the server listens on the loopback interface by default, and admits
only browsers that opened its address, which contains a token: the token is exchanged for a cookie, without which
nothing is served. Any page in the same browser may open a WebSocket to this machine, so that requests with a Host or
Origin other than this server's are rejected too.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import shlex
import sys
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp_jinja2
from aiohttp import WSCloseCode, web
from aiohttp.http_exceptions import HttpProcessingError
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from auditor.errors import UsageError
from auditor.tui.web_driver import END_TIMEOUT_S

MAX_SESSIONS = 8
"""Reviews that are open at the same time."""
MAX_TERMINAL_SIZE = 1000
"""Largest number of columns or rows that a browser may ask for."""
TEMPLATES = Path(__file__).parent / "web"
CLOSE_TIMEOUT_S = 1.0
"""Time in which a browser must confirm that its connection is closed."""
HEADERS = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NO_COOKIE_TEXT = "Open the complete address that auditor review printed when it started."
SESSION_ERRORS = (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Errors of textual-serve on a message that no page of this server sends."""


class ReviewSession(AppService):
    """One visitor's review: a process that ends when its connection does."""

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        environment = super()._build_environment(width, height)
        return environment | {"TEXTUAL_DRIVER": "auditor.tui.web_driver:BrowserDriver"}

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        """Start the process, in a group of its own: Ctrl-C reaches the server only, which then ends it."""
        self._process = process = await asyncio.create_subprocess_exec(
            *shlex.split(self.command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._build_environment(width, height),
            start_new_session=True,
        )
        self._stdin = process.stdin
        return process

    async def stop(self) -> None:
        """Ask the process to end, and kill it if it has not ended in `END_TIMEOUT_S`; what it saved is durable."""
        task, self._task = self._task, None
        if task is None or self._process is None:
            return
        await self._download_manager.cancel_app_downloads(app_service_id=self.app_service_id)
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                await self.send_meta({"type": "quit"})
                self.stdin.close()
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        await task


class ReviewServer(Server):
    """Serves a program that runs the app to browsers that know its address.

    Args:
        command: program and arguments, as in `[sys.executable, "-m", "auditor", "review"]`; run without a shell.
        announce: called with the address, which contains the token, when the server listens.
    """

    def __init__(
        self, command: Sequence[str], *, host: str, port: int, public_url: str | None, announce: Callable[[str], None]
    ) -> None:
        super().__init__(
            shlex.join(command),
            host=host,
            port=port,
            title="auditor review",
            public_url=public_url and public_url.rstrip("/"),
            templates_path=TEMPLATES,
        )
        self.token = secrets.token_urlsafe(24)
        self._cookie = secrets.token_urlsafe(24)
        self._cookie_name = f"auditor_review_{port}"  # browsers send a cookie to every port of a host
        self._announce = announce
        self._connections: set[web.WebSocketResponse] = set()
        self._n_sessions = 0

    @property
    def address(self) -> str:
        """The address that admits a browser."""
        return f"{self.public_url}/?token={self.token}"

    @property
    def _socket_url(self) -> str:
        return f"{self.public_url.replace('http', 'ws', 1)}/ws"

    def initialize_logging(self) -> None:
        """Leave logging as it is: textual-serve would print local variables of errors."""

    def serve(self, debug: bool = False) -> None:
        """Serve until it is interrupted; then end all reviews.

        Raises:
            UsageError: the host or the port cannot be used.
        """
        try:
            with redirect_stdout(sys.stderr):  # on which textual-serve prints what the reviews print to standard error
                web.run_app(
                    self._make_app(),
                    host=self.host,
                    port=self.port,
                    print=lambda _: self._announce(self.address),
                    access_log=None,
                    shutdown_timeout=END_TIMEOUT_S,
                )
        except OSError as error:
            raise UsageError(
                f"The app cannot be served on {self.host}, port {self.port}: {error.strerror}.",
                "Choose another port with --port, or another interface with --host.",
            ) from None

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard)
        app.on_response_prepare.append(self._add_headers)
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: the address is announced once the server listens. Nor tracebacks of unreadable requests."""
        logging.getLogger("aiohttp.server").addFilter(_is_no_bad_request)

    async def on_shutdown(self, app: web.Application) -> None:
        """Close all connections, which ends their reviews."""
        await asyncio.gather(*(connection.close(code=WSCloseCode.GOING_AWAY) for connection in self._connections))

    # --- who is let in

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Refuse a request to another host, from another page, or of a browser that has not opened the address."""
        host = urlsplit(self.public_url).netloc
        origin = request.headers.get("Origin")
        if request.host != host or (origin is not None and origin.partition("://")[2] != host):
            raise web.HTTPForbidden(text=f"This server answers to {self.public_url} only.")
        token = request.query.get("token")
        if request.path == "/" and token is not None and _is_secret(token, self.token):
            return self._admit(request)
        if not _is_secret(request.cookies.get(self._cookie_name, ""), self._cookie):
            raise web.HTTPForbidden(text=NO_COOKIE_TEXT)
        return await handler(request)

    def _admit(self, request: web.Request) -> web.StreamResponse:
        """Exchange the token for the cookie, and lead to the page without the token.

        By a page, not by a redirect: after a link in a mail, browsers withhold a strict cookie during redirects.
        """
        response = aiohttp_jinja2.render_template("admitted.html", request, {})
        response.set_cookie(
            self._cookie_name,
            self._cookie,
            httponly=True,
            samesite="Strict",
            secure=self.public_url.startswith("https:"),
        )
        return response

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Forbid frames, other hosts, and scripts other than the page's."""
        response.headers.update(HEADERS)
        response.headers.setdefault("Content-Security-Policy", self._content_policy())

    def _content_policy(self, script: str = "") -> str:
        """The Content-Security-Policy of a page.

        Args:
            script: source of the page's own inline script.
        """
        return (
            f"default-src 'none'; script-src 'self' {script}; style-src 'self' 'unsafe-inline'; font-src 'self'; "
            f"img-src 'self' data:; connect-src 'self' {self._socket_url}; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )

    # --- pages and sessions

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page with the terminal."""
        nonce = secrets.token_urlsafe(16)
        context = {
            "title": self.title,
            "socket_url": self._socket_url,
            "nonce": nonce,
            "max_sessions": MAX_SESSIONS,
            "full_code": int(WSCloseCode.TRY_AGAIN_LATER),
        }
        response = aiohttp_jinja2.render_template("review.html", request, context)
        response.headers["Content-Security-Policy"] = self._content_policy(f"'nonce-{nonce}'")
        return response

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a review for as long as the connection lasts."""
        websocket = web.WebSocketResponse(heartbeat=15, timeout=CLOSE_TIMEOUT_S)
        await websocket.prepare(request)
        if self._n_sessions >= MAX_SESSIONS:
            await websocket.close(code=WSCloseCode.TRY_AGAIN_LATER)
            return websocket

        async def send(data: bytes) -> None:
            with suppress(ConnectionResetError):  # read on, so that the process can end
                await websocket.send_bytes(data)

        async def close() -> None:
            await websocket.close()

        session = ReviewSession(
            self.command,
            write_bytes=send,
            write_str=websocket.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        self._connections.add(websocket)
        self._n_sessions += 1
        try:
            width, height = (
                min(max(to_int(request.query.get(name, ""), default), 1), MAX_TERMINAL_SIZE)
                for name, default in (("width", 80), ("height", 24))
            )
            await session.start(width, height)
            with suppress(*SESSION_ERRORS):
                await self._process_messages(websocket, session)
            await websocket.close()
        finally:
            self._connections.discard(websocket)
            await session.stop()
            self._n_sessions -= 1
        return websocket


def _is_no_bad_request(record: logging.LogRecord) -> bool:
    """Whether a record of aiohttp's is about something else than a request that cannot be read."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


def _is_secret(text: str, secret: str) -> bool:
    """Whether a text from a browser, possibly with undecodable bytes, is a secret."""
    return secrets.compare_digest(text.encode("utf-8", "surrogateescape"), secret.encode())
