"""Which answers are the same and which are right: read however they are written, refused where they are ambiguous."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from auditor.domain import AnswerKind, Task, TaskItem
from auditor.tasks import canonical_answer, is_correct, most_common_answer, parse_number, parse_quantity

NUMBERS = Task("f", AnswerKind.EXACT, "", numbers=True)
WORDS = Task("f", AnswerKind.EXACT, "")
CHOICE = Task("f", AnswerKind.CHOICE, "")
SCORE = Task("f", AnswerKind.SCORE, "", range=(0, 10))
ITEM = TaskItem("1", "?")
CITIES = TaskItem("1", "?", options=("Paris", "Rome", "A dog", "4"))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("42", "42"), ("$42", "42"), ("42 apples", "42"), ("1,234.50", "1234.5"), ("3,5", "3.5"), ("0,125", "0.125"),
        ("3/4", "0.75"), ("7/12", "7/12"), ("**42**", "42"), (r"$\boxed{3.50}$.", "3.5"), ("x = −7", "-7"),
        ("1e3", "1000"), ("45%", "45"), ("12 km/h", "12"), ("½", "0.5"), (".5", "0.5"), ("-0", "0"), ("3 m²", "3"),
        ("\u202a42\u202c", "42"), ("42\u200b", "42"),
    ],
)  # fmt: skip
def test_a_number_is_read_however_it_is_written(text: str, read: str) -> None:
    assert canonical_answer(NUMBERS, ITEM, text) == read


@pytest.mark.parametrize(
    "text",
    [
        "", "forty", "42 and 43", "7 or 8", "5-6", "1 234", "about 5", "2 1/2", "1½", "10²", "12:30", "0x10", "1e9999",
        "3 thousand", "2 dozen", "2 pi", "2π", "4x", "5!", "1/0", "2 to the fifth",
    ],
)  # fmt: skip
def test_what_may_be_another_number_is_not_read(text: str) -> None:
    assert canonical_answer(NUMBERS, ITEM, text) is None


@given(st.fractions(max_denominator=10_000))
def test_a_number_in_its_stored_form_is_the_same_number(number: Fraction) -> None:
    stored = canonical_answer(NUMBERS, ITEM, f"{number.numerator}/{number.denominator}")
    assert stored is not None
    assert parse_number(stored) == number
    assert canonical_answer(NUMBERS, ITEM, stored) == stored


@given(st.decimals(-(10**9), 10**9, places=4))
def test_separators_of_thousands_change_nothing(number: object) -> None:
    assert parse_quantity(f"{number:,}") == parse_quantity(str(number)) == Fraction(str(number))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("A", "Paris"), ("(b)", "Rome"), ("B) Rome", "Rome"), ("B. Rome.", "Rome"), ("Rome", "Rome"),
        ("**B**", "Rome"),
        ("A dog", "A dog"), ("C", "A dog"), ("option B", "Rome"), ("4", "4"), ("rome", "Rome"),
        ('"Rome"', "Rome"),
        ("B) Paris", None), ("A or B", None), ("B because", None), ("E", None), ("", None), ("Oslo", None),
        ("AB", None),
    ],
)  # fmt: skip
def test_an_option_is_named_by_its_letter_its_words_or_both(text: str, read: str | None) -> None:
    assert canonical_answer(CHOICE, CITIES, text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [("7", "7"), ("7.5", "7.5"), ("[7]", "7"), ("0", "0"), ("10", "10"), ("7/10", None), ("70%", None), ("11", None),
     ("-1", None), ("7 out of 10", None), ("6-7", None), ("seven", None)],
)  # fmt: skip
def test_a_score_is_one_plain_number_of_its_range(text: str, read: str | None) -> None:
    assert canonical_answer(SCORE, ITEM, text) == read


def test_words_are_compared_without_case_marks_and_article() -> None:
    assert {canonical_answer(WORDS, ITEM, t) for t in ("The Nile.", " nile ", "**Nile**", '"the  Nile"')} == {"nile"}
    assert canonical_answer(WORDS, ITEM, "42.0") == canonical_answer(WORDS, ITEM, "42")
    assert canonical_answer(WORDS, ITEM, "3 apples") != canonical_answer(WORDS, ITEM, "3")
    assert canonical_answer(WORDS, ITEM, "long " * 60) is None


def test_an_answer_with_a_damaged_character_is_not_read() -> None:
    """It was a wrong answer: "café" from a server that does not send UTF-8."""
    assert canonical_answer(WORDS, ITEM, "caf\ufffd") is None
    assert canonical_answer(NUMBERS, ITEM, "\ufffd5") is None
    assert canonical_answer(SCORE, ITEM, "\ufffd5") is None
    assert canonical_answer(CHOICE, CITIES, "B\ufffd") is None


def test_right_is_within_the_tolerance_and_unknown_without_a_truth() -> None:
    item = TaskItem("1", "?", truth="7/12")
    near = Task("f", AnswerKind.EXACT, "", numbers=True, tolerance=0.005)
    assert [is_correct(near, item, answer_text) for answer_text in ("0.58", "7/12", "0.6")] == [True, True, False]
    assert is_correct(NUMBERS, item, "0.58") is False
    assert is_correct(near, ITEM, "7") is None
    assert is_correct(SCORE, TaskItem("1", "?", truth="7"), "7") is None
    scored = Task("f", AnswerKind.SCORE, "", range=(0, 10), tolerance=1)
    assert [is_correct(scored, TaskItem("1", "?", truth="7"), reply) for reply in ("8", "8.5")] == [True, False]


def test_the_commonest_answer_is_none_when_there_are_two() -> None:
    assert most_common_answer(["a", "b", "a"]) == "a"
    assert most_common_answer(["a", "b"]) is None
    assert most_common_answer([]) is None
