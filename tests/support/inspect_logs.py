"""A small synthetic audit and its Inspect logs, shared by the tests of export and import formats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from auditor.storage.database import Database, open_database
from tests.support.synthetic_audit import populate


class SyntheticDatabase(NamedTuple):
    """An open database with the audit `population`, and its URL."""

    db: Database
    url: str


@pytest.fixture(scope="session")
def made_audit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyntheticDatabase]:
    """Three models on a few cells, with every outcome among their traces."""
    url = f"sqlite:///{tmp_path_factory.mktemp('made')}/audit.db"
    with open_database(url) as db:
        populate(db, models=3, countries=8, topics=5, samples=3)
        yield SyntheticDatabase(db, url)


@pytest.fixture(scope="session")
def inspect_logs(made_audit: SyntheticDatabase, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the audit exported as Inspect logs."""
    pytest.importorskip("inspect_ai", reason="the extra 'inspect' is not installed")
    from auditor.exports.inspect_logs import export_inspect

    folder = tmp_path_factory.mktemp("logs")
    export_inspect(made_audit.db, "population", folder)
    return folder
