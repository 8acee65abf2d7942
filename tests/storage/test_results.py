"""Loading one cell's rows gives the same records as loading all rows, on both engines."""

from __future__ import annotations

from auditor.domain import Cell
from auditor.storage import results
from auditor.storage.database import open_database
from tests.support.synthetic_audit import populate


def test_one_cell_has_its_own_rows_in_order(storage: str) -> None:
    with open_database(storage) as db:
        audit = populate(db, models=3, countries=3, topics=3, samples=2)
        populate(db, models=3, countries=3, topics=3, samples=2, name="other", seed=1)
        traces, verdicts = results.load_traces(db, audit.id), results.load_verdicts(db, audit.id)
        for cell in {trace.cell for trace in traces}:
            assert results.load_traces(db, audit.id, [cell]) == [trace for trace in traces if trace.cell == cell]
            assert results.load_verdicts(db, audit.id, [cell]) == [v for v in verdicts if v.cell == cell]
            expected = [v for v in verdicts if v.cell == cell and v.model == "birch"]
            assert results.load_verdicts(db, audit.id, [cell], "birch") == expected
        assert results.load_traces(db, audit.id, [Cell("Atlantis", "divorce")]) == []
