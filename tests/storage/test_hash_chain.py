"""The hash chain verifies any sequence of ratings, also of earlier versions, and reports every change."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from sqlalchemy import insert, select, text, update

from auditor.domain import (
    Answer,
    Call,
    Conflict,
    ConflictKind,
    ConflictState,
    Decision,
    Message,
    Outcome,
    Purpose,
    Rating,
    RatingAction,
    canonical_hash,
)
from auditor.storage import audits, hash_chain, ledger, rating_log, results
from auditor.storage.call_records import ChainLink
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.database import Database, open_database
from auditor.storage.rating_log import RatingChange
from auditor.storage.row_classes import table_of
from tests.storage.test_database import CELL, save_sample_audit
from tests.storage.test_writer import record_events
from tests.support.stored_rows import add_rating

LEFT, RIGHT = "alder", "birch"
N_KINDS = len(hash_chain.append_only_kinds() | hash_chain.mutable_kinds() | hash_chain.derived_kinds())
CHANGED = hash_chain.ChainBreak("rating", "1", "is not as it was written")
KEY = ConflictKey(*CELL, LEFT, RIGHT)

numbers = st.sampled_from([-1, -1.0, -0.0, 0, 0.0, 0.25, 1, 1.0]) | st.floats(-1, 1)
durations = st.none() | st.sampled_from([0, 0.0, 3, 3.0, 3.5]) | st.floats(0, 1e6)
notes = st.text(st.characters(exclude_categories=["Cs"]))
acts = st.builds(RatingChange, st.just(RatingAction.FLAG), flagged=st.booleans(), duration_s=durations)
acts |= st.builds(RatingChange, st.just(RatingAction.NOTE), note=notes, shown=st.sampled_from(["", "survey,verdicts"]))
acts |= st.builds(
    RatingChange, st.just(RatingAction.DECIDE), decision=st.sampled_from(Decision), score=st.none() | numbers,
    swapped=st.booleans(), duration_s=durations,
)  # fmt: skip
steps = st.tuples(st.sampled_from(["ada", "grace"]), acts | st.sampled_from(["undo", "redo"]))


def save_conflict(db: Database, left: float | None, right: float | None, name: str) -> int:
    audit = save_sample_audit(db, name=name)
    new_conflict = Conflict(CELL, LEFT, RIGHT, left, right, ConflictKind.BINARY, ConflictState.OPEN, 1, 0, 0)
    results.replace_conflicts(db, audit.id, [new_conflict])
    return audit.id


def apply_step(db: Database, audit_id: int, rater: str, step: RatingChange | str) -> None:
    if isinstance(step, RatingChange):
        rating_log.append_rating(db, audit_id, KEY, rater, step)
    elif step == "undo":
        rating_log.undo(db, audit_id, rater)
    else:
        rating_log.redo(db, audit_id, rater)


SUPPRESSED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
@settings(max_examples=30, suppress_health_check=SUPPRESSED)
@given(left=st.none() | numbers, right=st.none() | numbers, taken=st.lists(steps, max_size=12))
def test_any_sequence_of_ratings_verifies(
    db: Database, left: float | None, right: float | None, taken: list[tuple[str, RatingChange | str]]
) -> None:
    """Each example adds an audit to the chain, since a database for each takes longer than the rest."""
    audit_id = save_conflict(db, left, right, f"audit {len(audits.load_audits(db))}")
    for rater, step in taken:
        apply_step(db, audit_id, rater, step)
    verification = hash_chain.verify_chain(db)
    n_ratings = sum(len(rating_log.load_entries(db, audit.id)) for audit in audits.load_audits(db))
    assert (verification.n_by_kind.get("rating", 0), verification.breaks) == (n_ratings, [])


@pytest.mark.parametrize("storage", ["postgres"], indirect=True)
def test_a_sequence_of_ratings_verifies_on_a_server(db: Database) -> None:
    """With numbers and texts that a server returns in another form than a file."""
    audit_id = save_conflict(db, -0.0, 1, "a")
    for number in (0, -0.0, 1, 0.25, None):
        decided = RatingChange(RatingAction.DECIDE, decision=Decision.SCORE, score=number, duration_s=number)
        noted = RatingChange(RatingAction.NOTE, note="ü \U0001f600 \u202e\n", shown="survey,verdicts")
        for step in (decided, noted, "undo", "undo", "redo", RatingChange(RatingAction.FLAG, flagged=True)):
            apply_step(db, audit_id, "ada", step)
    verification = hash_chain.verify_chain(db)
    assert (verification.n_by_kind["rating"], verification.breaks) == (len(rating_log.load_entries(db, audit_id)), [])


def test_a_link_of_whole_numbers_verifies_and_hashes_them_as_read_back(db: Database) -> None:
    """Hashes recomputed from an export equal those of the chain."""
    rating = Rating(CELL, LEFT, RIGHT, 1, -0.0, "ada", Decision.SCORE, datetime.now(UTC), score=0, duration_s=3)
    add_rating(db, save_sample_audit(db).id, rating)
    assert hash_chain.verify_chain(db).breaks == []
    with db.read() as connection:
        row = connection.execute(select(table_of(Rating))).mappings().one()
        *_, earlier, last = connection.execute(select(table_of(ChainLink)).order_by(table_of(ChainLink).c.id))
    content = {name: value for name, value in row.items() if value is not None}
    assert (repr(row["duration_s"]), repr(row["score_right"])) == ("3.0", "0.0")
    assert last.content == canonical_hash(content)
    row_hash = canonical_hash(["rating", str(row["id"]), last.content])
    assert last.digest == canonical_hash([earlier.digest, row["audit_id"], row_hash])


def test_an_answer_of_any_cost_verifies(storage: str) -> None:
    with open_database(storage) as db:
        for i, cost in enumerate((0, 0.0, -0.0, 3, 3.0, 0.25, None)):
            call = Call("m", "openai/m", (Message("user", f"hi {i}"),), Purpose.DIRECT)
            asyncio.run(ledger.record_answer(db, call, Answer(call.key, Outcome.OK, "a\0b", cost_usd=cost)))
        verification = hash_chain.verify_chain(db)
        assert (verification.n_by_kind["answer"], verification.breaks) == (7, [])


def test_rows_are_loaded_for_many_links_at_once(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of both kinds, in the order of the links; a row that changed is found in a later group of links, too."""
    monkeypatch.setattr(hash_chain, "LINKS_PER_QUERY", 7)
    call = Call("m", "openai/m", (Message("user", "hi"),), Purpose.DIRECT)
    rating = Rating(CELL, LEFT, RIGHT, 1, -1, "ada", Decision.SCORE, datetime.now(UTC), score=0)
    with open_database(storage) as db:
        audit_id = save_sample_audit(db).id
        for i in range(20):
            add_rating(db, audit_id, rating)
            if i == 3:
                asyncio.run(ledger.record_answer(db, call, Answer(call.key, Outcome.OK, "a")))
        statements = record_events(db, "before_cursor_execute")
        verification = hash_chain.verify_chain(db)
        assert (verification.n_by_kind["rating"], verification.n_by_kind["answer"]) == (20, 1)
        assert verification.breaks == []
        # Of the beginning 1, links 2, rows 7 in four groups; of rows without a link 5, one for each kind; responses 3.
        assert len(statements) <= 18 + N_KINDS
        with db.engine.begin() as connection:
            connection.execute(update(table_of(Rating)).where(table_of(Rating).c.id == 12).values(score=0.5))
        assert hash_chain.verify_chain(db).breaks == [hash_chain.ChainBreak("rating", "12", "is not as it was written")]


# --- ratings of earlier versions ----------------------------------------------------------------------------------

EARLIER: dict[str, Any] = {
    "country": CELL.country, "topic": CELL.topic, "left": LEFT, "right": RIGHT, "score_left": 1.0,
    "score_right": -1.0, "rater": "ada", "decision": "score", "note": "",
    "decided_at": "2026-01-01T00:00:00.000+00:00", "score": 0.0, "flagged": False, "act": "decide", "shown": "",
    "swapped": False, "duration_s": 3.0,
}  # fmt: skip


def write_earlier(db: Database, **chained_columns: object) -> None:
    """Store a rating as an earlier version did: its link hashes `chained_columns` instead of the stored ones."""
    links = table_of(ChainLink).c
    with db.read() as connection:
        number = len(connection.execute(select(table_of(Rating).c.id)).all()) + 1
    row = {"id": number, "audit_id": save_sample_audit(db, name=f"audit {number}").id, **EARLIER}
    with db.read() as connection:
        *_, head = connection.execute(select(links.digest).order_by(links.id)).scalars()
    digest = canonical_hash([head, "rating", {**row, **chained_columns}])
    link = {"kind": "rating", "row": str(number), "digest": digest}
    db.write(lambda c: c.execute(insert(table_of(Rating)), [row]))
    db.write(lambda c: c.execute(insert(table_of(ChainLink)), [link]))


WHOLE_NUMBERS: dict[str, object] = {"score": 0, "score_left": 1, "score_right": -1, "duration_s": 3}


def test_ratings_of_earlier_versions_verify(storage: str) -> None:
    chained: list[dict[str, object]]
    chained = [{}, WHOLE_NUMBERS, {"duration_s": 3}, {"score": 0, "score_right": -1}, {"score": -0.0}]
    with open_database(storage) as db:
        for columns in chained:
            write_earlier(db, **columns)
        verification = hash_chain.verify_chain(db)
        assert (verification.n_by_kind["rating"], verification.breaks) == (len(chained), [])


CHANGES: list[dict[str, object]] = [
    {"duration_s": 4.0}, {"duration_s": 3.0000001}, {"duration_s": None}, {"score": 1.0},
    {"score_left": -1.0, "score_right": 1.0}, {"note": "3"}, {"flagged": True}, {"rater": "Ada"},
    {"decided_at": "2026-01-01T00:00:00.001+00:00"},
]  # fmt: skip


@pytest.mark.parametrize("earlier", [{}, WHOLE_NUMBERS])
def test_a_changed_rating_is_reported(storage: str, earlier: dict[str, object]) -> None:
    with open_database(storage) as db:
        write_earlier(db, **earlier)
        for changed in (*CHANGES, {}):
            with db.engine.begin() as connection:
                connection.execute(update(table_of(Rating)).values({**EARLIER, **changed}))
            assert hash_chain.verify_chain(db).breaks == [CHANGED] * bool(changed), changed


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("duration_s", value) for value in ("'three'", "X'33'", "'3.0 s'", "9e999")),
        *(("of", "1"), ("of", "'x'"), ("note", "X'00'"), ("score", "NULL")),
    ],
)
def test_a_column_that_changed_its_type_is_reported(file_storage: str, column: str, value: str) -> None:
    with open_database(file_storage) as db:
        write_earlier(db)
        db.write(lambda c: c.execute(text(f'UPDATE rating SET "{column}" = {value}')))
        assert hash_chain.verify_chain(db).breaks == [CHANGED]


def test_a_link_of_a_number_as_text_is_reported(storage: str) -> None:
    """A link that hashes the text "3.0" does not match the number 3.0."""
    with open_database(storage) as db:
        write_earlier(db, duration_s="3.0")
        assert len(hash_chain.verify_chain(db).breaks) == 1
