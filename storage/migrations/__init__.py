"""Migrations of the tables: one alembic revision per change, run in one transaction.

Version 0.3.0 begins with one revision that has all tables, as the 23 before it left them. A database at the last of
these needs its new number only; the commit `UPGRADING_COMMIT` upgrades older ones to it.

`python -m auditor.storage.migrations "what changes"` writes the next revision.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS_FOLDER = Path(__file__).parent
FIRST_REVISION = "0024"
LAST_SQUASHED_REVISION = "0023"
"""The last of the revisions that `FIRST_REVISION` replaces; both have the same tables."""
UPGRADING_COMMIT = "f3b5969d9e3a"
"""The last commit whose program upgrades databases from revisions before `LAST_SQUASHED_REVISION` to it."""


def find_latest_revision() -> int:
    """Number of the latest revision."""
    return max(int(path.stem[1:5]) for path in MIGRATIONS_FOLDER.glob("versions/v*.py"))


def upgrade(connection: Connection, to: str, versions: tuple[Path, ...] = ()) -> None:
    """Run the missing revisions up to a given one, `FIRST_REVISION` or later, inside the connection's transaction.

    Args:
        connection: a writer's, in a transaction; for SQLite with foreign keys off.
        to: a revision, such as `0025`.
        versions: further folders with revisions.
    """
    from alembic import command

    command.upgrade(alembic_config(connection, versions), to)


def alembic_config(connection: Connection, versions: tuple[Path, ...] = ()) -> Config:
    """Build alembic's configuration: script folders, file names and the connection."""
    from alembic.config import Config

    config = Config()
    folders = (MIGRATIONS_FOLDER / "versions", *versions)
    settings = {
        "script_location": str(MIGRATIONS_FOLDER),
        "version_locations": "\n".join(map(str, folders)),
        "path_separator": "newline",
        "file_template": "v%(rev)s_%(slug)s",
    }
    for name, value in settings.items():
        config.set_main_option(name, value.replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
