"""What a probe is given: cells drawn by lot, and the question behind a recorded answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from auditor.agents.call_builders import build_direct_call
from auditor.agents.probe_questions import _without_prefill, load_question
from auditor.config import AuditConfig
from auditor.domain import Message, Outcome, Trace
from auditor.probe_interface import ProbeAudit
from auditor.run import load_planned_survey
from tests.support.audit_configs import config


def open_audit(**changes: Any) -> ProbeAudit[Any]:
    audit = config("http://127.0.0.1:1", 1, judges=[], **changes)
    return ProbeAudit(None, audit, load_planned_survey(audit))


@pytest.fixture(scope="module")
def large_audit() -> ProbeAudit[Any]:
    return open_audit(survey={"source": "wvs7-sample"})


def test_cells_are_drawn_among_those_with_a_property(large_audit: ProbeAudit[Any]) -> None:
    eligible = list(large_audit.cells)[::7]
    assert set(large_audit.draw_cells(20, eligible)) < set(eligible)
    assert large_audit.draw_cells(10_000, eligible) == eligible


@pytest.mark.parametrize("n", [1, 7, 60])
def test_cells_are_drawn_evenly_over_countries_and_topics(large_audit: ProbeAudit[Any], n: int) -> None:
    cells = large_audit.draw_cells(n)
    assert len(set(cells)) == len(cells) == n
    assert cells == sorted(cells, key=list(large_audit.cells).index)
    for names, available in (
        ([cell.country for cell in cells], {cell.country for cell in large_audit.cells}),
        ([cell.topic for cell in cells], {cell.topic for cell in large_audit.cells}),
    ):
        counts = [Counter(names)[name] for name in available]
        assert max(counts) - min(counts) <= 1 + (n > len(available))


def test_the_same_cells_are_drawn_again_and_others_with_another_seed(large_audit: ProbeAudit[Any]) -> None:
    assert large_audit.draw_cells(60) == large_audit.draw_cells(60)
    other = open_audit(survey={"source": "wvs7-sample"}, seed=8)
    assert other.draw_cells(60) != large_audit.draw_cells(60)


def test_all_cells_are_drawn_where_there_are_no_more() -> None:
    audit = open_audit()
    assert audit.draw_cells(60) == list(audit.cells)


def test_the_question_behind_an_answer_is_what_the_model_was_asked_without_its_own_system_message() -> None:
    audit = config("http://127.0.0.1:1", 1, judges=[])
    survey = load_planned_survey(audit)
    first, *_ = survey.asked_cells
    trace = Trace("model-a", first, 0, Outcome.OK, 0.2, "Because.")
    asked = build_direct_call(audit, survey, audit.models[0], first, 0).messages
    assert load_question(audit, survey, trace) == asked
    models = [{**audit.models[0].model_dump(mode="json", exclude_unset=True), "system": "Be brief."}]
    with_system = AuditConfig.model_validate({**audit.model_dump(mode="json", exclude_unset=True), "models": models})
    assert load_question(with_system, survey, trace) == asked
    direct = build_direct_call(with_system, survey, with_system.models[0], first, 0).messages
    assert direct[0] == Message("system", f"Be brief.\n\n{asked[0].content}")


@pytest.mark.parametrize("text", [" 0.4", "Step 1.\nSCORE = 0.4", "  Step 1.\nSCORE = 0.4"])
def test_the_beginning_of_an_answer_that_the_provider_returns_again_is_not_read(text: str) -> None:
    assert _without_prefill(text, "Step 1.\nSCORE =").strip() == "0.4"
    assert _without_prefill(text, "") == text


def test_a_model_hides_reasoning_if_it_is_set_to_or_its_answers_say_so() -> None:
    audit = open_audit()
    name = audit.models[0]
    assert not audit.hides_reasoning(name)
    assert replace(audit, load_hidden_reasoning=lambda model: model == name).hides_reasoning(name)
    models = [{**audit.config.models[0].model_dump(mode="json", exclude_unset=True), "reasoning": {"effort": "low"}}]
    settings = {**audit.config.model_dump(mode="json", exclude_unset=True), "models": models}
    assert replace(audit, config=AuditConfig.model_validate(settings)).hides_reasoning(name)
