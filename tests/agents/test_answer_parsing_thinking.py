"""Thinking inside an answer's text reaches no trace, verdict, guess, rule, comparison or prompt of a later call."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from auditor.agents.answer_parsing import parse_task_trace, parse_trace
from auditor.agents.blinding_checks import _parse_restatement
from auditor.agents.call_builders import build_direct_call, build_review_call
from auditor.agents.elicitation import build_repair_call
from auditor.agents.peer_review import build_shorter_call, parse_verdict
from auditor.domain import Answer, Cell, ComparisonChoice, Outcome, Purpose, Ruling, Trace
from auditor.probes.logic.questions import _parse_decision
from auditor.probes.logic.settings import LogicProbe
from auditor.probes.semantic.answers import (
    parse_answer,
    parse_choice,
    parse_pair_verdict,
    parse_paraphrases,
    parse_rule,
)
from tests.agents.test_answer_parsing_task_answer_parsing import NUMBER, NUMBERS
from tests.agents.test_call_builders import LONG, SURVEY, trace
from tests.agents.test_peer_review_verdict_parsing import REVIEW
from tests.support.audit_configs import config
from tests.support.known import known

CELL = Cell("Germany", "divorce")
WRAPPERS = (
    "<think>{draft} secret</think>{answer}", "{draft} secret</think>\n\n{answer}",
    "<thinking>{draft} secret</thinking>\n```json\n{answer}\n```", "{answer}\n<think>{draft} secret",
    "<reflection>{draft} secret</reflection>{answer}", "[THINK]{draft} secret[/THINK]{answer}",
)  # fmt: skip
"""Forms in which a server leaves thinking in the text, which drafts another answer first."""


def reply(form: str, answer: object, draft: object, outcome: Outcome = Outcome.OK) -> Answer:
    texts = {name: part if isinstance(part, str) else json.dumps(part) for name, part in (("a", answer), ("d", draft))}
    return Answer("k", outcome, text=form.replace("{draft}", texts["d"]).replace("{answer}", texts["a"]))


def judgement(score: float, norms: str = "N") -> dict[str, Any]:
    return {"norms": norms, "reasoning": "R", "score": score}


@pytest.mark.parametrize("form", WRAPPERS)
def test_a_structured_trace_has_no_thinking(form: str) -> None:
    read = parse_trace(reply(form, judgement(0.5), judgement(-1)), "m", CELL, 0, "structured")
    assert (read.outcome, read.score, read.text) == (Outcome.OK, 0.5, "N\n\nR")


@pytest.mark.parametrize("form", [form for form in WRAPPERS if "```" not in form])
def test_a_trace_in_text_has_no_thinking(form: str) -> None:
    read = parse_trace(reply(form, "Norms differ.\nSCORE = 0.5", "SCORE = -1"), "m", CELL, 0, "text")
    assert (read.outcome, read.score, read.text) == (Outcome.OK, 0.5, "Norms differ.")


@pytest.mark.parametrize("mode", ["structured", "text"])
@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.TRUNCATED])
@pytest.mark.parametrize("answer", ["no score", ""])
def test_a_trace_without_a_score_has_no_thinking_either(mode: str, outcome: Outcome, answer: str) -> None:
    read = parse_trace(reply(WRAPPERS[0], answer, "SCORE = 1", outcome), "m", CELL, 0, mode)
    assert (read.score, read.text) == (None, answer)


@pytest.mark.parametrize("mode", ["structured", "text"])
@pytest.mark.parametrize("draft", [judgement(0.5), "SCORE = 0.5\n"])
def test_a_draft_in_unfinished_thinking_is_no_score(mode: str, draft: object) -> None:
    read = parse_trace(reply("<think>{draft} secret", "", draft), "m", CELL, 0, mode)
    assert (read.outcome, read.score) == (Outcome.UNPARSED, None)


def test_thinking_inside_the_json_is_removed_and_tags_that_hide_nothing_cost_no_answer() -> None:
    for norms, visible_norms in (("N<think>secret</think>", "N"), ("secret</think>N", "N"), ("N <think>secret", "N")):
        read = parse_trace(reply("{answer}", judgement(0.5, norms), ""), "m", CELL, 0, "structured")
        assert (read.score, read.text) == (0.5, f"{visible_norms}\n\nR")
    only_thinking = parse_trace(reply("{answer}", judgement(0.5, "<think>secret"), ""), "m", CELL, 0, "structured")
    assert only_thinking.outcome is Outcome.UNPARSED


@pytest.mark.parametrize("form", WRAPPERS)
def test_a_task_s_trace_has_no_thinking(form: str) -> None:
    answer = reply(form, {"reasoning": "R", "answer": "42"}, {"reasoning": "secret", "answer": "7"})
    read = parse_task_trace(answer, NUMBERS, "m", NUMBER.cell, 0, "structured")
    assert (read.outcome, read.answer, read.text) == (Outcome.OK, "42", "R")
    if "```" not in form:
        in_text = parse_task_trace(reply(form, "So.\nANSWER = 42", "ANSWER = 7"), NUMBERS, "m", NUMBER.cell, 0, "text")
        assert (in_text.outcome, in_text.answer, in_text.text) == (Outcome.OK, "42", "So.")


@pytest.mark.parametrize("form", WRAPPERS)
def test_a_judge_s_draft_is_no_verdict(form: str) -> None:
    answer = reply(form, REVIEW, {**REVIEW, "verdict": "VALID"})
    verdict = parse_verdict(answer, "j", trace("x"), 60)
    assert (verdict.ruling, verdict.justification) == (Ruling.INVALID, REVIEW["justification"])


@pytest.mark.parametrize("form", WRAPPERS)
def test_a_comparison_a_choice_and_verdicts_on_pairs_are_those_after_the_thinking(form: str) -> None:
    decision = _parse_decision(LogicProbe(), reply(form, {"answer": "A"}, {"answer": "B"}).text or "")
    assert decision == (Outcome.OK, ComparisonChoice.FIRST)
    reasoned = reply(form, {"reasoning": "r", "answer": "A"}, {"reasoning": "secret", "answer": "B"})
    assert _parse_decision(LogicProbe(), reasoned.text or "") == (Outcome.OK, ComparisonChoice.FIRST)
    chosen = reply(form, {"reason": "r", "choice": 1}, {"reason": "secret", "choice": 2})
    assert parse_choice(chosen, 3) == (Outcome.OK, 1, "r")
    supported = reply(form, {"reason": "r", "supported": True}, {"reason": "secret", "supported": False})
    assert parse_pair_verdict(supported, Purpose.declare("consistency")) == (Outcome.OK, True, "r")
    opposed = reply(form, {"reason": "r", "contradict": True}, {"reason": "secret", "contradict": False})
    assert parse_pair_verdict(opposed, Purpose.declare("contradiction")) == (Outcome.OK, True, "r")
    assert parse_paraphrases(reply(form, {"paraphrases": ["a?"]}, {"paraphrases": ["secret"]})) == ["a?"]
    restated = _parse_restatement(reply(form, {"text": "plain"}, {"text": "secret"}), "r", trace("x"))
    assert restated.text == "plain"


@pytest.mark.parametrize("form", [form for form in WRAPPERS if "```" not in form])
def test_semantic_answers_and_rules_have_no_thinking(form: str) -> None:
    assert parse_answer(reply(form, "Yes.", "No."), "text") == (Outcome.OK, "Yes.")
    assert parse_answer(reply(form, {"answer": "Yes."}, {"answer": "No."}), "structured") == (Outcome.OK, "Yes.")
    assert parse_rule(reply(form, "Rule: Be fair.", "Rule: Lie."), "text") == (Outcome.OK, "Be fair.")
    assert parse_rule(reply(form, {"rule": "Be fair."}, {"rule": "Lie."}), "structured") == (Outcome.OK, "Be fair.")


def test_a_model_is_shown_its_own_answer_again_without_its_thinking() -> None:
    audit = config("http://localhost", probes={"direct": {}, "review": {}})
    context: Any = SimpleNamespace(config=audit, survey=SURVEY)
    asked = build_direct_call(audit, SURVEY, audit.models[0], CELL, 0)
    unread = Trace("model-a", CELL, 0, Outcome.UNPARSED, None, "no score")
    repair_call = known(build_repair_call(context, asked, unread, "<think>secret</think>no score"))
    assert repair_call.messages[-2].content == "no score"
    assert build_repair_call(context, asked, unread, "<think>secret</think>") is None, "an empty message is refused"
    review = json.dumps({**REVIEW, "justification": " ".join(LONG[i : i + 5] for i in range(0, 500, 5))})
    judged = build_review_call(audit, SURVEY, audit.models[1], trace("x"), "x")
    shorter = build_shorter_call(judged, Answer("k", Outcome.OK, text=f"<think>secret</think>{review}"), 60, 20_000)
    assert known(shorter).messages[-2].content == review
