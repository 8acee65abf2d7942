"""A proxy before a PostgreSQL server that cuts connections at chosen moments."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import suppress
from enum import Enum
from types import TracebackType

COMMIT = b"COMMIT\0"
"""End of the message that ends a transaction; other messages name the isolation level READ COMMITTED."""


class Cut(Enum):
    """When the proxy cuts the connection to the client; the one to the server ends only with `BEFORE_COMMIT`."""

    NEVER = 0
    BEFORE_COMMIT = 1
    """The server receives no commit."""
    AFTER_COMMIT = 2
    """The server has committed, and the client does not hear of it."""
    NOW = 3
    """The server keeps the session, as when a network fails silently."""


class PostgresProxy:
    """Passes bytes between clients and a server on loopback ports, until `cut` says otherwise; it then cuts once."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.cut = Cut.NEVER
        self._open: list[tuple[socket.socket, socket.socket]] = []

    def url(self, server_url: str) -> str:
        """The URL of a database of the server, through the proxy."""
        return re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{self._listener.getsockname()[1]}", server_url)

    def cut_silently(self) -> None:
        """End all connections to clients, and keep those to the server."""
        for client, _ in self._open:
            _close(client)

    def __enter__(self) -> PostgresProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _close(self._listener)
        for pair in self._open:
            for connection in pair:
                _close(connection)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server_port))
            self._open.append((client, server))
            threading.Thread(target=self._pass_requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self._pass_answers, args=(client, server), daemon=True).start()

    def _pass_requests(self, client: socket.socket, server: socket.socket) -> None:
        while data := _receive(client):
            if COMMIT in data and self.cut is Cut.BEFORE_COMMIT:
                self.cut = Cut.NEVER
                _close(client)
                _close(server)
                return
            if COMMIT in data and self.cut is Cut.AFTER_COMMIT:
                self.cut = Cut.NOW
            try:
                server.sendall(data)
            except OSError:
                return

    def _pass_answers(self, client: socket.socket, server: socket.socket) -> None:
        while data := _receive(server):
            if self.cut is Cut.NOW:
                self.cut = Cut.NEVER
                _close(client)
                return
            try:
                client.sendall(data)
            except OSError:
                return


def _receive(connection: socket.socket) -> bytes:
    """The next bytes; none once the connection has ended."""
    try:
        return connection.recv(65_536)
    except OSError:
        return b""


def _close(connection: socket.socket) -> None:
    """Close a socket, also under a thread that reads from it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
