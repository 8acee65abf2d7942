"""Fixtures: an audit with recorded comparisons."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.storage.database import Database, open_database
from tests.support.recorded_comparisons import import_recorded_comparisons


@pytest.fixture
def db(storage: str, tmp_path: Path) -> Database:
    """A database with the audit `judged`, whose judge errs in a tenth of its answers."""
    import_recorded_comparisons(storage, tmp_path, 0.1)
    return open_database(storage, create=False)
