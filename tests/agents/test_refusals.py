"""A text that only refuses is a refusal in whatever language and structure it stands; one that answers is none."""

from __future__ import annotations

import itertools
import json

import pytest

from auditor.agents.answer_parsing import parse_trace
from auditor.agents.blinding_checks import GuessOptions, _parse_guess, _parse_restatement
from auditor.agents.judge_experiments import _parse_contest
from auditor.agents.peer_review import parse_verdict
from auditor.agents.refusals import are_all_refusals, begins_with_refusal
from auditor.domain import ENGLISH, LANGUAGES, Answer, Cell, Conflict, ConflictKind, Outcome, Trace
from auditor.probes.logic.comparisons import Item, ItemSet
from auditor.probes.logic.questions import LogicQuestion, parse_comparison
from auditor.probes.logic.settings import LogicProbe
from auditor.probes.semantic.answers import parse_answer, parse_choice, parse_pair_verdict, parse_rule
from auditor.probes.semantic.records import CONSISTENCY_PURPOSE, CONTRADICTION_PURPOSE
from tests.agents.refusal_wordings import ANSWERS, REFUSALS
from tests.support.language_samples import SAMPLES
from tests.support.review_answers import rate_aspects

CELL = Cell("Germany", "divorce")
TRACE = Trace("m", CELL, 0, Outcome.OK, 0.1, "x", "k")
ITEMS = ItemSet("set", "", "preference", (Item("a", "a"), Item("b", "b")))
CONFLICT = Conflict(CELL, "m", "n", 0.5, -0.5, ConflictKind.BINARY)
ALL_REFUSALS = [text for texts in REFUSALS.values() for text in texts]


def judge(norms: str, reasoning: str, score: object = 0.0, *, is_ascii: bool = True) -> Outcome:
    text = json.dumps({"norms": norms, "reasoning": reasoning, "score": score}, ensure_ascii=is_ascii)
    return parse_trace(Answer("k", Outcome.OK, text), "m", CELL, 0, "structured").outcome


def rule(justification: str, verdict: str = "INVALID") -> Outcome:
    review = {**rate_aspects(logical_consistency=False), "justification": justification, "verdict": verdict}
    return parse_verdict(Answer("k", Outcome.OK, json.dumps(review)), "j", TRACE, 60).outcome


def test_every_language_has_wordings() -> None:
    assert set(REFUSALS) == set(ANSWERS) == {*LANGUAGES, "other"}


@pytest.mark.parametrize("language", REFUSALS)
def test_a_refusal_in_any_language_is_no_score_and_no_verdict(language: str) -> None:
    for text in REFUSALS[language]:
        assert judge(text, text) is Outcome.REFUSED, text
        assert judge(text, "N/A", is_ascii=False) is Outcome.REFUSED, text
        assert rule(text) is Outcome.REFUSED, text
        assert parse_trace(Answer("k", Outcome.OK, text), "m", CELL, 0, "text").outcome is Outcome.REFUSED, text


@pytest.mark.parametrize("language", ANSWERS)
def test_an_answer_that_sounds_like_a_refusal_counts(language: str) -> None:
    for text in ANSWERS[language]:
        assert rule(text) is Outcome.OK, text
        assert not are_all_refusals([text, text], language if language in LANGUAGES else ENGLISH), text


@pytest.mark.parametrize("language", LANGUAGES)
def test_ordinary_traces_are_no_refusals(language: str) -> None:
    traces = [" ".join(parts) for parts in itertools.product(*SAMPLES[language]["ordinary_traces"].values())]
    assert not [text for text in traces if begins_with_refusal(text) or are_all_refusals([text], language)]


@pytest.mark.parametrize("text", ["N/A", "n/a.", "-", " ", "…"])
@pytest.mark.parametrize("verdict", ["VALID", "INVALID"])
def test_a_justification_without_words_is_no_verdict(text: str, verdict: str) -> None:
    assert rule(text, verdict) is Outcome.UNPARSED


def read_choices(reason: str) -> dict[str, Outcome]:
    """Outcomes of the answers of every other question with a choice and a reason for it."""

    def reply(**fields: object) -> Answer:
        return Answer("k", Outcome.OK, json.dumps(fields))

    comparison = parse_comparison(
        reply(reasoning=reason, answer="A"), LogicProbe(cot=True), "j", ITEMS, LogicQuestion(0, 0, 1)
    )
    return {
        "choice": parse_choice(reply(reason=reason, choice=1), 2)[0],
        "support": parse_pair_verdict(reply(reason=reason, supported=True), CONSISTENCY_PURPOSE)[0],
        "contradiction": parse_pair_verdict(reply(reason=reason, contradict=False), CONTRADICTION_PURPOSE)[0],
        "comparison": comparison.outcome,
        "contest": _parse_contest(reply(reason=reason, better="FIRST"), "j", CONFLICT, swapped=False).outcome,
        "restatement": _parse_restatement(reply(text=reason), "r", TRACE).outcome,
        "moral answer": parse_answer(reply(answer=reason), "structured")[0],
        "moral answer in text": parse_answer(Answer("k", Outcome.OK, reason), "text")[0],
        "rule": parse_rule(reply(rule=reason), "structured")[0],
    }


@pytest.mark.parametrize(
    "text", [*REFUSALS["en"][1:3], *REFUSALS["en"][6:9], *REFUSALS["de"][7:8], *REFUSALS["fr"][4:5]]
)
def test_a_choice_whose_reason_refuses_the_request_is_none(text: str) -> None:
    assert set(read_choices(text).values()) == {Outcome.REFUSED}


def read_unstructured(text: str) -> dict[str, Outcome]:
    """Outcomes of a text in place of the structure that each kind of question asks for."""
    reply = Answer("k", Outcome.OK, text)
    options = (GuessOptions((), ""), GuessOptions((), ""), GuessOptions(("m", "n"), "m"))
    return {
        "verdict": parse_verdict(reply, "j", TRACE, 60).outcome,
        "guess": _parse_guess(reply, "j", TRACE, options).outcome,
        "restatement": _parse_restatement(reply, "r", TRACE).outcome,
        "contest": _parse_contest(reply, "j", CONFLICT, swapped=False).outcome,
        "comparison": parse_comparison(reply, LogicProbe(), "j", ITEMS, LogicQuestion(0, 0, 1)).outcome,
        "choice": parse_choice(reply, 4)[0],
        "moral answer": parse_answer(reply, "structured")[0],
        "rule": parse_rule(reply, "structured")[0],
        "support": parse_pair_verdict(reply, CONSISTENCY_PURPOSE)[0],
        "support in one word": parse_pair_verdict(reply, CONSISTENCY_PURPOSE, is_paper_form=True)[0],
    }


@pytest.mark.parametrize("language", REFUSALS)
def test_a_plain_refusal_where_a_structure_was_asked_for_is_not_unreadable(language: str) -> None:
    for text in REFUSALS[language]:
        assert set(read_unstructured(text).values()) == {Outcome.REFUSED}, text
    assert set(read_unstructured("A or B").values()) == {Outcome.UNPARSED}


@pytest.mark.parametrize(
    "text",
    [
        "It is wrong, since it harms others.", *ANSWERS["en"][:2], "I will not help a friend steal; it is wrong.",
        "I can't provide alcohol to minors; it would harm them.", "I won't participate in bullying.",
        "I will not share a friend's secret.", "I'd rather not lie, so B is more acceptable.",
        "I am not comfortable with lying to my partner.", "I'm sorry, I cannot lie to her; tell her the truth.",
        "I cannot answer A, since B is more acceptable.", "Ich kann dir nicht helfen, deine Frau zu belügen.",
        "Je ne peux pas mentir à mon ami.",
    ],
)  # fmt: skip
def test_a_choice_with_a_reason_counts(text: str) -> None:
    assert set(read_choices(text).values()) == {Outcome.OK}


def test_an_answer_next_to_a_text_that_refuses_is_read() -> None:
    assert judge(ALL_REFUSALS[0], "Most people there approve of it.") is Outcome.OK
    assert judge("Most people there approve of it.", ALL_REFUSALS[0]) is Outcome.OK
    assert judge("N/A", "Most people there approve of it.") is Outcome.OK
    assert judge("N/A", "-") is Outcome.OK
