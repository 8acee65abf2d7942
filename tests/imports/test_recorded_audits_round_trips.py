"""Exports that have an importer: what is imported again has the same figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auditor.exports.tables import TableFormat, export_tables
from auditor.imports.recorded_audits import import_scores, import_traces, import_verdicts
from auditor.storage import audits, results
from auditor.storage.database import open_database

TRACES = """model,country,topic,sample,text,score,outcome
a,Germany,divorce,0,SCORE = 0.5,,
a,Germany,divorce,1,They accept it.,0.7,
a,Germany,abortion,0,"I'm sorry, but I can't help with that.",,
a,Japan,divorce,0,So far,,truncated
a,Japan,abortion,0,,,timeout
"""
VERDICTS = """judge,model,country,topic,verdict,justification,sample
j,a,Germany,divorce,VALID,It follows.,0
j,a,Germany,divorce,INVALID,,1
k,a,Germany,divorce,,,0
"""


def load_all(storage: str, name: str) -> list[dict[Any, Any]]:
    """Traces, verdicts and scores of an audit."""
    with open_database(storage, create=False) as db:
        audit_id = audits.get_audit(db, name).id
        traces = {(t.model, t.cell, t.sample): (t.outcome, t.score, t.text) for t in results.load_traces(db, audit_id)}
        verdicts = {(v.judge, v.model, v.cell, v.sample): v.ruling for v in results.load_verdicts(db, audit_id)}
        scores = {(s.model, s.cell): (s.score, s.n_ok, s.n_planned) for s in results.load_scores(db, audit_id)}
    return [traces, verdicts, scores]


@pytest.mark.parametrize("file_format", ["jsonl", "parquet"])
def test_exported_tables_can_be_imported_again(tmp_path: Path, storage: str, file_format: TableFormat) -> None:
    (tmp_path / "t.csv").write_text(TRACES)
    (tmp_path / "v.csv").write_text(VERDICTS)
    import_traces(tmp_path / "t.csv", survey="wvs7-sample", audit="a", storage=storage)
    import_verdicts(tmp_path / "v.csv", audit="a", storage=storage)
    folder = tmp_path / "tables"
    with open_database(storage, create=False) as db:
        export_tables(db, "a", folder, file_format)
    import_traces(folder / f"trace.{file_format}", survey="wvs7-sample", audit="b", storage=storage)
    import_verdicts(folder / f"verdict.{file_format}", audit="b", storage=storage)
    assert load_all(storage, "b") == load_all(storage, "a")
    import_scores(folder / f"score.{file_format}", survey="wvs7-sample", audit="c", storage=storage)
    means = {key: score for key, (score, *_) in load_all(storage, "a")[2].items()}
    assert {key: score for key, (score, *_) in load_all(storage, "c")[2].items()} == means
