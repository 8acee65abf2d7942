"""A real PostgreSQL server on a loopback port for the duration of the tests, and a proxy that cuts its connections."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from tests.support.patience import PATIENCE_S

OWNER = "owner"
PASSWORD = "pg-canary-0123456789"
FAST = (
    "fsync=off", "synchronous_commit=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0",
    "autovacuum=off", "max_connections=60", "shared_buffers=16MB",
)  # fmt: skip
COMMIT = b"COMMIT\0"
"""End of the message that ends a transaction; other messages name the isolation level READ COMMITTED."""


class PostgresUnavailable(Exception):
    """No server can be started; the message gives the reason."""


@contextmanager
def running_or_skip(**options: Any) -> Iterator[Postgres]:
    """A new server, as of `running`; without one, the test is skipped with the reason."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'auditor[postgres]'")
    with ExitStack() as stack:
        try:
            server = stack.enter_context(running(**options))
        except PostgresUnavailable as error:
            pytest.skip(str(error))
        yield server


@dataclass
class Postgres:
    process: ServerProcess
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def schema(self) -> str:
        """Create an empty schema, which is much quicker than a database; returns its URL with the owner's password."""
        name = f"s{next(self.numbers)}"
        with self.connect() as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self.url()}?options=-csearch_path%3D{name}"

    def database(self) -> str:
        """Create an empty database; returns its name."""
        name = f"db{next(self.numbers)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name

    def url(self, name: str = "postgres", user: str = OWNER, password: str = PASSWORD) -> str:
        return f"postgresql+psycopg://{user}:{password}@{self.process.address}:{self.process.port}/{name}"

    def connect(self, name: str = "postgres") -> Any:
        """A connection of the server's superuser."""
        import psycopg

        return psycopg.connect(self.url(name).replace("+psycopg", ""), autocommit=True)


def programs() -> Path:
    """The folder of the server's programs."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    bin_folders = [folder for folder in folders if (folder / "initdb").exists()]
    if not bin_folders and (initdb_path := shutil.which("initdb")):
        bin_folders = [Path(initdb_path).resolve().parent]
    if not bin_folders:
        raise PostgresUnavailable("no PostgreSQL server is installed: apt-get install postgresql (`make system`)")
    return bin_folders[0]


@contextmanager
def running(
    keeps_commits: bool = False, address: str = "127.0.0.1", settings: Sequence[str] = (), command: Sequence[str] = ()
) -> Iterator[Postgres]:
    """Start a new server, and stop it at the end.

    Args:
        keeps_commits: whether a commit is kept if the server crashes; else it may be lost, which is quicker.
        address: that the server listens on, and clients of its network connect to.
        settings: of the server, such as `fsync=on`, in place of those that make tests quick.
        command: runs the server, which is appended to it, as the server's user; without it, this process does.

    Raises:
        PostgresUnavailable: it cannot be started; the message gives the reason.
    """
    bin_folder, user_options = programs(), _user()
    folder = Path(tempfile.mkdtemp(prefix="auditor-pg-"))  # not pytest's folder, which other users may not enter
    try:
        (folder / "password").write_text(PASSWORD)
        if user_options:
            for path in (folder, folder / "password"):
                os.chown(path, user_options["user"], user_options["group"])
        data = folder / "data"
        auth_options = ["--no-sync", "-U", OWNER, "-A", "scram-sha-256", "--pwfile", str(folder / "password")]
        locale = ["--encoding=UTF8", "--locale=C.UTF-8"]
        words = [str(bin_folder / "initdb"), "-D", str(data), *auth_options, *locale]
        initdb_process = subprocess.run(words, capture_output=True, text=True, cwd=folder, **user_options)
        if initdb_process.returncode != 0:
            raise PostgresUnavailable(f"initdb failed: {initdb_process.stderr.strip()[-300:]}")
        with socket.socket() as free_socket:
            free_socket.bind(("127.0.0.1", 0))
            port = int(free_socket.getsockname()[1])
        if address != "127.0.0.1":
            with (data / "pg_hba.conf").open("a") as access:
                access.write("host all all samenet scram-sha-256\n")
        all_settings = [*FAST, f"listen_addresses={address}", f"port={port}", f"unix_socket_directories={folder}"]
        all_settings += ["synchronous_commit=on"] if keeps_commits else []
        options = [word for setting in (*all_settings, *settings) for word in ("-c", setting)]
        words = [*command, str(bin_folder / "postgres"), "-D", str(data), *options]
        process = ServerProcess(words, address, port, folder, {} if command else user_options)
        process.start()
        try:
            yield Postgres(process)
        finally:
            process.stop(signal.SIGQUIT)  # the data is not needed
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class ServerProcess:
    """The process of a server, which can be stopped and started again on the same port."""

    def __init__(self, words: list[str], address: str, port: int, folder: Path, user_options: dict[str, Any]) -> None:
        self.address, self.port = address, port
        self._words, self._folder, self._user_options = words, folder, user_options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self._folder, **self._user_options
            )
        self._wait(self._process, self._folder / "log")

    def stop(self, stop_signal: signal.Signals) -> None:
        """Stop the server: SIGINT ends all sessions and writes everything to disk, SIGQUIT stops it as a crash does."""
        assert self._process is not None
        self._process.send_signal(stop_signal)
        self._process.wait(PATIENCE_S)

    def _wait(self, process: subprocess.Popen[bytes], log: Path) -> None:
        import psycopg

        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                Postgres(self).connect().close()
                return
            except psycopg.OperationalError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise PostgresUnavailable(f"the server did not start: {log.read_text()[-300:]}") from None
                time.sleep(0.05)


def _user() -> dict[str, Any]:
    """Popen options for the server's user: the current user, or 'postgres' for root, since PostgreSQL refuses root."""
    if os.getuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        raise PostgresUnavailable("PostgreSQL refuses to run as root, and there is no user 'postgres'") from None
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


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
