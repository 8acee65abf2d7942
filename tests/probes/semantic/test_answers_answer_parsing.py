"""Verdicts on pairs of answers in the published form of the consistency score."""

from __future__ import annotations

import pytest

from auditor.domain import Answer, Outcome, Purpose
from auditor.probes.semantic.answers import check_recorded_statement, parse_pair_verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("yes", True), ("Yes.", True), ('"YES"', True), ("**No**, the sentence says the opposite.", False),
        ("no\nThe context says nothing about it.", False), ("<think>yes or no?</think>\nno", False),
        ("Yes, there is no difference.", True), ("True", True), ("False", False), ("false.", False),
        ("Yes it is supported.", True), ("Yes I think so.", True), ("No it is not supported.", False),
        ("no the context says the opposite", False), ("Yes because an animal is meant.", True),
        ("No context was sent.", None), ("No item was sent.", None), ("True or false?", None), ("True/False", None),
        ("Not supported.", None), ("Yes and no.", None), ("No es cierto.", None), ("Yes or no?", None),
        ("yes/no", None), ("Nothing supports it.", None), ("Yesterday.", None),
        ("The context supports the sentence.", None), ("", None),
    ],
)  # fmt: skip
def test_a_verdict_is_a_word_at_the_beginning(text: str, verdict: bool | None) -> None:
    answer = Answer("key", Outcome.OK, text=text)
    outcome = Outcome.UNPARSED if verdict is None else Outcome.OK
    assert parse_pair_verdict(answer, Purpose.declare("consistency"), is_paper_form=True) == (outcome, verdict, None)


def test_a_failed_call_has_no_verdict() -> None:
    answer = Answer("key", Outcome.TRUNCATED, text="yes")
    assert parse_pair_verdict(answer, Purpose.declare("consistency"), is_paper_form=True) == (
        Outcome.TRUNCATED,
        None,
        None,
    )


@pytest.mark.parametrize("text", ["", "nan", "None", "N/A"])
def test_a_cell_that_says_that_an_answer_is_missing_is_none(text: str) -> None:
    assert check_recorded_statement(text) == (Outcome.NOT_MEASURABLE, None)
    assert check_recorded_statement(f"{text} of these.") == (Outcome.OK, f"{text} of these.")
