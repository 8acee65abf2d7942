"""Errors of database drivers: what they mean, and the error that a user gets for them, with how to fix it."""

from __future__ import annotations

import sqlite3
from typing import TypeGuard

from sqlalchemy import Engine
from sqlalchemy.exc import DatabaseError, DataError, DBAPIError, OperationalError

from auditor.errors import NotAllowedError, StorageError, UnstorableError
from auditor.storage.engine import redact_url

INSUFFICIENT_PRIVILEGE = "42501"
"""PostgreSQL's SQLSTATE for an action that the role may not do."""
LOCK_NOT_AVAILABLE = "55P03"
"""PostgreSQL's SQLSTATE for a lock that was not obtained within `lock_timeout`."""
CONNECTION_SQLSTATES = ("08", "57P01", "57P02", "57P03", "57P05")
"""Beginnings of PostgreSQL's SQLSTATEs for a connection that ended: broken, or ended by the server."""
UNSTORABLE_SQLSTATES = ("22", "54")
"""PostgreSQL's SQLSTATE classes for values that it cannot store: data exceptions, and limits of a row or an index."""
UNSTORABLE_MESSAGES = ("binding parameter", "cannot adapt type")
"""Fragments of the SQLite and PostgreSQL drivers' messages about a value of an unknown type."""
DISK_MESSAGES = ("full", "I/O", "No space left")
"""Fragments of messages about a disk that cannot be written to."""
PRIMARY_CODE_MASK = 0xFF
"""The bits of SQLite's extended result codes that hold the primary one."""


def as_storage_error(engine: Engine, error: BaseException) -> BaseException:
    """Convert an error of a job to the one that its caller gets."""
    if reason := _unstorable_reason(error):
        how_to_fix = "Correct it in its source, then run the same command again."
        return UnstorableError(f"the database {database_name(engine)} cannot store a value: {reason}.", how_to_fix)
    return database_error(engine, error) if _is_database_failure(error) else error


def _unstorable_reason(error: BaseException) -> str | None:
    """Why the values of a row cannot be stored, though other rows can; None for any other error."""
    if isinstance(error, UnicodeEncodeError):
        return f"a string contains U+{ord(error.object[error.start]):04X}, which is not a Unicode character"
    if isinstance(error, OverflowError):
        return "a whole number is larger than 64 bits"
    if not isinstance(error, DBAPIError):
        return None
    reason = str(error.orig).strip().partition("\n")[0].rstrip(".")
    is_refused = isinstance(error, DataError) or (_sqlstate(error) or "").startswith(UNSTORABLE_SQLSTATES)
    return reason if is_refused or any(fragment in reason for fragment in UNSTORABLE_MESSAGES) else None


def _is_database_failure(error: BaseException) -> TypeGuard[DBAPIError]:
    """Whether the database failed or refused access, as opposed to an error in the statement.

    A damaged file raises `DatabaseError` itself, not one of its subclasses.
    """
    is_refused = isinstance(error, DBAPIError) and _sqlstate(error) == INSUFFICIENT_PRIVILEGE
    return is_refused or isinstance(error, OperationalError) or type(error) is DatabaseError


def is_disconnected(error: BaseException) -> bool:
    """Whether a server could not be connected to, or the connection to it ended. It may be unknown what was committed.

    Without a SQLSTATE, psycopg's OperationalError did not come from the server.
    """
    if not isinstance(error, DBAPIError) or isinstance(error.orig, sqlite3.Error):
        return False
    if error.connection_invalidated:
        return True
    sqlstate = _sqlstate(error)
    return isinstance(error, OperationalError) and (sqlstate is None or sqlstate.startswith(CONNECTION_SQLSTATES))


def is_locked(error: BaseException) -> bool:
    """Whether another program kept its lock on the database for longer than one statement waits for it."""
    if not isinstance(error, DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        return getattr(error.orig, "sqlite_errorcode", 0) & PRIMARY_CODE_MASK == sqlite3.SQLITE_BUSY
    return _sqlstate(error) == LOCK_NOT_AVAILABLE


def _sqlstate(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def describe_driver_error(error: DBAPIError) -> str:
    """The driver's message on one line, without a full stop."""
    return " ".join(str(error.orig).split()).rstrip(".?")


def database_error(engine: Engine, error: DBAPIError) -> StorageError:
    """Build the error for a database that cannot be read or written to any more, with how to fix it."""
    driver_message = describe_driver_error(error)
    name = database_name(engine)
    if _sqlstate(error) == INSUFFICIENT_PRIVILEGE:
        how_to_fix = "Ask its owner for the reviewer or runner role (docs/team.md)."
        return NotAllowedError(
            f"the user '{engine.url.username}' may not do this in the database {name}: {driver_message}.", how_to_fix
        )
    if is_locked(error):
        how_to_fix = "Wait until the program that writes to it has ended, or end it. Then run the same command again."
        return StorageError(f"the database {name} is locked by another program: {driver_message}.", how_to_fix)
    if "malformed" in driver_message or "not a database" in driver_message:
        how_to_fix = "Make a copy, then recover what is left with: sqlite3 FILE .recover"
    elif "readonly" in driver_message:
        how_to_fix = "Copy it, and all files whose names begin with its name, to a writable folder."
    elif any(fragment in driver_message for fragment in DISK_MESSAGES):
        how_to_fix = "Free space on the disk, then run the same command again. Recorded answers are kept."
    elif is_disconnected(error):
        how_to_fix = "Check that its server is running and can be reached, then try again. What was saved is kept."
    else:
        how_to_fix = "Correct the cause, then run the same command again. Recorded answers are kept."
    return StorageError(f"the database {name} cannot be used: {driver_message}.", how_to_fix)


def open_error(engine: Engine, error: DBAPIError) -> StorageError:
    """Build the error for a database that cannot be opened, with how to fix it."""
    if is_locked(error):
        return database_error(engine, error)
    file = engine.url.database if engine.dialect.name == "sqlite" else None
    location = file or redact_url(engine.url.render_as_string(hide_password=False))
    running = "" if file else "that its server is running, "
    how_to_fix = f"Check the name in --storage, {running}and that this user may open it."
    return StorageError(f"{location}: cannot be opened as a database: {describe_driver_error(error)}.", how_to_fix)


def database_name(engine: Engine) -> str:
    """Name of a database for messages: the path of its file, or its name on the server."""
    return engine.url.database or engine.url.render_as_string()
