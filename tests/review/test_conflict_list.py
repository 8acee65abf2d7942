"""The list of conflicts: its filters, and the pace of a rater."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from auditor.domain import ConflictKind, Decision
from auditor.errors import UsageError
from auditor.review.conflict_list import (
    ReviewProgress,
    compute_pace,
    format_duration,
    format_filter,
    format_left,
    format_progress,
    matches_everything,
    parse_filter,
    with_next_sort,
)
from auditor.review.session import ReviewSession
from auditor.storage.conflict_status import ConflictStatus, QueueFilter, QueueSort
from auditor.storage.database import Database
from tests.support.review_audit import save_review_audit


def test_every_filter_key_is_parsed() -> None:
    text = 'kind:binary kind:outlier state:contested country:"United States" topic:divorce model:gpt rater:ada'
    text += " gap:>0.5 gap:<=1.5 is:todo is:flagged sort:-gap clergy law"
    assert parse_filter(text) == QueueFilter(
        words=("clergy", "law"),
        kinds=(ConflictKind.BINARY, ConflictKind.OUTLIER),
        states=(ConflictStatus.DISPUTED,),
        countries=("United States",),
        topics=("divorce",),
        models=("gpt",),
        raters=("ada",),
        min_gap=0.5,
        max_gap=1.5,
        flagged=True,
        todo=True,
        sort=QueueSort.GAP,
        reverse=True,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("knd:binary", "Did you mean 'kind'"),
        ("kind:binry", "Did you mean 'binary'"),
        ("state:opne", "Did you mean 'open'"),
        ("is:tood", "Did you mean 'todo'"),
        ("gap:0.5", "gap:>0.5"),
        ("gap:>wide", "gap:>0.5"),
        ("gap:>nan", "gap:>0.5"),
        ("gap:>3", "from 0 to 2"),
        ("kind:", "no value"),
        ('country:"Egypt', "quotation mark"),
        ("sort:size", "Known:"),
    ],
)
def test_filter_errors_explain_how_to_fix_them(text: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_filter(text)
    assert expected in str(caught.value)


def test_a_web_address_and_a_time_are_words() -> None:
    assert parse_filter("12:30").words == ("12:30",)


names = st.tuples(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    "words": st.just(()) | st.tuples(st.text("abc '\"\\", min_size=1)),
    "kinds": st.just(()) | st.tuples(st.sampled_from(ConflictKind)),
    "states": st.just(()) | st.tuples(st.sampled_from(ConflictStatus), st.sampled_from(ConflictStatus)),
    "countries": st.just(()) | names,
    "topics": st.just(()) | names,
    "models": st.just(()) | names,
    "raters": st.just(()) | names,
    "min_gap": st.none() | st.sampled_from([0.0, 0.25, 2.0]),
    "max_gap": st.none() | st.sampled_from([0.5, 1.75]),
    "flagged": st.none() | st.booleans(),
    "todo": st.none() | st.booleans(),
    "sort": st.sampled_from(QueueSort),
    "reverse": st.booleans(),
}


def test_every_field_of_a_filter_is_tested() -> None:
    assert STRATEGIES.keys() == {field.name for field in fields(QueueFilter)}


@given(st.builds(QueueFilter, **STRATEGIES))
def test_formatted_filters_parse_to_the_same_filter(queue_filter: QueueFilter) -> None:
    parsed = parse_filter(format_filter(queue_filter))
    assert set(parsed.states) == set(queue_filter.states)
    assert replace(parsed, states=()) == replace(queue_filter, states=())


@pytest.mark.parametrize(
    ("word", "states"),
    [
        ("open", {ConflictStatus.OPEN}),
        ("contested", {ConflictStatus.DISPUTED}),
        ("settled", {ConflictStatus.MAJORITY, ConflictStatus.PERSON}),
        ("settled-by-judges", {ConflictStatus.MAJORITY}),
        ("Decided-by-people", {ConflictStatus.PERSON}),
    ],
)
def test_states_have_the_words_of_the_screen(word: str, states: set[ConflictStatus]) -> None:
    queue_filter = parse_filter(f"state:{word}")
    assert set(queue_filter.states) == states
    assert set(parse_filter(format_filter(queue_filter)).states) == states


def test_sort_orders_cycle_and_match_everything() -> None:
    queue_filter = QueueFilter()
    for _ in QueueSort:
        queue_filter = with_next_sort(queue_filter)
        assert matches_everything(queue_filter)
    assert queue_filter.sort is QueueSort.INFORMATIVENESS
    assert not matches_everything(QueueFilter(todo=False))


def test_progress_counts_what_is_done_and_left_with_the_raters_pace(db: Database) -> None:
    ada = ReviewSession(db, save_review_audit(db), "ada", second_rater_share=0.0)
    grace = ReviewSession(db, ada.audit, "grace", second_rater_share=0.0)
    assert ada.load_progress() == ReviewProgress(n_total=20, n_left=20, n_by_rater=0, seconds_per_decision=None)

    for key, seconds in zip(ada.conflict_keys(), (10.0, 20.0, 3600.0), strict=False):
        item = ada.load_item(key)
        ada.decide(replace(item, shown_at=item.shown_at - seconds), Decision.LEFT)
    grace.decide(grace.load_item(grace.conflict_keys(QueueFilter(todo=True))[0]), Decision.LEFT)
    progress = ada.load_progress()
    assert (progress.n_total, progress.n_left, progress.n_done, progress.n_by_rater) == (20, 16, 4, 3)
    assert progress.seconds_per_decision == pytest.approx(20, abs=2), "the median ignores a long break"
    assert progress.seconds_left == pytest.approx(16 * 20, abs=40)


def test_second_opinions_are_left_to_the_other_rater(db: Database) -> None:
    ada = ReviewSession(db, save_review_audit(db), "ada", second_rater_share=1.0)
    grace = ReviewSession(db, ada.audit, "grace", second_rater_share=1.0)
    ada.decide(ada.load_item(ada.conflict_keys()[0]), Decision.LEFT)
    assert (ada.load_progress().n_left, grace.load_progress().n_left) == (19, 20)


def test_an_undone_decision_is_left_again(db: Database) -> None:
    session = ReviewSession(db, save_review_audit(db), "ada")
    session.decide(session.load_item(session.conflict_keys()[0]), Decision.LEFT)
    session.undo()
    assert (session.load_progress().n_left, session.load_progress().n_by_rater) == (20, 0)


def test_no_pace_from_two_decisions() -> None:
    assert compute_pace([5.0, 7.0]) is None
    assert compute_pace([5.0, 7.0, 100.0]) == 7.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (89.1, "90 s"), (91, "2 min"), (3600, "60 min"), (5401, "1 h 31 min"), (7200, "2 h")],
)
def test_durations_are_rounded_up(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_progress_in_words() -> None:
    progress = ReviewProgress(n_total=500, n_left=80, n_by_rater=300, seconds_per_decision=42.0)
    assert format_progress(progress) == "80 of 500 left · 420 done (300 by you) · 42 s each · about 56 min to go"
    assert format_left(progress) == "80 left, about 56 min"
    completed = replace(progress, n_left=0)
    assert format_progress(completed) == "0 of 500 left · 500 done (300 by you)"
    assert format_left(completed) == "0 left"
