from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from auditor.domain import ConflictKind
from auditor.errors import UsageError
from auditor.review.conflict_list import format_filter, matches_everything, parse_filter, with_next_sort
from auditor.storage.conflict_status import ConflictStatus, QueueFilter, QueueSort


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
