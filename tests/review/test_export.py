from __future__ import annotations

import csv
import io
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from auditor.domain import Conflict, Decision, Rating
from auditor.domain.labels import LabelKind
from auditor.imports.labels import import_labels
from auditor.review.export import (
    RATING_COLUMNS,
    iter_label_rows,
    iter_rating_rows,
    label_columns,
    write_labels,
    write_ratings,
)
from auditor.review.label_sampling import draw_label_sample
from auditor.review.labelling import LabellingSession
from auditor.review.session import ReviewSession
from auditor.storage import labels, results
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from tests.support.review_audit import save_review_audit


@pytest.fixture
def audit(db: Database) -> Audit:
    audit = save_review_audit(db, conflicts=3)
    session = ReviewSession(db, audit, "ada")
    scored_key, undone_key, _ = session.conflict_keys()
    session.decide(session.load_item(scored_key), Decision.SCORE, score=-0.5, note="=1+1")
    session.decide(session.load_item(undone_key), Decision.LEFT, note='two\nlines, "quoted"')
    session.undo()
    return audit


def test_csv_and_jsonl_contain_the_full_log(db: Database, audit: Audit) -> None:
    for form in ("csv", "jsonl"):
        out = io.StringIO(newline="")
        assert write_ratings(db, audit, out, form, keep_formulas=True) == 3
        out.seek(0)
        rows = list(csv.DictReader(out)) if form == "csv" else [json.loads(row) for row in out]
        assert list(rows[0]) == list(RATING_COLUMNS)
        assert [str(row["act"]) for row in rows] == ["decide", "decide", "undo"]
        assert [str(row["in_force"]) for row in rows] == ["True", "False", "True"]
        assert float(rows[0]["score"]) == -0.5
        assert rows[1]["note"] == 'two\nlines, "quoted"'
        assert str(rows[2]["of"]) == str(rows[1]["id"])


def test_every_field_of_a_rating_has_a_column() -> None:
    assert {field.name for field in fields(Rating)} - {"cell"} | {"country", "topic"} <= set(RATING_COLUMNS)


def test_rows_have_the_id_of_their_conflict(db: Database, audit: Audit) -> None:
    names = {
        (conflict.cell, conflict.left, conflict.right): conflict.id for conflict in results.load_conflicts(db, audit.id)
    }
    assert all(isinstance(conflict, Conflict) for conflict in results.load_conflicts(db, audit.id))
    for row in iter_rating_rows(db, audit):
        assert row["conflict"] == names[(row["country"], row["topic"]), row["left"], row["right"]]  # type: ignore[index]


WRITTEN_NOTES = {
    "=1+1": "'=1+1", " =cmd|x": "' =cmd|x", "\u200b=1+1": "'\\u200b=1+1", "＝1+1": "'＝1+1", "＠SUM(1)": "'＠SUM(1)",
    "\x1b[31mred\u202egpj": "␛[31mred\\u202egpj", "\x1b=1+1": "'␛=1+1", "-2+3": "'-2+3", "+49 30": "'+49 30",
    "@SUM(1)": "'@SUM(1)", "\tx": "'\tx", "plain = text": "plain = text", "": "",
}  # fmt: skip


def test_spreadsheet_formulas_are_escaped(db: Database) -> None:
    audit = save_review_audit(db, conflicts=len(WRITTEN_NOTES))
    session = ReviewSession(db, audit, "ada")
    for key, note in zip(session.conflict_keys(), WRITTEN_NOTES, strict=True):
        session.decide(session.load_item(key), Decision.SCORE, score=-0.5, note=note)
    out = io.StringIO(newline="")
    write_ratings(db, audit, out)
    out.seek(0)
    rows = list(csv.DictReader(out))
    assert [row["note"] for row in rows] == list(WRITTEN_NOTES.values())
    assert {row["score"] for row in rows} == {"-0.5"}, "a negative number is a number"


def test_ratings_of_changed_scores_are_not_in_force(db: Database, audit: Audit) -> None:
    one, *more_conflicts = results.load_conflicts(db, audit.id)
    decided = next(c for c in (one, *more_conflicts) if c.id == next(iter(iter_rating_rows(db, audit)))["conflict"])
    others = [c for c in (one, *more_conflicts) if c.id != decided.id]
    results.replace_conflicts(db, audit.id, [*others, replace(decided, score_left=(decided.score_left or 0.0) + 0.01)])
    assert [row["in_force"] for row in iter_rating_rows(db, audit)] == [False, False, True]
    results.replace_conflicts(db, audit.id, [*others, decided])
    assert [row["in_force"] for row in iter_rating_rows(db, audit)] == [True, False, True]


def save_labels(db: Database) -> Audit:
    """An audit with a sample, a label that was changed, and one that was undone."""
    audit = save_review_audit(db)
    draw_label_sample(db, audit, LabelKind.TRACE, 90)
    session = LabellingSession(db, audit, "ada")
    first, second = session.sample[:2]
    session.save(first.unit, "VALID", {"score_fit": True})
    session.save(first.unit, "INVALID", {"score_fit": False}, duration_s=2.5, text_hash="ab", note="=1+1")
    session.save(second.unit, "unsure")
    session.undo()
    return audit


def test_labels_are_exported_with_their_history(db: Database) -> None:
    audit = save_labels(db)
    for form in ("csv", "jsonl"):
        out = io.StringIO(newline="")
        assert write_labels(db, audit, out, LabelKind.TRACE, form, keep_formulas=True) == 4
        out.seek(0)
        rows = list(csv.DictReader(out)) if form == "csv" else [json.loads(row) for row in out]
        assert list(rows[0]) == list(label_columns(LabelKind.TRACE))
        assert [row["act"] for row in rows] == ["label", "label", "label", "undo"]
        assert [str(row["in_force"]) for row in rows] == ["False", "True", "False", "False"]
        assert [str(row["of"] or "") for row in rows] == ["", "", "", "3"]
        assert (rows[1]["verdict"], str(rows[1]["score_fit"]), rows[1]["note"]) == ("INVALID", "False", "=1+1")
        assert 0 < float(rows[1]["inclusion"]) <= 1


def test_formulas_in_labels_are_escaped(db: Database) -> None:
    out = io.StringIO(newline="")
    write_labels(db, save_labels(db), out)
    out.seek(0)
    assert [row["note"] for row in csv.DictReader(out)][1] == "'=1+1"


def test_exported_labels_can_be_imported_into_another_audit(db: Database, tmp_path: Path) -> None:
    audit = save_labels(db)
    other = save_review_audit(db, name="other")
    out = tmp_path / "labels.csv"
    with out.open("w", newline="", encoding="utf-8") as file:
        rows = [row for row in iter_label_rows(db, audit, LabelKind.TRACE) if row["in_force"]]
        writer = csv.DictWriter(file, label_columns(LabelKind.TRACE))
        writer.writeheader()
        writer.writerows(rows)
    import_labels(out, audit="other", storage=db.engine.url.render_as_string(hide_password=False))
    (label,) = labels.load_labels(db, other.id, LabelKind.TRACE)
    assert (label.rater, label.value, label.aspects) == ("ada", "INVALID", {"score_fit": False})
