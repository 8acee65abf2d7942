"""The labels in memory are those of the log, whoever appends, and a key press does not read the whole log."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from auditor.domain import Ruling
from auditor.domain.labels import UNSURE, Label, LabelKind
from auditor.review.label_sampling import draw_label_sample
from auditor.review.labelling import LabellingSession, LabelQueue, LabelState
from auditor.storage import labels
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from tests.support.review_audit import save_review_audit

VALID, INVALID = Ruling.VALID.value, Ruling.INVALID.value
STEPS_PER_COUNT = 10


@pytest.fixture
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('db') / 'audits.db'}") as database:
        yield database


@pytest.fixture
def audit(db: Database) -> Audit:
    """An audit of 180 traces, with a sample of all."""
    audit = save_review_audit(db)
    draw_label_sample(db, audit, LabelKind.TRACE, 180)
    return audit


def open_state(db: Database, audit: Audit) -> LabelState:
    draw = labels.load_draw(db, audit.id, LabelKind.TRACE)
    assert draw is not None
    return LabelState(db, audit.id, LabelKind.TRACE, labels.load_sampled_contents(db, draw))


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


def test_the_state_equals_the_log_of_several_raters(db: Database, audit: Audit) -> None:
    sessions = [LabellingSession(db, audit, rater, second_rater_share=1) for rater in ("ada", "ben", "cleo")]
    state = open_state(db, audit)
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
    in_force = labels.load_labels(db, audit.id, LabelKind.TRACE)
    assert list_labels(state, sessions) == {(y.unit.parts, y.rater, y.value) for y in in_force}
    shared = {y.unit.parts for y in in_force if sum(z.unit == y.unit for z in in_force) > 1}
    assert {label.unit.parts for label in state.iter_shared()} == shared
    for session in sessions:
        assert (
            session.load_progress() == LabellingSession(db, audit, session.rater, second_rater_share=1).load_progress()
        )


def test_agreement_follows_a_label_that_is_undone(db: Database, audit: Audit) -> None:
    ada, ben = (LabellingSession(db, audit, rater, second_rater_share=1) for rater in ("ada", "ben"))
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


def append_rows(db: Database, audit: Audit, rater: str, n: int) -> None:
    """Append labels of the last sampled unit."""
    unit = labels.load_label_sample(db, audit.id, LabelKind.TRACE)[-1].unit
    label = Label(unit, rater, VALID, datetime.now(UTC))
    labels.append_labels(db, audit.id, [label] * n)


def press_label(queue: LabelQueue) -> None:
    opened = queue.load_next()
    assert opened is not None
    queue.save_value(opened, VALID)
    queue.session.load_progress()
    queue.load_own_agreement()


def press_undo(queue: LabelQueue) -> None:
    assert queue.undo() is not None
    queue.session.load_progress()
    queue.load_own_agreement()


@pytest.mark.parametrize("press", [press_label, press_undo])
def test_a_key_press_costs_as_much_after_many_labels_as_after_few(
    db: Database, audit: Audit, press: Callable[[LabelQueue], None]
) -> None:
    queue = LabelQueue(LabellingSession(db, audit, "ada"))
    costs = []
    for n_more in (0, 2000):
        for rater in ("ada", "ben"):
            append_rows(db, audit, rater, n_more)
        for _ in range(3):
            press_label(queue)
        with counted_steps() as counts:
            press(queue)
        costs.append(counts)
    (few_steps, few_queries), (many_steps, many_queries) = costs
    assert many_queries == few_queries
    assert many_steps < 1.2 * few_steps + 20


def test_a_key_press_reads_what_another_rater_appended_meanwhile(db: Database, audit: Audit) -> None:
    ada, ben = (LabellingSession(db, audit, rater, second_rater_share=0) for rater in ("ada", "ben"))
    first = ada.next_unit()
    assert first is not None
    ben.save(first.unit, VALID)
    following = ada.next_unit()
    assert following is not None
    assert following != first
    assert ada.load_progress().n_left == 179
    ben.undo()
    assert ada.load_progress().n_left == 180
