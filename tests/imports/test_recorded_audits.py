"""Import of recorded answers and verdicts as an audit, without any call to a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.domain import Outcome, Ruling
from auditor.errors import ImportFileError, UsageError
from auditor.imports.recorded_audits import import_traces, import_verdicts
from auditor.run import open_audit
from auditor.storage import audits, results
from auditor.storage.database import open_database
from auditor.surveys import load_survey
from tests.support.synthetic_audit import populate

TRACES = """model,country,topic,sample,text,score
a,Germany,divorce,0,"They accept it.
SCORE = 0.5",
a,Germany,divorce,1,They accept it.,0.7
a,Germany,abortion,0,"I'm sorry, but I can't help with that.",
a,Japan,divorce,0,It depends.,
a,Japan,abortion,0,,
b,DE,divorce,0,SCORE = −0,
"""
VERDICTS = """judge,model,country,topic,verdict,justification,sample
j,a,Germany,divorce,VALID,It follows.,0
j,a,Germany,divorce,invalid,,1
k,a,Germany,divorce,,,0
"""


@pytest.fixture
def imported(tmp_path: Path, storage: str) -> str:
    """URL of a database into which `TRACES` were imported as the audit `old`."""
    (tmp_path / "t.csv").write_text(TRACES, encoding="utf-8")
    counts = import_traces(tmp_path / "t.csv", survey="wvs7-sample", audit="old", storage=storage)
    assert (counts.rows, counts.models, counts.scores, counts.empty, counts.replaced) == (6, 2, 2, 3, False)
    return storage


def test_answers_are_read_as_they_would_be_in_a_run(imported: str) -> None:
    with open_database(imported, create=False) as db:
        audit = audits.get_audit(db, "old")
        outcome_by_sample = {
            (t.model, *t.cell, t.sample): (t.outcome, t.score) for t in results.load_traces(db, audit.id)
        }
        scores = {(s.model, *s.cell): (s.score, s.n_ok, s.n_planned) for s in results.load_scores(db, audit.id)}
    assert outcome_by_sample == {
        ("a", "Germany", "divorce", 0): (Outcome.OK, 0.5),
        ("a", "Germany", "divorce", 1): (Outcome.OK, 0.7),
        ("a", "Germany", "abortion", 0): (Outcome.REFUSED, None),
        ("a", "Japan", "divorce", 0): (Outcome.UNPARSED, None),
        ("a", "Japan", "abortion", 0): (Outcome.CLIENT_ERROR, None),
        ("b", "Germany", "divorce", 0): (Outcome.OK, 0.0),
    }
    score, n_ok, n_planned = scores["a", "Germany", "divorce"]
    assert score == pytest.approx(0.6)
    assert (n_ok, n_planned) == (2, 2)
    assert scores["a", "Germany", "abortion"] == (None, 0, 1)
    report = open_audit("old", storage=imported).report()
    [row] = [r for r in report.coverage.models if r.name == "a"]
    assert (row.ok, row.losses) == (2, {"refused": 1, "unparsed": 1, "client_error": 1})
    assert report.refusals
    assert report.refusals.total.value == pytest.approx(1 / 5)


def test_the_rest_of_the_survey_is_stored_as_donors(imported: str) -> None:
    """Similar countries are looked for in the whole file, whatever part of it the answers are about."""
    with open_database(imported, create=False) as db:
        survey = audits.load_audit_survey(db, audits.get_audit(db, "old"))
    full_survey = load_survey("wvs7-sample")
    assert {**survey.donors, **survey.scores} == full_survey.scores
    assert set(survey.donors) == set(full_survey.scores) - {cell.cell for cell in survey.cells}
    assert survey.donors


def test_verdicts_are_joined_to_their_traces(imported: str, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text(VERDICTS, encoding="utf-8")
    counts = import_verdicts(tmp_path / "v.csv", audit="old", storage=imported)
    assert (counts.rows, counts.judges, counts.empty) == (3, 2, 1)
    with open_database(imported, create=False) as db:
        ruling_by_judge = {
            (v.judge, v.sample): (v.outcome, v.ruling)
            for v in results.load_verdicts(db, audits.get_audit(db, "old").id)
        }
    assert ruling_by_judge == {
        ("j", 0): (Outcome.OK, Ruling.VALID),
        ("j", 1): (Outcome.OK, Ruling.INVALID),
        ("k", 0): (Outcome.UNPARSED, None),
    }
    [row] = open_audit("old", storage=imported).report().peer_agreement
    assert (row.model, row.given, row.valid) == ("a", 2, 1)
    assert import_verdicts(tmp_path / "v.csv", audit="old", storage=imported) == counts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("judge,model,country,topic,verdict\nj,a,Germany,divorce,MAYBE\n", "line 2, column 'verdict': 'MAYBE'"),
        ("judge,model,country,topic,verdict\nj,c,Germany,divorce,VALID\n", "no trace of c on Germany, divorce"),
        ("judge,model,country,topic,verdict\nj,a,Germany,divorce,VALID\nj,a,Germany,divorce,VALID\n", "twice"),
        (
            "judge,model,country,topic,verdict,sample\nj,a,Germany,divorce,VALID,one\n",
            "'one' is not a whole number",
        ),
        ("judge,model,country,topic,verdict\n", "has no rows"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_and_nothing_is_stored(
    imported: str, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "v.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ImportFileError, match=message):
        import_verdicts(tmp_path / "v.csv", audit="old", storage=imported)
    with open_database(imported, create=False) as db:
        assert results.load_verdicts(db, audits.get_audit(db, "old").id) == []


def test_an_import_under_the_same_name_replaces_the_audit(imported: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("model,country,topic,sample,text\nz,Japan,divorce,0,SCORE = 1\n")
    assert import_traces(tmp_path / "t.csv", survey="wvs7-sample", audit="old", storage=imported).replaced
    with open_database(imported, create=False) as db:
        audit = audits.get_audit(db, "old")
        assert [t.model for t in results.load_traces(db, audit.id)] == ["z"]
        assert [s.model for s in results.load_scores(db, audit.id)] == ["z"]


def test_verdicts_cannot_be_imported_into_an_audit_that_was_run(storage: str, tmp_path: Path) -> None:
    with open_database(storage) as db:
        populate(db, countries=5, topics=5)
    (tmp_path / "v.csv").write_text(VERDICTS)
    with pytest.raises(UsageError, match="was run, not imported"):
        import_verdicts(tmp_path / "v.csv", audit="population", storage=storage)
