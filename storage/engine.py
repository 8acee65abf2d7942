"""SQLAlchemy engines for SQLite and PostgreSQL: durability, writer locks, and checks of database URLs."""

from __future__ import annotations

import functools
import os
import platform
import re
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from auditor.config.credential_hosts import is_loopback
from auditor.errors import ConfigError, UsageError
from auditor.redaction import register_secrets
from auditor.storage.sqlite_file import connect_immutable, refuse_unread_log

BUSY_TIMEOUT_S = 30
PRAGMAS = (f"busy_timeout={1000 * BUSY_TIMEOUT_S}", "journal_mode=WAL", "synchronous=FULL")
"""Large sorts are in temporary files, as is the default: in memory, those of a million rows take longer and 300 MB."""
WRITER_LOCK_CLASS, RUN_LOCK_CLASS = 0x61756469, 0x61756475
"""Classes of PostgreSQL's advisory locks: the one lock of all writers, and the locks of runs, one per audit."""

TRANSACTION_ID = "auditor_transaction_id"
"""Key of `Connection.info` with PostgreSQL's id of the latest writing transaction."""
LOCK_TIMEOUT, IDLE_TRANSACTION_TIMEOUT = "30s", "60s"
LOST_HOST_SETTINGS = {
    "tcp_keepalives_idle": 10,
    "tcp_keepalives_interval": 3,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""Seconds, but the last: milliseconds."""
LOCAL_HOSTS = ("", "localhost", "127.0.0.1", "::1")
REDACTED = "***"
HOW_TO_FIX_URL = "Remove it, or pass the URL in --storage or AUDITOR_STORAGE."
_CONFIG_PARAMETER_NAMES = """
host hostaddr port user dbname database password options application_name client_encoding context sslmode sslrootcert
sslcert sslkey sslcrl channel_binding require_auth gssencmode krbsrvname connect_timeout tcp_user_timeout
target_session_attrs keepalives keepalives_idle keepalives_interval keepalives_count
"""
CONFIG_PARAMETERS = frozenset(_CONFIG_PARAMETER_NAMES.split())
"""Connection parameters that a config may set. Only `host` and `hostaddr` among them can name a server."""
UNENCRYPTED_SSL_MODES = ("disable", "allow", "prefer")
"""Values of `sslmode` with which a connection may be unencrypted."""
INSERTION = re.compile(
    r"INSERT INTO (?P<target>\S+ \([^()]+\)) VALUES \((?P<values>(?:%\(\w+\)s(?:::[A-Z ]+)?(?:, |(?=\))))+)\)"
)
"""An INSERT of parameters only, as SQLAlchemy writes it for psycopg."""
SECRET_PARAMETER = re.compile(r"password|secret|token|key$", re.IGNORECASE)


def redact_url(url: str) -> str:
    """Replace the password and other secrets of a database URL, so that it can be printed or stored."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return re.sub(r"//[^/@]*@", f"//{REDACTED}@", url)
    query = {name: REDACTED if SECRET_PARAMETER.search(name) else value for name, value in parsed.query.items()}
    return parsed.set(query=query).render_as_string(hide_password=True)


def make_engine(url: str, *, foreign_keys: bool = True, immutable: bool = False) -> sa.Engine:
    """Create an engine. Its transactions take the writer's lock unless the connection has `read_only_options`.

    Args:
        url: of the database.
        foreign_keys: whether SQLite enforces foreign keys. False only for a migration, which recreates tables: dropping
            one would delete the rows that refer to it.
        immutable: True only for a SQLite file in a place where nothing can be written.

    Raises:
        UsageError: the driver that the URL names is not installed.
    """
    parsed = make_url(url)
    register_secrets(parsed.password, os.environ.get("PGPASSWORD"))
    try:
        if parsed.get_backend_name() == "sqlite":
            return _make_immutable_engine(parsed) if immutable else _make_sqlite_engine(parsed, foreign_keys)
        engine = sa.create_engine(parsed, connect_args=_connect_args(parsed), pool_pre_ping=True)
        sa.event.listen(engine, "connect", _end_session_of_lost_host)
        sa.event.listen(engine, "begin", _acquire_writer_lock)
        sa.event.listen(engine, "do_executemany", _copy_rows)
        return engine
    except (NoSuchModuleError, ImportError):
        raise UsageError(
            f"the database driver '{parsed.drivername}' is not installed.",
            "For PostgreSQL, run pip install 'auditor[postgres]' and begin the URL with postgresql+psycopg://.",
        ) from None


def read_only_options(engine: sa.Engine) -> dict[str, Any]:
    """Execution options of a connection that only reads, and sees one snapshot of the database."""
    options: dict[str, Any] = {"auditor_reads": True}
    if engine.dialect.name == "postgresql":
        options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    return options


# --- SQLite -----------------------------------------------------------------------------------------------------


def _make_sqlite_engine(url: sa.URL, foreign_keys: bool) -> sa.Engine:
    """Create an engine for a SQLite file that can be written to; sets `PRAGMAS` on each new connection."""
    engine = sa.create_engine(url)
    # Insert all rows in one statement, except with ON CONFLICT: with a statement per row, the interpreter's lock is
    # released and acquired again for every row.
    engine.dialect.use_insertmanyvalues_wo_returning = True

    def set_pragmas(connection: sqlite3.Connection, _: Any) -> None:
        connection.isolation_level = None  # transactions begin in _begin_transaction
        for pragma in (*PRAGMAS, f"foreign_keys={'ON' if foreign_keys else 'OFF'}"):
            _set_pragma(connection, pragma)

    sa.event.listen(engine, "connect", set_pragmas)
    sa.event.listen(engine, "begin", _begin_transaction)
    return engine


def _set_pragma(connection: sqlite3.Connection, pragma: str) -> None:
    """Set a pragma, and try again while another connection has the lock: SQLite does not wait for it in a new file."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute(f"PRAGMA {pragma}")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(0.01)


def _make_immutable_engine(url: sa.URL) -> sa.Engine:
    """Create an engine for a SQLite file in a place where nothing can be written."""
    path = Path(str(url.database))
    engine = sa.create_engine(url, creator=functools.partial(connect_immutable, path))

    def begin_by_ourselves(connection: sqlite3.Connection, _: Any) -> None:
        connection.isolation_level = None

    sa.event.listen(engine, "connect", begin_by_ourselves)
    sa.event.listen(engine, "begin", lambda _: refuse_unread_log(path))  # another user may have written to it
    sa.event.listen(engine, "begin", _begin_transaction)
    return engine


def _begin_transaction(connection: sa.Connection) -> None:
    """Begin a transaction, as a writer if a write may follow.

    SQLite does not wait for the lock when a reader becomes a writer; it fails at once.
    """
    connection.exec_driver_sql("BEGIN IMMEDIATE" if _is_writing(connection) else "BEGIN")


def _is_writing(connection: sa.Connection) -> bool:
    return connection.get_execution_options().get("auditor_reads") is None


# --- PostgreSQL -------------------------------------------------------------------------------------------------


def _end_session_of_lost_host(connection: Any, _: Any) -> None:
    """Let the server end the session, and with it a run's lock, some 20 s after this host has lost power or network.

    By default, a server notices after two hours. It ignores the settings where the connection is a Unix socket.
    """
    with connection.cursor() as cursor:
        cursor.execute("; ".join(f"SET SESSION {name} = {value}" for name, value in LOST_HOST_SETTINGS.items()))
    connection.commit()


def _copy_rows(cursor: Any, statement: str, rows: Sequence[Mapping[str, Any]], _: Any) -> bool:
    """Insert rows by COPY where the statement inserts nothing but values; return whether it does.

    A statement for each row takes three times the CPU time. An event of SQLAlchemy, which thus converts values to their
    columns' types before, and errors after, as in any insertion.
    """
    if (copy := _parse_insertion(statement)) is None:
        return False
    with cursor.copy(copy.statement) as rows_in_flight:
        for row in rows:
            rows_in_flight.write_row([row[name] for name in copy.parameters])
    return True


class _Copy(NamedTuple):
    """A COPY statement, and the names of the parameters of its columns."""

    statement: str
    parameters: list[str]


@functools.lru_cache
def _parse_insertion(statement: str) -> _Copy | None:
    """The COPY with the effect of an INSERT of one row; None if the INSERT does more, or is another statement."""
    if (match := INSERTION.fullmatch(statement)) is None:
        return None
    return _Copy(f"COPY {match['target']} FROM STDIN", re.findall(r"%\((\w+)\)s", match["values"]))


def _connect_args(url: sa.URL) -> dict[str, Any]:
    """Arguments for psycopg: the application's name, and TLS for other machines unless URL or environment set it."""
    connect_args: dict[str, Any] = {"application_name": describe_process()}
    host = url.host or url.query.get("host") or os.environ.get("PGHOST", "")
    is_local = isinstance(host, str) and (host in LOCAL_HOSTS or host.startswith("/"))
    if not is_local and "sslmode" not in url.query and "PGSSLMODE" not in os.environ:
        connect_args["sslmode"] = "require"
    return connect_args


def remote_servers(url: str) -> list[str]:
    """Servers on other machines that a config's database URL names, as `host` or `host:port`.

    Raises:
        ConfigError: the URL sets a parameter that could lead to another server, or allows an unencrypted connection.
    """
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() != "postgresql":
            return []
        _, settings = parsed.get_dialect()().create_connect_args(parsed)
    except (ArgumentError, NoSuchModuleError, ImportError):
        return []  # opening the database reports the error
    if forbidden := sorted(settings.keys() - CONFIG_PARAMETERS):
        raise ConfigError(
            f"storage: a configuration may not set the parameter '{forbidden[0]}' of the database URL.", HOW_TO_FIX_URL
        )
    ports = str(settings.get("port") or "").split(",")
    hosts = [host for key in ("host", "hostaddr") for host in str(settings.get(key) or "").split(",")]
    remote_hosts = [(host, ports[min(i, len(ports) - 1)]) for i, host in enumerate(hosts) if _is_remote(host)]
    if remote_hosts and settings.get("sslmode") in UNENCRYPTED_SSL_MODES:
        raise ConfigError(
            f"storage: a configuration may not set sslmode={settings['sslmode']} for {remote_hosts[0][0]}, "
            "which allows unencrypted connections.",
            HOW_TO_FIX_URL,
        )
    return [f"{f'[{host}]' if ':' in host else host}:{port}".rstrip(":").lower() for host, port in remote_hosts]


def _is_remote(host: str) -> bool:
    """Whether a PostgreSQL host is on another machine: not empty, not a Unix socket, not the loopback interface."""
    return bool(host) and not host.startswith(("/", "@")) and not is_loopback(host)


def _acquire_writer_lock(connection: sa.Connection) -> None:
    """Take the advisory lock that lets one writer in at a time, as SQLite does.

    The hash chain needs it, since it has one last link, and writers cannot deadlock. Waiting for the lock times out,
    and the server ends a transaction that holds it and stays idle. The server's id of the transaction tells later
    whether it was committed.
    """
    if _is_writing(connection):
        timeouts = {"lock_timeout": LOCK_TIMEOUT, "idle_in_transaction_session_timeout": IDLE_TRANSACTION_TIMEOUT}
        settings = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in timeouts.items())
        query = f"SELECT {settings}, pg_advisory_xact_lock({WRITER_LOCK_CLASS}, 0), txid_current()"
        connection.info[TRANSACTION_ID] = connection.exec_driver_sql(query).one()[-1]


def describe_process() -> str:
    """Name of this process as a lock's holder: `process PID on HOST`. PostgreSQL cuts it to 63 bytes."""
    return f"process {os.getpid()} on {platform.node()[:40]}"
