"""Asking for answers, and for the rule of thumb behind each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from auditor.agents.call_runner import ask
from auditor.agents.run_context import Context
from auditor.agents.semantic.answer_parsing import read_answer, read_rule
from auditor.agents.semantic.call_builders import answer_call, probe_of, rule_call
from auditor.config import ModelSection
from auditor.domain import Answer, Call
from auditor.domain.semantic import MoralAnswer, Question, Wording
from auditor.storage import semantic_results


class _Asked(NamedTuple):
    """One answer that is asked for."""

    call: Call
    model: str
    wording: Wording
    sample: int


async def answer_batch(context: Context, questions: Sequence[Question]) -> None:
    """Put every wording of the questions to every model, with the rules of thumb, and store what comes back."""
    ids = [q.id for q in questions]
    wordings = await asyncio.to_thread(semantic_results.wordings, context.db, context.audit_id, ids)
    asked = [
        one
        for model in context.config.models
        for question in ids
        for one in _asked_of(context, model, wordings[question])
    ]
    answers = await ask_noted(context, "answer", [one.call for one in asked])
    mode = probe_of(context.config).mode
    found = []
    for one in asked:
        if one.call.key in answers:
            outcome, text = read_answer(answers[one.call.key], mode)
            question, number = one.wording.question, one.wording.number or 0
            found.append(MoralAnswer(one.model, question, number, one.sample, outcome, text, one.call.key))
    texts = {(w.question, w.number): w.text for group in wordings.values() for w in group}
    found = await with_rules(context, found, texts)
    await asyncio.to_thread(semantic_results.save_answers, context.db, context.audit_id, found)


def _asked_of(context: Context, model: ModelSection, wordings: Sequence[Wording]) -> list[_Asked]:
    """One answer to each wording, and where a consistency score is asked for, several to the question as it stands."""
    config = context.config
    score = probe_of(config).consistency
    asked = [
        _Asked(answer_call(config, model, w.text), model.name, w, 0)
        for w in wordings
        if w.number is not None and w.number
    ]
    if score is not None:
        own = next(w for w in wordings if w.number == 0)
        asked += [
            _Asked(answer_call(config, model, own.text, sample=i, temperature=score.temperature), model.name, own, i)
            for i in range(score.samples)
        ]
    return asked


async def with_rules(
    context: Context, answers: Sequence[MoralAnswer], texts: dict[tuple[str, int | None], str]
) -> list[MoralAnswer]:
    """The answers with their rules of thumb, where the probe asks for them; texts are by question and wording."""
    probe = probe_of(context.config)
    calls: dict[int, Call] = {}
    for i, answer in enumerate(answers):
        if probe.rot and answer.text is not None and answer.wording:
            author = context.config.model(probe.rot_model or answer.model)
            calls[i] = rule_call(context.config, author, texts[answer.question, answer.wording], answer.text)
    got = await ask_noted(context, "rule", list(calls.values()))
    found = list(answers)
    for i, call in calls.items():
        if call.key in got:
            outcome, rule = read_rule(got[call.key], probe.mode, call.messages[0].content)
            found[i] = replace(answers[i], rot=rule, rot_outcome=outcome, rot_key=call.key)
    return found


async def ask_noted(context: Context, stage: str, calls: Sequence[Call]) -> dict[str, Answer]:
    """Answers by key; what they cost is the audit's."""
    if not calls:
        return {}
    told = [(call.name, call.purpose.value, call.key) for call in calls]
    await asyncio.to_thread(semantic_results.note_calls, context.db, context.audit_id, told)
    return await ask(context, stage, calls)
