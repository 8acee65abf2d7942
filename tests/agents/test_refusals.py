"""A text that only refuses is a refusal in whatever language and structure it stands; one that answers is none."""

from __future__ import annotations

import itertools
import json

import pytest

from auditor.agents.answer_parsing import parse_trace
from auditor.agents.peer_review import parse_verdict
from auditor.agents.refusals import are_all_refusals, begins_with_refusal
from auditor.domain import ENGLISH, LANGUAGES, Answer, Cell, Outcome, Trace
from tests.agents.refusal_wordings import ANSWERS, REFUSALS
from tests.support.language_samples import SAMPLES
from tests.support.review_answers import rate_aspects

CELL = Cell("Germany", "divorce")
TRACE = Trace("m", CELL, 0, Outcome.OK, 0.1, "x", "k")
ALL_REFUSALS = [text for texts in REFUSALS.values() for text in texts]
ALL_ANSWERS = [(language, text) for language, texts in ANSWERS.items() for text in texts]


def judge(norms: str, reasoning: str, score: object = 0.0, *, is_ascii: bool = True) -> Outcome:
    text = json.dumps({"norms": norms, "reasoning": reasoning, "score": score}, ensure_ascii=is_ascii)
    return parse_trace(Answer("k", Outcome.OK, text), "m", CELL, 0, "structured").outcome


def rule(justification: str, verdict: str = "INVALID") -> Outcome:
    review = {**rate_aspects(logical_consistency=False), "justification": justification, "verdict": verdict}
    return parse_verdict(Answer("k", Outcome.OK, json.dumps(review)), "j", TRACE, 60).outcome


def test_every_language_has_wordings() -> None:
    assert set(REFUSALS) == set(ANSWERS) == {*LANGUAGES, "other"}


@pytest.mark.parametrize("text", ALL_REFUSALS)
def test_a_refusal_in_any_language_is_no_score_and_no_verdict(text: str) -> None:
    assert judge(text, text) is Outcome.REFUSED
    assert judge(text, "N/A", is_ascii=False) is Outcome.REFUSED
    assert rule(text) is Outcome.REFUSED
    assert parse_trace(Answer("k", Outcome.OK, text), "m", CELL, 0, "text").outcome is Outcome.REFUSED


@pytest.mark.parametrize(("language", "text"), ALL_ANSWERS)
def test_an_answer_that_sounds_like_a_refusal_counts(language: str, text: str) -> None:
    assert rule(text) is Outcome.OK
    assert not are_all_refusals([text, text], language if language in LANGUAGES else ENGLISH)


@pytest.mark.parametrize("language", LANGUAGES)
def test_ordinary_traces_are_no_refusals(language: str) -> None:
    traces = [" ".join(parts) for parts in itertools.product(*SAMPLES[language]["ordinary_traces"].values())]
    assert not [text for text in traces if begins_with_refusal(text) or are_all_refusals([text], language)]


@pytest.mark.parametrize("text", ["N/A", "n/a.", "-", " ", "…"])
@pytest.mark.parametrize("verdict", ["VALID", "INVALID"])
def test_a_justification_without_words_is_no_verdict(text: str, verdict: str) -> None:
    assert rule(text, verdict) is Outcome.UNPARSED


def test_an_answer_next_to_a_text_that_refuses_is_read() -> None:
    assert judge(ALL_REFUSALS[0], "Most people there approve of it.") is Outcome.OK
    assert judge("Most people there approve of it.", ALL_REFUSALS[0]) is Outcome.OK
    assert judge("N/A", "Most people there approve of it.") is Outcome.OK
    assert judge("N/A", "-") is Outcome.OK
