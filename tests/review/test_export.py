from __future__ import annotations

import csv
import io
import json
from dataclasses import fields, replace

import pytest

from auditor.domain import Conflict, Decision, Rating
from auditor.review.export import RATING_COLUMNS, iter_rating_rows, write_ratings
from auditor.review.session import ReviewSession
from auditor.storage import results
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


@pytest.mark.parametrize(
    ("note", "written"),
    [
        ("=1+1", "'=1+1"),
        (" =cmd|x", "' =cmd|x"),
        ("\u200b=1+1", "'\u200b=1+1"),
        ("-2+3", "'-2+3"),
        ("+49 30", "'+49 30"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\tx", "'\tx"),
        ("plain = text", "plain = text"),
        ("", ""),
    ],
)
def test_spreadsheet_formulas_are_escaped(db: Database, note: str, written: str) -> None:
    audit = save_review_audit(db, conflicts=1)
    session = ReviewSession(db, audit, "ada")
    session.decide(session.load_item(session.conflict_keys()[0]), Decision.SCORE, score=-0.5, note=note)
    out = io.StringIO(newline="")
    write_ratings(db, audit, out)
    out.seek(0)
    (row,) = csv.DictReader(out)
    assert row["note"] == written
    assert row["score"] == "-0.5", "a negative number is a number"


def test_ratings_of_changed_scores_are_not_in_force(db: Database, audit: Audit) -> None:
    one, *more_conflicts = results.load_conflicts(db, audit.id)
    decided = next(c for c in (one, *more_conflicts) if c.id == next(iter(iter_rating_rows(db, audit)))["conflict"])
    others = [c for c in (one, *more_conflicts) if c.id != decided.id]
    results.replace_conflicts(db, audit.id, [*others, replace(decided, score_left=(decided.score_left or 0.0) + 0.01)])
    assert [row["in_force"] for row in iter_rating_rows(db, audit)] == [False, False, True]
    results.replace_conflicts(db, audit.id, [*others, decided])
    assert [row["in_force"] for row in iter_rating_rows(db, audit)] == [True, False, True]
