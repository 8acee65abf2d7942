"""Asking for answers, and for the rule of thumb behind each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from auditor.agents.call_runner import run_calls
from auditor.agents.run_context import RunContext
from auditor.agents.semantic.answer_parsing import parse_answer, parse_rule
from auditor.agents.semantic.call_builders import build_answer_call, build_rule_call, semantic_probe
from auditor.config import ModelSection
from auditor.domain import Answer, Call
from auditor.domain.semantic import MoralAnswerRecord, MoralQuestion, MoralWording
from auditor.storage import semantic_results


class _PlannedAnswer(NamedTuple):
    """One answer that is asked for."""

    call: Call
    model: str
    wording: MoralWording
    sample: int


async def collect_answers(context: RunContext, questions: Sequence[MoralQuestion]) -> None:
    """Put every wording of the questions to every model, with the rules of thumb, and store what comes back."""
    ids = [q.id for q in questions]
    wordings = await asyncio.to_thread(semantic_results.load_wordings, context.db, context.audit_id, ids)
    asked = [
        one
        for model in context.config.models
        for question in ids
        for one in _plan_answers(context, model, wordings[question])
    ]
    answers = await run_audit_calls(context, "answer", [one.call for one in asked])
    mode = semantic_probe(context.config).mode
    found = []
    for one in asked:
        if one.call.key in answers:
            outcome, text = parse_answer(answers[one.call.key], mode)
            question, number = one.wording.question, one.wording.number or 0
            found.append(MoralAnswerRecord(one.model, question, number, one.sample, outcome, text, one.call.key))
    texts = {(w.question, w.number): w.text for group in wordings.values() for w in group}
    found = await add_rules_of_thumb(context, found, texts)
    await asyncio.to_thread(semantic_results.save_answers, context.db, context.audit_id, found)


def _plan_answers(context: RunContext, model: ModelSection, wordings: Sequence[MoralWording]) -> list[_PlannedAnswer]:
    """One answer to each wording, and where a consistency score is asked for, several to the question as it stands."""
    config = context.config
    score = semantic_probe(config).consistency
    asked = [
        _PlannedAnswer(build_answer_call(config, model, w.text), model.name, w, 0)
        for w in wordings
        if w.number is not None and w.number
    ]
    if score is not None:
        own = next(w for w in wordings if w.number == 0)
        asked += [
            _PlannedAnswer(
                build_answer_call(config, model, own.text, sample=i, temperature=score.temperature), model.name, own, i
            )
            for i in range(score.samples)
        ]
    return asked


async def add_rules_of_thumb(
    context: RunContext, answers: Sequence[MoralAnswerRecord], wording_texts: dict[tuple[str, int | None], str]
) -> list[MoralAnswerRecord]:
    """The answers with their rules of thumb, where the probe asks for them; texts are by question and wording."""
    probe = semantic_probe(context.config)
    calls: dict[int, Call] = {}
    for i, answer in enumerate(answers):
        if probe.rot and answer.text is not None and answer.wording:
            author = context.config.model(probe.rot_model or answer.model)
            calls[i] = build_rule_call(
                context.config, author, wording_texts[answer.question, answer.wording], answer.text
            )
    got = await run_audit_calls(context, "rule", list(calls.values()))
    found = list(answers)
    for i, call in calls.items():
        if call.key in got:
            outcome, rule = parse_rule(got[call.key], probe.mode, call.messages[0].content)
            found[i] = replace(answers[i], rot=rule, rot_outcome=outcome, rot_key=call.key)
    return found


async def run_audit_calls(context: RunContext, stage: str, calls: Sequence[Call]) -> dict[str, Answer]:
    """Answers by key; what they cost is the audit's."""
    if not calls:
        return {}
    told = [(call.name, call.purpose.value, call.key) for call in calls]
    await asyncio.to_thread(semantic_results.record_calls, context.db, context.audit_id, told)
    return await run_calls(context, stage, calls)
