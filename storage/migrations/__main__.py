"""Write the revision that upgrades the tables of the last revision to those of `auditor.storage.schema`."""

from __future__ import annotations

import sys

from sqlalchemy import create_engine

from auditor.storage import migrations
from auditor.storage.schema import REVISION, SCHEMA_VERSION


def main(message: str) -> None:
    """Write the next revision by comparing the tables of the latest one with the row classes."""
    from alembic import command

    with create_engine("sqlite://").begin() as connection:
        migrations.upgrade(connection, REVISION)
        command.revision(
            migrations.alembic_config(connection), message, autogenerate=True, rev_id=f"{SCHEMA_VERSION + 1:04}"
        )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit('Describe the change in a few words: python -m auditor.storage.migrations "what changes"')
    main(sys.argv[1])
