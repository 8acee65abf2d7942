"""Answers of the probe `distribution`: what is read as shares, and which outcome anything else gets."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from auditor.domain import Answer, Call, Cell, LogprobMeasure, Message, Outcome, Purpose
from auditor.probes.distribution.opinion_questions import OpinionQuestion, OpinionSubject, point_labels
from auditor.probes.distribution.opinions import Opinion, OpinionMode, ScaleOrder
from auditor.probes.distribution.stage import build_repair_call, merge_repaired_opinion, parse_opinion
from auditor.surveys import SurveyDistributions
from auditor.surveys.distributions import AnswerPoint

SCALE = SurveyDistributions(
    points=tuple(AnswerPoint(name=str(i), score=i - 2) for i in range(1, 4)), is_ordered=True, cells=()
)
CHOICES = SurveyDistributions(
    points=(AnswerPoint(name="wrong", score=-1), AnswerPoint(name="right", score=1)), is_ordered=False, cells=()
)
MESSAGES = (Message("system", "s"), Message("user", "u"))


def question(mode: str, order: str = "up") -> OpinionQuestion:
    """A question about one cell."""
    return OpinionQuestion(OpinionSubject(Cell("Japan", "divorce")), OpinionMode(mode), ScaleOrder(order), 0)


def call(measure: LogprobMeasure | None = None) -> Call:
    return Call(
        name="m", model="openai/m", messages=MESSAGES, purpose=Purpose.declare("opinion"), params={}, measure=measure
    )


def parse(
    text: str,
    mode: str,
    order: str = "up",
    distributions: SurveyDistributions = SCALE,
    measure: LogprobMeasure | None = None,
) -> Opinion:
    answer = Answer("key", Outcome.OK, text=text)
    return parse_opinion("m", question(mode, order), distributions, call(measure), answer, 0.5)


def test_counts_are_shares_in_the_order_of_the_scale() -> None:
    up, down = (parse('{"counts": [10, 30, 60]}', "verbalized", order) for order in ("up", "down"))
    assert up.shares == pytest.approx((0.1, 0.3, 0.6))
    assert down.shares == pytest.approx((0.6, 0.3, 0.1))
    assert (up.n, up.is_rescaled, up.key) == (None, False, "key")


@pytest.mark.parametrize("counts", [[10, 30, 50], [10, 40, 60], [20, 30, 41]])
def test_counts_that_add_up_to_90_to_110_are_divided_by_their_sum(counts: list[int]) -> None:
    opinion = parse(json.dumps({"counts": counts}), "verbalized")
    assert opinion.shares == pytest.approx([count / sum(counts) for count in counts])
    assert opinion.is_rescaled


@pytest.mark.parametrize(
    "text",
    [
        '{"counts": [50, 50]}', '{"counts": [25, 25, 25, 25]}', '{"counts": [-10, 50, 60]}',
        '{"counts": [NaN, 50, 50]}', '{"counts": [0, 0, 0]}', '{"counts": [10, 30, 40]}', '{"counts": [50, 50, 50]}',
        '{"counts": [33.3, 33.3, 33.4]}', "about half of them",
    ],
)  # fmt: skip
def test_other_counts_are_unparsed(text: str) -> None:
    opinion = parse(text, "verbalized")
    assert (opinion.outcome, opinion.shares) == (Outcome.UNPARSED, None)


@pytest.mark.parametrize(("text", "position"), [('{"answer": 3}', 2), ('{"answer": "1"}', 0)])
def test_a_single_answer_is_a_share_of_1(text: str, position: int) -> None:
    for order in ("up", "down"):
        opinion = parse(text, "sampled", order)
        assert opinion.shares == tuple(float(i == position) for i in range(3))
        assert opinion.n == 1


@pytest.mark.parametrize("text", ['{"answer": 4}', '{"answer": 0}', '{"answer": "2-3"}', '{"answer": 2.5}', "2 or 3"])
def test_an_answer_off_the_scale_is_unparsed(text: str) -> None:
    assert parse(text, "sampled").outcome is Outcome.UNPARSED


def test_choices_are_numbered_as_shown() -> None:
    assert point_labels(CHOICES, ScaleOrder.DOWN) == ["1", "2"]
    assert parse('{"answer": 1}', "sampled", "down", CHOICES).shares == (0.0, 1.0)


@pytest.mark.parametrize("mode", ["verbalized", "sampled"])
def test_a_refusal_is_no_opinion(mode: str) -> None:
    opinion = parse("I'm sorry, but I can't help with that.", mode)
    assert (opinion.outcome, opinion.shares) == (Outcome.REFUSED, None)


def test_failed_calls_keep_their_outcome() -> None:
    for outcome in (Outcome.TRUNCATED, Outcome.TIMEOUT, Outcome.OVER_BUDGET):
        answer = Answer("key", outcome, text='{"counts": [10, 30, 60]}')
        opinion = parse_opinion("m", question("verbalized"), SCALE, call(), answer, 0.5)
        assert (opinion.outcome, opinion.shares) == (outcome, None)


def test_letters_are_divided_by_their_mass_and_a_letter_that_is_not_listed_has_no_share() -> None:
    tokens = [["A", math.log(0.3)], [" A", math.log(0.1)], ["C", math.log(0.4)], ["the", math.log(0.1)]]
    opinion = parse(json.dumps(tokens), "tokens", "down", measure=LogprobMeasure.CHOICE)
    assert opinion.shares == pytest.approx((0.5, 0.0, 0.5))
    assert opinion.mass == pytest.approx(0.8)


def test_little_mass_or_no_measure_is_not_measurable() -> None:
    tokens = json.dumps([["A", math.log(0.3)], ["the", math.log(0.6)]])
    opinion = parse(tokens, "tokens", measure=LogprobMeasure.CHOICE)
    assert (opinion.outcome, opinion.shares) == (Outcome.NOT_MEASURABLE, None)
    assert opinion.mass == pytest.approx(0.3)
    unasked = parse_opinion("m", question("tokens"), SCALE, None, None, 0.5)
    assert (unasked.outcome, unasked.key) == (Outcome.NOT_MEASURABLE, None)


def test_continuations_are_log_probabilities_by_letter() -> None:
    text = json.dumps([math.log(p) for p in (0.2, 0.2, 0.4)])
    opinion = parse(text, "tokens", measure=LogprobMeasure.CONTINUATION)
    assert opinion.shares == pytest.approx((0.25, 0.25, 0.5))


def test_a_repair_shows_the_problem_and_a_second_failure_keeps_the_first_outcome() -> None:
    repair = build_repair_call(call(), question("verbalized"), SCALE, '{"counts": [10, 30, 40]}', 1000)
    assert repair is not None
    assert "add up to 80, not 100" in repair.messages[-1].content
    assert repair.messages[-2].content == '{"counts": [10, 30, 40]}'
    assert build_repair_call(call(), question("verbalized"), SCALE, "  ", 1000) is None
    unread, read = parse("?", "verbalized"), parse('{"counts": [10, 30, 60]}', "verbalized")
    repaired = merge_repaired_opinion(unread, replace(read, key="second"))
    assert (repaired.outcome, repaired.key, repaired.repair_key) == (Outcome.OK, "key", "second")
    still_unread = merge_repaired_opinion(unread, replace(unread, outcome=Outcome.REFUSED, key="second"))
    assert (still_unread.outcome, still_unread.shares) == (Outcome.UNPARSED, None)
    assert (still_unread.key, still_unread.repair_key) == ("key", "second")
