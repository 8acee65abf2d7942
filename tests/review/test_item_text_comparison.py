from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from auditor.review.item import DifferenceUnit, TextDifference, find_differences, find_unique_words


@pytest.mark.parametrize(
    ("text", "other", "words"),
    [
        ("Courts tolerate Divorces today.", "the court forbids divorce", ["tolerate", "today"]),
        ("it is 62 of all", "that was at a", ["62"]),
        ("离婚 合法", "离婚 违法", ["合法"]),
        ("one and the same", "one and the same", []),
    ],
    ids=["whatever their case or number", "no short words, but figures", "scripts without case", "equal texts"],
)
def test_words_of_one_side_only_are_found(text: str, other: str, words: list[str]) -> None:
    assert [text[start:stop] for start, stop in find_unique_words(text, other)] == words


@given(st.text(), st.text())
def test_spans_lie_in_the_text_in_order_and_apart(text: str, other: str) -> None:
    spans = find_unique_words(text, other)
    flat = [edge for span in spans for edge in span]
    assert flat == sorted(flat)
    assert all(0 <= start < stop <= len(text) for start, stop in spans)


def test_texts_that_share_most_words_are_compared_by_words() -> None:
    difference = find_differences(
        "Most respondents call it never justifiable.", "Most respondents call it justifiable."
    )
    assert difference.unit is DifferenceUnit.WORDS
    assert difference.spans == [(25, 30)]


def test_texts_that_share_few_words_are_compared_by_sentences() -> None:
    text = "Courts allow divorce.\nElders hesitate, though youngsters rarely do! Taxes differ."
    other_text = "Courts punish divorce. Priests preach against adultery. Shops close early on Sundays."
    difference = find_differences(text, other_text)
    assert difference.unit is DifferenceUnit.SENTENCES
    assert [text[start:end] for start, end in difference.spans] == [
        "Elders hesitate, though youngsters rarely do!",
        "Taxes differ.",
    ]


def test_nothing_is_marked_if_no_sentence_has_a_counterpart() -> None:
    assert find_differences("Courts allow divorce.", "Priests preach sermons.") == TextDifference(
        [], DifferenceUnit.ENTIRE_TEXT
    )


def test_an_empty_text_has_no_difference() -> None:
    assert find_differences("", "Courts allow divorce.").spans == []
    assert find_differences("Courts allow.", "").unit is DifferenceUnit.WORDS
