"""Exports that have an importer: what is imported again has the same figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auditor.exports.inspect_logs import export_inspect
from auditor.exports.tables import TableFormat, export_tables
from auditor.imports.recorded_audits import import_scores, import_traces, import_verdicts
from auditor.imports.task_answers import import_task_answers
from auditor.probes.distribution.opinion_imports import import_opinions
from auditor.probes.distribution.opinions import Opinion
from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.probes.logic.comparison_rows import load_item_sets
from auditor.probes.logic.figures.schema import LogicReport
from auditor.run import open_audit
from auditor.storage import audits, results
from auditor.storage.database import open_database
from auditor.storage.records import load_records
from tests.support.opinion_surveys import write_opinion_survey

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


def test_exported_comparisons_can_be_imported_again(tmp_path: Path, storage: str) -> None:
    rows = [
        ("j", "a", "b", "standard", "A", 0), ("j", "b", "c", "standard", "A", 0), ("j", "a", "c", "standard", "B", 0),
        ("j", "b", "a", "standard", "B", 0), ("j", "a", "b", "negated", "A", 0), ("j", "a", "b", "standard", "", 1),
        ("people", "a", "b", "standard", "A", 0),
    ]  # fmt: skip
    lines = [
        f"{judge},Which is worse?,{a},{b},{relation},{decision},{n}" for judge, a, b, relation, decision, n in rows
    ]
    header = "judge,context,item_a,item_b,relation,decision,sample"
    (tmp_path / "c.csv").write_text("\n".join([header, *lines]) + "\n")
    import_comparisons(tmp_path / "c.csv", audit="a", storage=storage, people="people")
    folder = export(storage, "a", tmp_path)
    import_comparisons(folder / "comparison.jsonl", audit="b", storage=storage, items=folder / "comparison_item.jsonl")
    reports = [open_audit(name, storage=storage).report().find(LogicReport) for name in ("a", "b")]
    assert reports[0] is not None
    assert reports[1] is not None
    assert reports[1].judges == reports[0].judges
    with open_database(storage, create=False) as db:
        texts = [
            [[item.text for item in item_set.items] for item_set in load_item_sets(db, audits.get_audit(db, name).id)]
            for name in ("a", "b")
        ]
    assert texts[1] == texts[0]


def test_exported_opinions_can_be_imported_again(tmp_path: Path, storage: str) -> None:
    survey = str(write_opinion_survey(tmp_path))
    rows = ["m,Japan,divorce,sampled,up,0,5", "m,Japan,divorce,sampled,down,0,2", "m,Japan,taxes,sampled,up,0,99"]
    (tmp_path / "o.csv").write_text("\n".join(["model,country,topic,mode,order,sample,answer", *rows]) + "\n")
    import_opinions(tmp_path / "o.csv", survey=survey, audit="a", storage=storage)
    folder = export(storage, "a", tmp_path)
    import_opinions(folder / "opinion.jsonl", survey=survey, audit="b", storage=storage)
    with open_database(storage, create=False) as db:
        opinions = [load_records(db, audits.get_audit(db, name).id, Opinion) for name in ("a", "b")]
    assert len(opinions[0]) == 3
    assert opinions[1] == opinions[0]


def test_exported_answers_to_a_task_can_be_imported_again(tmp_path: Path, storage: str) -> None:
    (tmp_path / "i.csv").write_text("id,question,options,truth\nmoon,How many?,none|one,one\nsun,A star?,yes|no,\n")
    (tmp_path / "a.csv").write_text("model,id,sample,answer\nm,moon,0,A\nm,moon,1,one\nm,sun,0,perhaps\nn,sun,0,\n")
    answer_format = {"answer": "choice"}
    import_task_answers(
        tmp_path / "a.csv", audit="a", items=tmp_path / "i.csv", answer_format=answer_format, storage=storage
    )
    verdicts = ["judge,model,id,verdict,sample", "j,m,moon,VALID,0", "j,m,moon,INVALID,1"]
    (tmp_path / "v.csv").write_text("\n".join(verdicts) + "\n")
    import_verdicts(tmp_path / "v.csv", audit="a", storage=storage)
    folder = export(storage, "a", tmp_path)
    import_task_answers(
        folder / "trace.jsonl",
        audit="b",
        items=folder / "task_item.jsonl",
        answer_format=answer_format,
        storage=storage,
    )
    import_verdicts(folder / "verdict.jsonl", audit="b", storage=storage)
    assert load_all(storage, "b") == load_all(storage, "a")
    tasks = [open_audit(name, storage=storage).report().task for name in ("a", "b")]
    assert tasks[0] is not None
    assert tasks[1] is not None
    assert (tasks[1].models, tasks[1].items) == (tasks[0].models, tasks[0].items)
    assert tasks[0].telling is not None
    # sample 0 is wrong and judged VALID, sample 1 is right and judged INVALID
    assert [(row.right.value, row.wrong.value) for row in tasks[0].telling.judges] == [(0.0, 1.0)]
    assert tasks[1].telling == tasks[0].telling


def export(storage: str, name: str, folder: Path) -> Path:
    """Export the tables of an audit as JSONL, and return their folder."""
    with open_database(storage, create=False) as db:
        export_tables(db, name, folder / "tables", "jsonl")
    return folder / "tables"


def test_logs_of_answers_to_a_task_can_be_imported_again(tmp_path: Path, storage: str) -> None:
    (tmp_path / "items.csv").write_text(
        "id,question,options,truth,context\n1,Is it so?,yes|no|perhaps,B,A story.\n2,And this?,yes|no|perhaps,A,\n"
    )
    (tmp_path / "answers.csv").write_text(
        "model,id,sample,answer,text,outcome\na,1,0,B,So it is.,\na,1,1,C,,\na,2,0,A,,\nb,1,0,A,,\nb,2,0,,,timeout\n"
    )
    import_task_answers(
        tmp_path / "answers.csv", audit="a", items=tmp_path / "items.csv", answer_format={"answer": "choice"},
        storage=storage,
    )  # fmt: skip
    with open_database(storage, create=False) as db:
        export_inspect(db, "a", tmp_path / "logs")
    import_task_answers(tmp_path / "logs", audit="b", storage=storage)
    reports = [open_audit(name, storage=storage).report().task for name in ("a", "b")]
    assert reports[0] is not None
    assert reports[1] is not None
    assert [row.accuracy for row in reports[1].models] == [row.accuracy for row in reports[0].models]
    answers = []
    for name in ("a", "b"):
        with open_database(storage, create=False) as db:
            traces = results.load_traces(db, audits.get_audit(db, name).id)
        answers.append({(trace.model, trace.cell, trace.sample): trace.answer for trace in traces})
    assert answers[1] == answers[0]
