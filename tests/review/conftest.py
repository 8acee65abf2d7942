from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.storage.database import Database, open_database


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path}/audits.db") as database:
        yield database
