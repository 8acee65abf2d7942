"""Labelling a random sample: the draw, its extension, sessions and agreement of raters, and labels in memory."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from auditor.domain import Outcome, Ruling, Trace
from auditor.domain.labels import UNSURE, Label, LabelKind, UnitToLabel
from auditor.errors import ReviewError, StorageError, UsageError
from auditor.review.conflict_list import format_progress
from auditor.review.label_sampling import draw_label_sample
from auditor.review.labelling import LabellingSession, LabelQueue, LabelState
from auditor.storage import hash_chain, labels, results
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.support.known import known
from tests.support.review_audit import save_review_audit

VALID, INVALID = Ruling.VALID.value, Ruling.INVALID.value
STEPS_PER_COUNT = 10


@pytest.fixture
def audit(db: Database) -> Audit:
    """An audit of 180 traces: 3 models, 20 cells, 3 samples."""
    return save_review_audit(db)


@pytest.fixture
def drawn(db: Database, audit: Audit) -> Audit:
    """The audit after a draw of 60 traces."""
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    return audit


def load_label_sample(db: Database, audit: Audit) -> list[UnitToLabel]:
    return labels.load_label_sample(db, audit.id, LabelKind.TRACE)


def start(db: Database, audit: Audit, rater: str = "ada", share: float = 0.2, raters: int = 2) -> LabellingSession:
    return LabellingSession(db, audit, rater, second_rater_share=share, raters_per_shared_unit=raters)


def label_all(session: LabellingSession, value: str = VALID) -> list[UnitToLabel]:
    order = []
    while (sampled := session.next_unit()) is not None:
        session.save(sampled.unit, value, duration_s=2.0)
        order.append(sampled)
    return order


# --- the draw


def test_a_sample_is_stratified_by_model_and_verdict(db: Database, audit: Audit) -> None:
    drawn = draw_label_sample(db, audit, LabelKind.TRACE, 90)
    sample = load_label_sample(db, audit)
    assert (drawn.n_sampled, drawn.n_added, drawn.n_population) == (90, 90, 180)
    assert drawn.stratify == ("model", "verdict")
    counts = Counter(sampled.stratum for sampled in sample)
    assert {stratum[0] for stratum in counts} == {"alder", "birch", "cedar"}
    for sampled in sample:
        n, size = counts[sampled.stratum], sampled.n_in_stratum
        assert n >= min(size, 10)
        assert sampled.inclusion == pytest.approx(n / size)
    assert sum(1 / sampled.inclusion for sampled in sample) == pytest.approx(180)
    assert [sampled.position for sampled in sample] == list(range(90))


def test_the_draw_is_the_same_for_the_same_audit(db: Database, audit: Audit) -> None:
    other = save_review_audit(db, name="again")
    for one in (audit, other):
        draw_label_sample(db, one, LabelKind.TRACE, 40)
    assert load_label_sample(db, audit) == load_label_sample(db, other)


def test_a_larger_sample_keeps_the_smaller_one_and_its_labels(db: Database, drawn: Audit) -> None:
    before = [sampled.unit for sampled in load_label_sample(db, drawn)]
    label_all(start(db, drawn))
    larger = draw_label_sample(db, drawn, LabelKind.TRACE, 100)
    after = load_label_sample(db, drawn)
    assert (larger.n_sampled, larger.n_added) == (100, 40)
    assert [sampled.unit for sampled in after[:60]] == before
    assert len(labels.load_labels(db, drawn.id, LabelKind.TRACE)) == 60
    assert start(db, drawn).load_progress().n_left == 40
    assert hash_chain.verify_chain(db).breaks == []


def test_a_smaller_sample_or_none_opens_the_drawn_one(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 90)
    for n in (None, 10, 90):
        drawn = draw_label_sample(db, audit, LabelKind.TRACE, n)
        assert (drawn.n_sampled, drawn.n_added) == (90, 0)


def test_other_attributes_can_make_the_strata(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 40, stratify=["region", "language"])
    assert {sampled.stratum for sampled in load_label_sample(db, audit)} == {("Western", "en"), ("Non-Western", "en")}


def test_a_sample_is_not_stratified_twice(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 40)
    with pytest.raises(UsageError, match="is stratified by model,verdict"):
        draw_label_sample(db, audit, LabelKind.TRACE, 50, stratify=["topic"])


@pytest.mark.parametrize(
    ("n", "stratify", "message"),
    [(None, None, "has no label sample of traces yet"), (20, ["modell"], "cannot be stratified by 'modell'")],
)
def test_a_draw_that_is_not_possible(
    db: Database, audit: Audit, n: int | None, stratify: list[str] | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        draw_label_sample(db, audit, LabelKind.TRACE, n, stratify=stratify)
    assert labels.load_draw(db, audit.id, LabelKind.TRACE) is None


def test_an_audit_without_the_kind_says_what_is_missing(db: Database, audit: Audit) -> None:
    with pytest.raises(ReviewError, match="has no comparison to label"):
        draw_label_sample(db, audit, LabelKind("comparison"), 20)


def test_failed_traces_are_not_drawn(db: Database, audit: Audit) -> None:
    failed = replace(results.load_traces(db, audit.id)[0], outcome=Outcome.TRUNCATED, score=None)
    save_records(db, audit.id, [failed])
    assert draw_label_sample(db, audit, LabelKind.TRACE, 500).n_population == 179


def test_verdicts_that_come_later_do_not_change_the_strata(db: Database, drawn: Audit) -> None:
    verdicts = [replace(v, judge="dogwood", ruling=Ruling.INVALID) for v in results.load_verdicts(db, drawn.id)]
    save_records(db, drawn.id, verdicts)
    draw_label_sample(db, drawn, LabelKind.TRACE, 100)
    sizes = {sampled.stratum: sampled.n_in_stratum for sampled in load_label_sample(db, drawn)}
    assert sum(sizes.values()) == 180


def trace_parts(trace: Trace) -> tuple[str, ...]:
    return (trace.model, *trace.cell, str(trace.sample))


def delete_verdicts(db: Database, audit: Audit, model: str) -> None:
    """Replace all verdicts on a model by failures."""
    verdicts = [replace(v, outcome=Outcome.TIMEOUT, ruling=None) for v in results.load_verdicts(db, audit.id)]
    save_records(db, audit.id, [verdict for verdict in verdicts if verdict.model == model])


def test_traces_without_a_verdict_are_not_drawn_if_others_have_one(db: Database, audit: Audit) -> None:
    delete_verdicts(db, audit, "alder")
    drawn = draw_label_sample(db, audit, LabelKind.TRACE, 500)
    assert (drawn.n_sampled, drawn.n_population, drawn.n_unjudged) == (120, 120, 60)
    assert {sampled.unit.parts[0] for sampled in load_label_sample(db, audit)} == {"birch", "cedar"}
    frame = known(labels.load_label_frame(db, audit.id, LabelKind.TRACE))
    assert len(frame.units) == 120


def test_an_audit_without_verdicts_can_be_labelled(db: Database, audit: Audit) -> None:
    for model in ("alder", "birch", "cedar"):
        delete_verdicts(db, audit, model)
    drawn = draw_label_sample(db, audit, LabelKind.TRACE, 500)
    assert (drawn.n_sampled, drawn.n_unjudged) == (180, 0)
    assert {sampled.stratum[1] for sampled in load_label_sample(db, audit)} == {"none"}


def change_text(db: Database, audit: Audit, trace: Trace) -> None:
    save_records(db, audit.id, [replace(trace, text="Rewritten.")])


def test_a_sample_of_changed_traces_is_neither_opened_nor_extended(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 180)
    change_text(db, audit, results.load_traces(db, audit.id)[0])
    for n in (None, 200):
        with pytest.raises(ReviewError, match=r"have changed since its label sample was drawn.* 1 have another text"):
            draw_label_sample(db, audit, LabelKind.TRACE, n)


def test_a_new_draw_keeps_labels_of_unchanged_texts(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 90)
    before = label_all(start(db, audit, share=0))
    (changed,) = [t for t in results.load_traces(db, audit.id) if trace_parts(t) == before[0].unit.parts]
    change_text(db, audit, changed)

    draw_label_sample(db, audit, LabelKind.TRACE, 90, redraw=True)
    after = load_label_sample(db, audit)
    assert {sampled.unit for sampled in after} == {sampled.unit for sampled in before}  # the numbers are permanent
    in_force = labels.load_labels(db, audit.id, LabelKind.TRACE)
    assert len(in_force) == 89
    assert [sampled.unit for sampled in label_all(start(db, audit, share=0))] == [before[0].unit]


def test_a_label_is_made_under_one_spelling_of_a_name(db: Database, drawn: Audit) -> None:
    session = start(db, drawn, "ada")
    session.save(session.sample[0].unit, VALID)
    with pytest.raises(UsageError, match="the rater 'Ada' differs from 'ada'"):
        start(db, drawn, "Ada")


def test_a_label_of_a_text_that_has_changed_since_the_draw_is_not_stored(db: Database, audit: Audit) -> None:
    draw_label_sample(db, audit, LabelKind.TRACE, 90)
    session = start(db, audit, share=0)
    first, second = session.sample[:2]
    (trace,) = [t for t in results.load_traces(db, audit.id) if trace_parts(t) == first.unit.parts]
    change_text(db, audit, trace)
    with pytest.raises(StorageError, match="not saved: the trace has another text than when the sample was drawn"):
        session.save(first.unit, VALID)
    session.save(second.unit, VALID)
    draw_label_sample(db, audit, LabelKind.TRACE, 90, redraw=True)
    assert [label.unit for label in labels.load_labels(db, audit.id, LabelKind.TRACE)] == [second.unit]


def test_the_frame_has_every_unit_with_its_stratum_when_drawn(db: Database, audit: Audit) -> None:
    assert labels.load_label_frame(db, audit.id, LabelKind.TRACE) is None
    draw_label_sample(db, audit, LabelKind.TRACE, 60)
    frame = known(labels.load_label_frame(db, audit.id, LabelKind.TRACE))
    strata = dict(frame.units)
    assert len(strata) == 180
    counts = Counter(strata.values())
    for sampled in load_label_sample(db, audit):
        assert strata[sampled.unit] == sampled.stratum
        assert counts[sampled.stratum] == sampled.n_in_stratum
    change_text(db, audit, results.load_traces(db, audit.id)[0])
    outdated = labels.load_label_frame(db, audit.id, LabelKind.TRACE)
    assert outdated == labels.LabelFrame((), is_outdated=True)


# --- a session


def test_labels_are_made_in_the_order_of_the_draw_but_for_skipped_units(db: Database, drawn: Audit) -> None:
    first, second, third, *_ = sample = load_label_sample(db, drawn)
    assert start(db, drawn).next_unit(after=first.unit, skipped={second.unit}) == third
    assert label_all(start(db, drawn)) == sample


def test_a_saved_label_is_loaded_with_what_was_shown(db: Database, drawn: Audit) -> None:
    session = start(db, drawn)
    sampled = known(session.next_unit())
    aspects = {"cultural_accuracy": True, "score_fit": False}
    session.save(sampled.unit, INVALID, aspects, duration_s=3.25, text_hash="ab" * 32, note="odd")
    (label,) = labels.load_labels(db, drawn.id, LabelKind.TRACE)
    assert (label.value, label.aspects, label.duration_s) == (INVALID, aspects, 3.25)
    assert (label.rater, label.note, label.text_hash, label.source) == ("ada", "odd", "ab" * 32, "review")
    assert session.find_label(sampled.unit) == label


def test_unknown_values_and_aspects_are_refused(db: Database, drawn: Audit) -> None:
    session = start(db, drawn)
    unit = load_label_sample(db, drawn)[0].unit
    with pytest.raises(ValueError, match="cannot be 'yes'"):
        session.save(unit, "yes")
    with pytest.raises(ValueError, match="no aspect"):
        session.save(unit, VALID, {"beauty": True})
    with pytest.raises(StorageError, match="not saved: the audit has no such trace any more"):
        session.save(unit._replace(parts=("alder", "Egypt", "divorce", "99")), VALID)
    assert labels.load_entries(db, drawn.id) == []


def test_undo_returns_the_labels_one_by_one(db: Database, drawn: Audit) -> None:
    session = start(db, drawn)
    first, second = load_label_sample(db, drawn)[:2]
    session.save(first.unit, VALID)
    session.save(second.unit, INVALID)
    session.save(first.unit, UNSURE)
    undone = [(True, known(session.undo()).value)]
    assert known(session.find_label(first.unit)).value == VALID, "the label before it"
    while (label := session.undo()) is not None:
        undone.append((label.unit == first.unit, label.value))
    assert undone == [(True, UNSURE), (False, INVALID), (True, VALID)]
    assert session.next_unit() == first
    assert hash_chain.verify_chain(db).breaks == []


def test_a_unit_stays_until_enough_raters_have_labelled_it(db: Database, drawn: Audit) -> None:
    assert len(label_all(start(db, drawn, "ada", share=0.5, raters=3))) == 60
    n_second = len(label_all(start(db, drawn, "ben", share=0.5, raters=3)))
    n_third = len(label_all(start(db, drawn, "cleo", share=0.5, raters=3)))
    assert n_second == n_third
    assert 15 <= n_second <= 45
    assert label_all(start(db, drawn, "dora", share=0.5, raters=3)) == []


def test_raters_at_work_at_once_start_with_different_units(db: Database, drawn: Audit) -> None:
    sessions = [start(db, drawn, rater, share=0) for rater in ("ada", "ben")]
    for session in sessions:
        sampled = known(session.next_unit())
        session.save(sampled.unit, VALID)
    shown = []
    for _ in range(20):
        units = [session.next_unit() for session in sessions]
        assert units[0] != units[1]
        for session, sampled in zip(sessions, map(known, units), strict=True):
            session.save(sampled.unit, VALID)
            shown.append(sampled.unit)
    assert len(set(shown)) == 40


def test_progress_counts_what_is_left_and_how_long_it_takes(db: Database, drawn: Audit) -> None:
    session = start(db, drawn, share=0)
    for duration in (4, 2, 3):
        sampled = known(session.next_unit())
        session.save(sampled.unit, VALID, duration_s=duration)
    assert (
        format_progress(session.load_progress()) == "57 of 60 left · 3 done (3 by you) · 3 s each · about 3 min to go"
    )


def test_agreement_counts_what_both_raters_decided(db: Database, drawn: Audit) -> None:
    sample = load_label_sample(db, drawn)
    for rater, n_same in (("ada", 40), ("ben", 30)):
        session = start(db, drawn, rater, share=1)
        for i, sampled in enumerate(sample[:40]):
            session.save(sampled.unit, VALID if i % 2 == (i < n_same) else INVALID)
        session.save(sample[40].unit, UNSURE)
    agreement = start(db, drawn).load_agreement()
    (pair,) = agreement.pairs
    assert dict(agreement.n_decided_by_rater) == {"ada": 40, "ben": 40}
    assert pair.raw_agreement.value == pytest.approx(0.75)
    assert pair.raw_agreement.reason == "an interval needs at least 5 countries and 5 topics, but there are 4 topics"
    assert pair.kappa.value == pytest.approx(0.5)


@pytest.fixture
def sampled_audit(db: Database, audit: Audit) -> Audit:
    """The audit with a sample of all traces."""
    draw_label_sample(db, audit, LabelKind.TRACE, 180)
    return audit


def list_labels(state: LabelState, sessions: list[LabellingSession]) -> set[tuple[Any, ...]]:
    """The labels that a state has, by rater and by unit."""
    by_rater = {
        (unit.parts, session.rater, label.value)
        for session in sessions
        for unit, label in state.labels_of_rater(session.rater).items()
    }
    by_unit = {
        (sampled.unit.parts, rater, label.value)
        for sampled in sessions[0].sample
        for rater, label in state.labels_of_unit(sampled.unit).items()
    }
    assert by_unit == by_rater
    return by_unit


def test_the_state_equals_the_log_of_several_raters(db: Database, sampled_audit: Audit) -> None:
    sessions = [LabellingSession(db, sampled_audit, rater, second_rater_share=1) for rater in ("ada", "ben", "cleo")]
    draw = known(labels.load_draw(db, sampled_audit.id, LabelKind.TRACE))
    state = LabelState(db, sampled_audit.id, LabelKind.TRACE, labels.load_sampled_contents(db, draw))
    chance = random.Random(26)
    for _ in range(150):
        session = chance.choice(sessions)
        if chance.random() < 0.3:
            session.undo()
        else:
            session.save(chance.choice(session.sample[:12]).unit, chance.choice([VALID, INVALID, UNSURE]))
        if chance.random() < 0.5:
            state.refresh()
    state.refresh()
    in_force = labels.load_labels(db, sampled_audit.id, LabelKind.TRACE)
    assert list_labels(state, sessions) == {(y.unit.parts, y.rater, y.value) for y in in_force}
    shared = {y.unit.parts for y in in_force if sum(z.unit == y.unit for z in in_force) > 1}
    assert {label.unit.parts for label in state.iter_shared()} == shared
    for session in sessions:
        assert (
            session.load_progress()
            == LabellingSession(db, sampled_audit, session.rater, second_rater_share=1).load_progress()
        )


def test_agreement_follows_a_label_that_is_undone(db: Database, sampled_audit: Audit) -> None:
    ada, ben = (LabellingSession(db, sampled_audit, rater, second_rater_share=1) for rater in ("ada", "ben"))
    for session in (ada, ben):
        for sampled in session.sample[:6]:
            session.save(sampled.unit, VALID)
    assert [pair.raw_agreement.n for pair in ada.load_agreement().pairs] == [6]
    ben.undo()
    assert [pair.raw_agreement.n for pair in ada.load_agreement().pairs] == [5]


# --- cost of a key press


@contextmanager
def counted_steps() -> Iterator[list[int]]:
    """Count steps of SQLite's virtual machine, in units of `STEPS_PER_COUNT`, and queries."""
    counts = [0, 0]

    def count_step() -> int:
        counts[0] += 1
        return 0  # the query goes on

    def start_query(connection: Any, *_: Any) -> None:
        raw: sqlite3.Connection = connection.connection.dbapi_connection
        raw.set_progress_handler(count_step, STEPS_PER_COUNT)
        counts[1] += 1

    event.listen(Engine, "before_cursor_execute", start_query)
    try:
        yield counts
    finally:
        event.remove(Engine, "before_cursor_execute", start_query)


def press_label(queue: LabelQueue) -> None:
    opened = known(queue.load_next())
    queue.save_value(opened, VALID)
    queue.session.load_progress()
    queue.load_own_agreement()


def press_undo(queue: LabelQueue) -> None:
    assert queue.undo() is not None
    queue.session.load_progress()
    queue.load_own_agreement()


@pytest.mark.parametrize("press", [press_label, press_undo])
def test_a_key_press_costs_as_much_after_many_labels_as_after_few(
    db: Database, sampled_audit: Audit, press: Callable[[LabelQueue], None]
) -> None:
    queue = LabelQueue(LabellingSession(db, sampled_audit, "ada"))
    last_unit = labels.load_label_sample(db, sampled_audit.id, LabelKind.TRACE)[-1].unit
    costs = []
    for n_more in (0, 300):
        for rater in ("ada", "ben"):
            labels.append_labels(db, sampled_audit.id, [Label(last_unit, rater, VALID, datetime.now(UTC))] * n_more)
        for _ in range(3):
            press_label(queue)
        with counted_steps() as counts:
            press(queue)
        costs.append(counts)
    (few_steps, few_queries), (many_steps, many_queries) = costs
    assert many_queries == few_queries
    assert many_steps < 1.2 * few_steps + 20


def test_a_key_press_reads_what_another_rater_appended_meanwhile(db: Database, sampled_audit: Audit) -> None:
    ada, ben = (LabellingSession(db, sampled_audit, rater, second_rater_share=0) for rater in ("ada", "ben"))
    first = known(ada.next_unit())
    ben.save(first.unit, VALID)
    following = known(ada.next_unit())
    assert following != first
    assert ada.load_progress().n_left == 179
    ben.undo()
    assert ada.load_progress().n_left == 180
