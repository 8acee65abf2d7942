"""Bringing a database up to this version of the program."""

from __future__ import annotations

import asyncio

from auditor import bootstrap
from auditor.storage.database import open_database, upgrade_database
from auditor.storage.schema import SchemaUpgrade


def upgrade_storage(url: str) -> SchemaUpgrade | None:
    """Upgrade a database; on a server, make all tables that are not there, those of the graph's memory too.

    Returns:
        What was done to a database of an older version; None where it was of this one, or had no tables.

    Raises:
        UsageError, StorageError: what is wrong, and how to mend it.
    """
    bootstrap.prepare_environment()
    done = upgrade_database(url)
    with open_database(url, create=False) as db:
        if db.path is None:
            from auditor.agents.checkpoints import create_checkpoint_tables

            asyncio.run(create_checkpoint_tables(db))
    return done
