from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace

from auditor.agents.call_builders import analyst_label, blind_trace, build_direct_call, build_review_call, fence_line
from auditor.agents.elicitation import build_repair_call
from auditor.agents.peer_review import build_shorter_call
from auditor.config.probes import ReviewProbe
from auditor.domain import Answer, AnswerKind, Cell, Outcome, Purpose, Task, TaskItem, Trace
from auditor.probes.semantic.call_builders import build_answer_call, build_choice_call, build_pair_call, build_rule_call
from auditor.surveys import load_survey
from tests.support.audit_configs import config
from tests.support.review_answers import rate_aspects

SURVEY = load_survey("wvs7-sample")


def trace(text: str, model: str = "model-a") -> Trace:
    return Trace(model, Cell("Germany", "divorce"), 0, Outcome.OK, 0.5, text)


def test_the_label_differs_by_judge_and_by_item_and_not_by_run_or_author() -> None:
    audit = config("http://localhost")
    first, second = audit.models[1:]

    def asked(judge: object, text: str, author: str = "model-a") -> str:
        call = build_review_call(audit, SURVEY, judge, trace(text, author), text)  # type: ignore[arg-type]
        return call.messages[-1].content.splitlines()[-1]

    assert re.fullmatch(r"Score of [B-Z]{4}: \+0\.50", asked(first, "one"))
    assert asked(first, "one") == asked(first, "one", "model-b")
    assert len({asked(first, "one"), asked(second, "one"), asked(first, "two")}) == 3


def test_labels_are_spread_evenly_and_are_no_words() -> None:
    labels = [analyst_label(7, "judge", i) for i in range(4000)]
    assert len(set(labels)) > 3900
    assert not set("".join(labels)) & set("AEIOUY")


def test_no_text_holds_its_fence() -> None:
    for i in range(50):
        text = "\n".join(fence_line("", i, j) for j in range(5))
        line = fence_line(text, i, "judge")
        assert line not in text
        assert line == fence_line(text, i, "judge")
        assert line != fence_line(text, i + 1, "judge")


def test_an_id_of_two_characters_behind_a_dated_one_is_hidden_from_judges() -> None:
    audit = config("http://localhost")
    models = [audit.models[0].model_copy(update={"model": "openai/o1-2024-12-17"}), *audit.models[1:]]
    audit = audit.model_copy(update={"models": models})
    written = "I, o1, think that No people say this. O1-mini agrees, in 1990 and for 3 reasons."
    shown = blind_trace(audit, SURVEY, trace(written))
    assert shown == "I, [analyst], think that No people say this. [analyst] agrees, in 1990 and for 3 reasons."
    call = build_review_call(audit, SURVEY, audit.models[1], trace(written), shown)
    assert "o1" not in call.messages[-1].content.lower()


LONG = "a b " * 400_000


def test_every_text_that_a_model_wrote_is_shown_to_another_within_the_limit() -> None:
    probes = {"direct": {}, "review": {"max_trace_chars": 1_000}}
    audit = config("http://localhost", probes=probes)
    model = audit.models[0]
    calls = [
        build_pair_call(audit, model, Purpose.declare("consistency"), "Is it right?", LONG, LONG),
        build_pair_call(audit, model, Purpose.declare("contradiction"), "Is it right?", LONG, LONG),
        build_rule_call(audit, model, "Is it right?", LONG),
        build_choice_call(audit, model, "Is it right?", [LONG, "no"]),
        build_answer_call(audit, model, "Is it right?", rule=LONG),
        build_review_call(audit, SURVEY, model, trace(LONG), blind_trace(audit, SURVEY, trace(LONG))),
    ]
    for call in calls:
        text = "\n".join(message.content for message in call.messages)
        assert len(text) < 2 * 1_000 + 2_000
        assert "characters left out …]" in text
    short = build_pair_call(audit, model, Purpose.declare("consistency"), "Is it right?", "yes", "no")
    unlimited = audit.model_copy(
        update={"probes": audit.probes.model_copy(update={"review": ReviewProbe(max_trace_chars=50_000)})}
    )
    assert (
        short.key == build_pair_call(unlimited, model, Purpose.declare("consistency"), "Is it right?", "yes", "no").key
    )


def test_the_answer_to_a_task_is_shown_to_judges_within_the_limit() -> None:
    item = TaskItem("1", "Which?", truth="x")
    task = Task("items.csv", AnswerKind.EXACT, "", items={"1": item})
    cell = Cell("", "1")
    survey = replace(SURVEY, task=task)
    audit = config("http://localhost", probes={"direct": {}, "review": {"max_trace_chars": 1_000}})
    long = Trace("model-a", cell, 0, Outcome.OK, None, "Because.", answer=LONG)
    call = build_review_call(audit, survey, audit.models[1], long, "Because.")
    assert len(call.messages[-1].content) < 2_000


def test_a_model_is_shown_its_own_answer_again_within_the_limit() -> None:
    audit = config("http://localhost", probes={"direct": {}, "review": {"max_trace_chars": 1_000}})
    context = SimpleNamespace(config=audit, survey=SURVEY)
    cell = Cell("Germany", "divorce")
    asked = build_direct_call(audit, SURVEY, audit.models[0], cell, 0)
    unread = Trace("model-a", cell, 0, Outcome.UNPARSED, None, LONG)
    repair_call = build_repair_call(context, asked, unread, LONG)  # type: ignore[arg-type]
    assert repair_call is not None
    assert len(repair_call.messages[-2].content) <= 1_000
    assert "characters left out …]" in repair_call.messages[-2].content
    judged = build_review_call(audit, SURVEY, audit.models[1], trace("x"), "x")
    review = {**rate_aspects(), "justification": LONG, "verdict": "VALID", "confidence": 50}
    shorter = build_shorter_call(judged, Answer("k", Outcome.OK, text=json.dumps(review)), 60, 1_000)
    assert shorter is not None
    assert len(shorter.messages[-2].content) <= 1_000
