"""How tables change from one release to the next: one revision a change, run by alembic in one transaction.

`python -m auditor.storage.migrations "what changes"` writes the next one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS_FOLDER = Path(__file__).parent


def upgrade(connection: Connection, to: str, versions: tuple[Path, ...] = ()) -> None:
    """Run what is missing up to a revision, inside the connection's transaction.

    Args:
        connection: a writer's, in a transaction; SQLite's with its foreign keys off.
        to: a revision, such as `0002`.
        versions: folders of revisions beside the program's own.
    """
    from alembic import command

    command.upgrade(alembic_config(connection, versions), to)


def alembic_config(connection: Connection, versions: tuple[Path, ...] = ()) -> Config:
    """What alembic needs to know."""
    from alembic.config import Config

    made = Config()
    folders = (MIGRATIONS_FOLDER / "versions", *versions)
    settings = {
        "script_location": str(MIGRATIONS_FOLDER),
        "version_locations": "\n".join(map(str, folders)),
        "path_separator": "newline",
        "file_template": "v%(rev)s_%(slug)s",
    }
    for name, value in settings.items():
        made.set_main_option(name, value.replace("%", "%%"))
    made.attributes["connection"] = connection
    return made
