from __future__ import annotations

import json
from typing import Any

import pytest

from auditor.agents.peer_review import build_shorter_call, parse_verdict, truncate_words
from auditor.domain import Answer, Call, Cell, Message, Outcome, Purpose, Ruling, Trace
from auditor.models.answer_schemas import TraceReview
from auditor.models.structured import response_format
from tests.support.known import known
from tests.support.review_answers import rate_aspects

TRACE = Trace("m", Cell("Japan", "divorce"), 0, Outcome.OK, 0.1, "x", "k")
CALL = Call("j", "p/j", (Message("system", "s"), Message("user", "u")), Purpose.REVIEW)
REVIEW = {
    **rate_aspects(logical_consistency=False), "justification": "Too short a step.", "verdict": "INVALID",
    "confidence": 80,
}  # fmt: skip
LONG = " ".join(f"w{i}" for i in range(61))


def answer(key: str = "first", **changes: Any) -> Answer:
    return Answer(key, Outcome.OK, text=json.dumps({**REVIEW, **changes}))


@pytest.mark.parametrize(("stated", "read"), [(80, 0.8), (80.0, 0.8), (0.8, 0.8), (1.0, 1.0), (1, 0.01), (0, 0.0)])
def test_confidence_is_read_as_a_share(stated: float, read: float) -> None:
    assert parse_verdict(answer(confidence=stated), "j", TRACE, 60).confidence == read


@pytest.mark.parametrize("stated", [101, -1, "high", True])
def test_an_impossible_confidence_is_no_verdict(stated: object) -> None:
    assert parse_verdict(answer(confidence=stated), "j", TRACE, 60).outcome is Outcome.UNPARSED


def test_a_judge_may_be_silent_on_its_confidence_though_the_schema_asks_for_it() -> None:
    silent = {k: v for k, v in REVIEW.items() if k != "confidence"}
    verdict = parse_verdict(Answer("k", Outcome.OK, text=json.dumps(silent)), "j", TRACE, 60)
    assert (verdict.ruling, verdict.confidence) == (Ruling.INVALID, None)
    schema = response_format(TraceReview, 60)["json_schema"]["schema"]
    assert set(schema["required"]) == set(REVIEW)
    assert schema["properties"]["confidence"]["maximum"] == 100


@pytest.mark.parametrize(
    ("justification", "outcome"),
    [
        ("I'm sorry, but I can't help with that.", Outcome.REFUSED),
        ("As an AI model, I cannot rate moral reasoning.", Outcome.REFUSED),
        ("The text ends with “I'm sorry, but I can't help with that.”, so nothing supports the score.", Outcome.OK),
    ],
)
def test_a_refusal_that_a_server_makes_fit_the_structure_is_no_verdict(justification: str, outcome: Outcome) -> None:
    verdict = parse_verdict(answer(justification=justification), "j", TRACE, 60)
    assert (verdict.outcome, verdict.ruling is None) == (outcome, outcome is Outcome.REFUSED)


def test_only_a_long_justification_is_asked_for_again() -> None:
    assert build_shorter_call(CALL, answer(), 60, 20_000) is None
    assert build_shorter_call(CALL, Answer("k", Outcome.OK, text="VALID"), 60, 20_000) is None
    assert build_shorter_call(CALL, Answer("k", Outcome.REFUSED), 60, 20_000) is None
    shorter_call = known(build_shorter_call(CALL, answer(justification=LONG), 60, 20_000))
    assert shorter_call.key != CALL.key
    assert [m.role for m in shorter_call.messages] == ["system", "user", "assistant", "user"]
    assert "61 words" in shorter_call.messages[-1].content


def test_a_shorter_second_justification_stands() -> None:
    verdict = parse_verdict(answer(justification=LONG), "j", TRACE, 60, answer("second", justification="Short."))
    assert (verdict.justification, verdict.shortened, verdict.again_key) == ("Short.", False, "second")


@pytest.mark.parametrize(
    "second",
    [answer("second", justification=LONG + " more"),
     answer("second", justification="Changed my mind.", verdict="VALID"), Answer("second", Outcome.TIMEOUT),
     Answer("second", Outcome.OK, text="?"), None],
)  # fmt: skip
def test_else_the_first_is_cut_and_marked_and_its_ruling_stands(second: Answer | None) -> None:
    verdict = parse_verdict(answer(justification=LONG), "j", TRACE, 60, second)
    assert verdict.ruling is Ruling.INVALID
    assert verdict.justification == LONG.removesuffix(" w60") + " …"
    assert verdict.shortened


def test_a_verdict_has_its_aspects_and_a_bounded_justification() -> None:
    long = {**REVIEW, "justification": " ".join(f"w{i}" for i in range(100))}
    verdict = parse_verdict(Answer("k2", Outcome.OK, text=json.dumps(long)), "j", TRACE, 60)
    assert verdict.ruling is Ruling.INVALID
    assert verdict.aspects == rate_aspects(logical_consistency=False)
    assert verdict.justification is not None
    assert len(verdict.justification.split()) == 61
    assert verdict.justification.endswith(" …")
    assert parse_verdict(Answer("k2", Outcome.OK, text="VALID"), "j", TRACE, 60).outcome is Outcome.UNPARSED


def test_few_words_stay_as_they_are() -> None:
    assert truncate_words(" a b ", 2) == "a b"
