"""Upgrade a database to this version of the program."""

from __future__ import annotations

import asyncio

from auditor import bootstrap
from auditor.storage.database import open_database, upgrade_database
from auditor.storage.schema import SchemaUpgrade


def upgrade_storage(url: str) -> SchemaUpgrade | None:
    """Upgrade a database; on a server, also create missing tables, with those of the graph's checkpoints.

    Returns:
        The upgrade of a database of an older version; None if it had this version's tables, or none.

    Raises:
        UsageError, StorageError: the message says what is wrong, and how to fix it.
    """
    bootstrap.prepare_environment()
    schema_upgrade = upgrade_database(url)
    with open_database(url, create=False) as db:
        if db.path is None:
            from auditor.agents.checkpoints import create_checkpoint_tables  # loads langgraph (0.3 s)

            asyncio.run(create_checkpoint_tables(db))
    return schema_upgrade
