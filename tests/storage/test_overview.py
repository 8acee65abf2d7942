"""The overview of the audits of a database."""

from __future__ import annotations

from sqlalchemy import update

from auditor.domain.audit_records import Audit
from auditor.storage.database import open_database
from auditor.storage.overview import load_overviews
from auditor.storage.row_classes import table_of
from tests.support.synthetic_audit import populate


def test_an_audit_with_an_unreadable_config_hides_no_other(file_storage: str) -> None:
    table = table_of(Audit)
    foreign_config = update(table).where(table.c.name == "foreign").values(config='{"name": "foreign", "new_key": 1}')
    with open_database(file_storage) as db:
        populate(db, name="foreign")
        populate(db, name="readable")
        db.write(lambda connection: connection.execute(foreign_config))
        readable, foreign = load_overviews(db)
    assert (foreign.audit.name, foreign.models, foreign.planned_samples) == ("foreign", 0, None)
    assert (readable.audit.name, readable.models) == ("readable", 3)
    assert readable.planned_samples
    assert foreign.traces == readable.traces
    assert foreign.conflicts == readable.conflicts
