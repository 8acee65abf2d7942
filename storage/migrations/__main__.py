"""Write the revision that upgrades the tables of the last revision to those of `auditor.storage.tables`."""

from __future__ import annotations

import sys

from sqlalchemy import create_engine

from auditor.storage import migrations
from auditor.storage.tables import REVISION, SCHEMA_VERSION


def main(message: str) -> None:
    """Write the revision with the number `SCHEMA_VERSION` by comparing the last revision's tables with the classes."""
    from alembic import command

    with create_engine("sqlite://").begin() as connection:
        if SCHEMA_VERSION > 1:
            migrations.upgrade(connection, f"{SCHEMA_VERSION - 1:04}")
        command.revision(migrations.alembic_config(connection), message, autogenerate=True, rev_id=REVISION)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit('Say in a few words what changes: python -m auditor.storage.migrations "what changes"')
    main(sys.argv[1])
