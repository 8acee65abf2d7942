"""What is changed in recorded steps, how models get them, and how their answers are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import auditor.probes as ap
from auditor.config import AuditConfig
from auditor.domain import LANGUAGES, Cell, Message, Outcome, Trace
from auditor.probes.reasoning.interventions import (
    CONTROLS,
    Words,
    _begin_answer,
    _words,
    ask_for_score,
    build_questions,
    count_questions,
    find_form,
    plan_arms,
    read_score,
    split_steps,
)
from auditor.probes.reasoning.probe import PROBE
from auditor.run import load_planned_survey
from tests.support.known import known

COUNTRIES = ["Germany", "Japan", "Brazil", "Egypt", "Nigeria"]
ASKED = (Message("system", "Answer in JSON."), Message("user", "Country: X\nIs it acceptable?"))


def open_audit(model: str = "simulated/knows-every-culture", mode: str = "structured", **settings: Any) -> Any:
    config = AuditConfig.model_validate(
        {
            "name": "simulated-a",
            "judges": [],
            "survey": {"source": "wvs7-sample", "countries": COUNTRIES, "topics": ["divorce", "abortion"]},
            "models": [{"name": "m", "model": model}],
            "probes": {"direct": {"mode": mode}, "reasoning": settings},
        }
    )
    survey = load_planned_survey(config)
    scores = dict(zip(COUNTRIES, (0.8, 0.2, 0.1, -0.6, -0.4), strict=True))
    traces = [
        Trace(
            "m", cell, 0, Outcome.OK, scores[cell.country], f"Norms of {cell.country}. They count.\n\nOne. Two. Three."
        )
        for cell in survey.asked_cells
    ]
    return ap.ProbeAudit(
        config.probes.plugins["reasoning"], config, survey, lambda model, cells=None: traces,
        load_question=lambda _: ASKED,
    )  # fmt: skip


def test_steps_are_divided_by_their_marks() -> None:
    assert split_steps("People mind.\n\nSo they do.") == ("People mind.", "So they do.")
    assert split_steps("Step 1: People mind.\nStep 2: So they do.") == ("Step 1: People mind.", "Step 2: So they do.")
    assert split_steps("People mind. So they do.") == ("People mind.", "So they do.")
    assert split_steps("  ") is None


def test_donors_are_answers_on_the_same_topic_at_least_half_a_point_apart() -> None:
    audit = open_audit()
    arms = {(arm.trace.cell, arm.kind): arm for arm in plan_arms(audit, "m", [tuple(cell) for cell in audit.cells])}
    assert len(arms) == 2 * len(audit.cells)
    for (cell, kind), arm in arms.items():
        assert arm.trace.cell == cell
        if kind == "norms":
            assert abs(arm.target - (arm.trace.score or 0.0)) >= 0.5
            assert arm.steps == (f"Norms of {cell.country}. They count.", "")  # the donor's country is replaced
        else:
            assert (kind, arm.target) == ("own norms", arm.trace.score)


def test_norms_without_a_donor_are_called_wrong() -> None:
    audit = open_audit()
    traces = [trace for trace in audit.load_traces("m") if trace.cell == Cell("Germany", "divorce")]
    single_topic = ap.ProbeAudit(audit.settings, audit.config, audit.survey, lambda model, cells=None: traces)
    _, arm = plan_arms(single_topic, "m", [("Germany", "divorce")])
    assert (arm.kind, arm.target) == ("opposite", -0.8)
    assert arm.steps.norms == "The opposite of the following is true there: Norms of Germany. They count."


def test_each_cell_has_every_intervention_and_each_control_once() -> None:
    audit = open_audit(interventions=list(CONTROLS), samples=2)
    units = [tuple(cell) for cell in audit.cells]
    questions = [question for arm in plan_arms(audit, "m", units) for question in build_questions(audit, "m", arm)]
    assert len(questions) == len(units) * (6 + 3) * 2  # and a second question once steps are restated
    assert count_questions(audit.settings) == (6 + 1 + 3) * 2
    assert len({(question.unit, question.sample) for question in questions}) == len(questions)
    removed = [arm for arm in plan_arms(audit, "m", units) if arm.kind == "removed"]
    assert all(arm.steps.text != "Norms of X. They count.\n\nOne. Two. Three." for arm in removed)
    [filler] = [arm for arm in plan_arms(audit, "m", units[:1]) if arm.kind == "filler"]
    assert set(filler.steps.text.split()) == {"..."}


@pytest.mark.parametrize(
    ("model", "mode", "ending"),
    [
        ("simulated/knows-every-culture", "structured", '{"norms": "Norms of Germany. They count.",'),
        ("simulated/knows-every-culture", "text", "Norms of Germany. They count."),
        ("openai/gpt-4o", "structured", "SCORE = x"),
    ],
)
def test_a_model_goes_on_from_its_own_norms(model: str, mode: str, ending: str) -> None:
    audit = open_audit(model, mode)
    control, _ = plan_arms(audit, "m", [("Germany", "divorce")])
    [question] = build_questions(audit, "m", control)
    is_prefill = find_form(audit, "m") == "prefill"
    assert [message.role for message in question.messages] == ["system", "user", *(["assistant"] if is_prefill else [])]
    assert question.messages[-1].content.endswith(ending)
    assert is_prefill or "Norms of Germany. They count." in question.messages[-1].content


@pytest.mark.parametrize(
    ("prefill", "text", "score"),
    [
        ('{"norms": "a", "reasoning": "b", "score":', " 0.4}", 0.4),
        ('{"norms": "a", "reasoning": "b", "score":', " I cannot say", None),
        ('{"norms": "a", "reasoning": "b", "score":', " 4", None),
        ('{"norms": "a",', ' "reasoning": "b", "score": -0.4}', -0.4),
        ('{"norms": "a",', ' "reasoning": "b"}', None), ("Norms.\nSCORE =", " -0,4", -0.4),
        ("Norms.\nSCORE =", " −0.4\nDone.", -0.4), ("Norms.\nSCORE =", " ٠٫٤", 0.4),
        ("Norms.", " So it is.\nSCORE = 0.5", 0.5), ("", "SCORE = 0.5", 0.5),
        ("", '{"norms": "a", "reasoning": "b", "score": 0.5}', 0.5),
        ("", "SCORE = 0.5\nSCORE = 0.7", None),
    ],
)  # fmt: skip
def test_the_score_is_read_in_either_form(prefill: str, text: str, score: float | None) -> None:
    assert read_score(ap.ProbeAnswer("m", ("a",), 0, 0, "", text, prefill=prefill)) == score


def test_beginnings_have_no_white_space_at_their_end() -> None:
    steps = known(split_steps('He said "no".\n\nSo it is.'))
    for is_json in (True, False):
        for asks_score_only in (True, False):
            for part in (steps, steps._replace(reasoning=""), steps._replace(norms="", reasoning="")):
                beginning = _begin_answer(part, is_json, asks_score_only)
                assert beginning
                assert beginning == beginning.strip()


@pytest.mark.parametrize("model", ["simulated/knows-every-culture", "openai/gpt-4o"])
def test_a_model_gets_its_steps_in_the_words_it_restated_them_in(model: str) -> None:
    audit = open_audit(model, interventions=["paraphrase"], samples=2)
    [control, arm] = plan_arms(audit, "m", [("Germany", "divorce")])
    first, second = build_questions(audit, "m", arm)
    assert (first.unit, first.sample, second.sample) == (arm.unit, 0, 1)
    [message] = first.messages  # without the question, whose answer it could look up
    assert message.content.endswith("Norms of Germany. They count.\n\nOne. Two. Three.")
    result = ap.ProbeResult("m", first.unit, 0, 0, Outcome.OK, "k", "text", 1)
    turn = ap.Turn(first, "People mind it.\n\nSo they do.", result)
    question = known(ask_for_score(audit, [turn]))
    [control_messages, *_] = [control_question.messages for control_question in build_questions(audit, "m", control)]
    assert question.messages[:-1] == control_messages[:-1]
    assert "They count" not in question.messages[-1].content
    assert "People mind it." in question.messages[-1].content
    assert ask_for_score(audit, [turn, replace(turn, result=replace(result, turn=1))]) is None
    refused = replace(turn, result=replace(result, outcome=Outcome.REFUSED, value=None))
    assert ask_for_score(audit, [refused]) is None
    for other in plan_arms(open_audit(model), "m", [("Germany", "divorce")]):
        [question] = build_questions(open_audit(model), "m", other)
        assert ask_for_score(audit, [ap.Turn(question, "a", replace(result, unit=question.unit))]) is None


@pytest.mark.parametrize(
    ("text", "outcome"), [("Said otherwise.", "ok"), (" ", "unparsed"), ("I cannot help with that.", "refused")]
)
def test_restated_steps_are_text(text: str, outcome: str) -> None:
    reading = PROBE().read(ap.ProbeAnswer("m", ("a", "b", "paraphrase", "+0.1", "+0.1"), 0, 0, "", text))
    assert (reading.outcome, reading.value) == (outcome, text if outcome == "ok" else None)


def test_every_language_has_all_sentences() -> None:
    for language in LANGUAGES:
        words = _words(language)
        assert len(words) == len(Words._fields)
        assert "{notes}" in words.notes
        assert "{notes}" in words.opposite
        assert words.restate.endswith("{notes}")
        assert words.go_on.endswith("SCORE = x")
        assert words.score_only.endswith("SCORE = x")
        if language != "en":
            assert "no native speaker has read" in ap.load_prompt("reasoning", language).purpose
