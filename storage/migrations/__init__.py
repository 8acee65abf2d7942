"""Migrations of the tables: one alembic revision per change, run in one transaction.

`python -m auditor.storage.migrations "what changes"` writes the next revision.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS_FOLDER = Path(__file__).parent


def find_latest_revision() -> int:
    """Number of the latest revision."""
    return max(int(path.stem[1:5]) for path in MIGRATIONS_FOLDER.glob("versions/v*.py"))


def upgrade(connection: Connection, to: str, versions: tuple[Path, ...] = ()) -> None:
    """Run the missing revisions up to a given one, inside the connection's transaction.

    Args:
        connection: a writer's, in a transaction; for SQLite with foreign keys off.
        to: a revision, such as `0002`.
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
