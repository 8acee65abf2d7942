"""From answers to differences: which question is whose, and what has none."""

from __future__ import annotations

import json
import math

import pytest

from auditor.agents.cell_scoring import compute_logprob_scores
from auditor.agents.sentence_pairs import build_sentence_pairs, letter_logprob_difference, parse_sentence_pair_score
from auditor.config import ModelSection
from auditor.domain import Answer, Cell, LogprobMeasure, Outcome, SentencePairScore

CELL = Cell("Germany", "divorce")
MIN_MASS = 0.5
VLLM = ModelSection(name="m", model="hosted_vllm/x", api_base="http://localhost")


def test_ten_comparisons_take_two_calls_where_sentences_are_measured_and_twenty_where_letters_are() -> None:
    echo, choice = (list(build_sentence_pairs(VLLM, CELL, m)) for m in (LogprobMeasure.ECHO, LogprobMeasure.CHOICE))
    assert [c.number for c in echo] == [c.number for c in choice] == list(range(10))
    assert len({call.key for c in echo for call in c.calls}) == 2
    assert len({call.key for c in choice for call in c.calls}) == 20
    assert not any(c.calls for c in build_sentence_pairs(VLLM, CELL, None))
    first = echo[0].call
    assert first
    assert first.messages[0].content == "In Germany, divorce is"
    assert first.continuations[:2] == (" always justifiable", " never justifiable")


def test_echo_takes_each_pair_from_its_place() -> None:
    pairs_found = list(build_sentence_pairs(VLLM, CELL, LogprobMeasure.ECHO))
    text = json.dumps([-i * i for i in range(10)])
    answers = {call.key: Answer(call.key, Outcome.OK, text=text) for c in pairs_found for call in c.calls}
    differences = [parse_sentence_pair_score(c, "m", LogprobMeasure.ECHO, answers, MIN_MASS) for c in pairs_found]
    assert [d.difference for d in differences if d] == [1, 5, 9, 13, 17] * 2


def test_both_orders_of_a_choice_are_averaged() -> None:
    [comparison, *_] = build_sentence_pairs(VLLM, CELL, LogprobMeasure.CHOICE)
    assert comparison.call
    assert comparison.swapped_call
    assert "A: always justifiable\nB: never justifiable" in comparison.call.messages[1].content
    assert "A: never justifiable\nB: always justifiable" in comparison.swapped_call.messages[1].content
    # A is preferred by 1 whatever it says; beyond that, the positive end by 0.5.
    texts = {comparison.call.key: [["A", -0.5], ["B", -2.0]], comparison.swapped_call.key: [["A", -0.5], ["B", -1.0]]}
    answers = {key: Answer(key, Outcome.OK, text=json.dumps(text)) for key, text in texts.items()}
    contrast = parse_sentence_pair_score(comparison, "m", LogprobMeasure.CHOICE, answers, MIN_MASS)
    assert contrast
    assert contrast.difference == pytest.approx(0.5)
    assert (contrast.key, contrast.key_swapped) == (comparison.call.key, comparison.swapped_call.key)
    half = {comparison.call.key: answers[comparison.call.key]}
    assert parse_sentence_pair_score(comparison, "m", LogprobMeasure.CHOICE, half, MIN_MASS) is None


@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_choice_between_improbable_letters_is_not_measurable(is_swapped: bool) -> None:
    [comparison, *_] = build_sentence_pairs(VLLM, CELL, LogprobMeasure.CHOICE)
    texts = ['[["A", -0.5], ["B", -2.0]]', '[["I", -0.01], ["A", -5.0], ["B", -9.0]]']  # the second begins "I cannot"
    keys = [call.key for call in comparison.calls][:: -1 if is_swapped else 1]
    answers = {key: Answer(key, Outcome.OK, text=text) for key, text in zip(keys, texts, strict=True)}
    scores = [parse_sentence_pair_score(comparison, "m", LogprobMeasure.CHOICE, answers, mass) for mass in (0.5, 0.006)]
    assert [score.outcome for score in scores if score] == [Outcome.NOT_MEASURABLE, Outcome.OK]


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.OK])
def test_a_failure_has_no_difference(outcome: Outcome) -> None:
    [comparison, *_] = build_sentence_pairs(VLLM, CELL, LogprobMeasure.CHOICE)
    key, swapped_key = (call.key for call in comparison.calls)
    answered = Answer(key, Outcome.OK, text='[["A", -1.0], ["B", -2.0]]')
    answers = {key: answered, swapped_key: Answer(swapped_key, outcome)}
    contrast = parse_sentence_pair_score(comparison, "m", LogprobMeasure.CHOICE, answers, MIN_MASS)
    assert contrast
    assert (contrast.outcome, contrast.difference) == (outcome, None)


def test_where_nothing_can_be_asked_it_says_so() -> None:
    [comparison, *_] = build_sentence_pairs(VLLM, CELL, None)
    contrast = parse_sentence_pair_score(comparison, "m", None, {}, MIN_MASS)
    assert contrast
    assert (contrast.outcome, contrast.difference, contrast.key) == (Outcome.NOT_MEASURABLE, None, None)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([["A", -1.0], ["B", -3.0], ["The", -0.6]], 2.0),
        ([["A", math.log(0.2)], [" A", math.log(0.2)], ["B.", math.log(0.1)]], math.log(4)),
        ([["▁A", -1.0], ["(B)", -1.0]], 0.0), ([["A", -0.01], ["The", -5.0]], None), ([["a", -1.0], ["b", -1.0]], None),
        ([["A", 0.0], ["B", 0.0]], None), ([["A", -2.0], ["A", -2.0], ["B", -0.5]], None), ([], None),
    ],
)  # fmt: skip
def test_letters(tokens: list[tuple[str, float]], expected: float | None) -> None:
    difference = letter_logprob_difference(json.dumps(tokens))
    assert difference == (None if expected is None else pytest.approx(expected))


def contrast(country: str, number: int, difference: float | None, model: str = "m") -> SentencePairScore:
    outcome = Outcome.OK if difference is not None else Outcome.TIMEOUT
    return SentencePairScore(model, Cell(country, "t"), number, "p", "n", outcome, difference, LogprobMeasure.ECHO)


def test_scores_are_means_within_the_models_own_range_and_a_cell_that_lacks_one_has_none() -> None:
    pair_scores = [contrast(c, n, v + n) for c, v in (("a", 0.0), ("b", 3.0), ("c", 1.0)) for n in range(10)]
    pair_scores += [contrast("d", n, None if n == 4 else 99.0) for n in range(10)]
    pair_scores += [contrast(c, n, v, "other") for c, v in (("a", 500.0), ("b", -500.0)) for n in range(10)]
    scores = {(s.model, s.cell.country): s for s in compute_logprob_scores(pair_scores)}
    assert [scores["m", c].score for c in "abc"] == pytest.approx([-1.0, 1.0, -1 / 3])
    assert [scores["m", c].raw for c in "abc"] == pytest.approx([4.5, 7.5, 5.5])
    assert (scores["m", "d"].score, scores["m", "d"].raw, scores["m", "d"].n_ok) == (None, None, 9)
    assert [scores["other", c].score for c in "ab"] == [1.0, -1.0]
    assert {s.n_planned for s in scores.values()} == {10}
