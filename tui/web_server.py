"""Serve the app to browsers through textual-serve; every visitor gets a separate process.

Anyone who can reach the port reviews under the rater's name, so it listens on the loopback interface by default.
textual-serve does not check who opens a WebSocket, and any page in the same browser may open one to this machine:
requests with a Host or Origin other than this server's are rejected here.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from auditor.errors import UsageError

if TYPE_CHECKING:
    from aiohttp import web
    from textual_serve.server import Server

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8321


def serve_app(
    command: Sequence[str], *, host: str = LOOPBACK, port: int = DEFAULT_PORT, public_url: str | None = None
) -> None:
    """Serve a program that runs the app, until it is interrupted.

    Args:
        command: program and arguments, as in `[sys.executable, "-m", "auditor", "review"]`; no shell quoting.
        host: interface to listen on; any other than the loopback lets others review under this name.
        public_url: URL of the server for browsers, if it is not `http://host:port`.

    Raises:
        UsageError: textual-serve is not installed.
    """
    create_server(command, host=host, port=port, public_url=public_url).serve()


def create_server(
    command: Sequence[str], *, host: str = LOOPBACK, port: int = DEFAULT_PORT, public_url: str | None = None
) -> Server:
    """Create the server without starting it; arguments and errors as for `serve_app`."""
    try:
        from aiohttp import web
        from textual_serve.server import Server
    except ImportError:
        raise UsageError(
            "--serve needs the package textual-serve.", "Install it: pip install 'auditor[serve]'"
        ) from None

    @web.middleware
    async def guard(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Refuse a request whose Host or Origin is not this server."""
        own_host = urlsplit(server.public_url).netloc
        origin = request.headers.get("Origin")
        if request.host != own_host or (origin is not None and urlsplit(origin).netloc != own_host):
            raise web.HTTPForbidden(text=f"This server answers to {server.public_url} only.")
        return await handler(request)

    class HostCheckingServer(Server):
        async def _make_app(self) -> web.Application:
            app = await super()._make_app()
            app.middlewares.append(guard)
            return app

    server = HostCheckingServer(
        shlex.join(command), host=host, port=port, title="auditor review", public_url=public_url
    )
    return server
