"""Collecting answers to moral questions, and the rule of thumb behind each answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from auditor.agents.call_runner import repeat_calls, repeat_unusable, run_audit_calls
from auditor.agents.run_context import RunContext
from auditor.config import ModelSection
from auditor.domain import Answer, Call, Outcome
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.answer_parsing import parse_answer, parse_rule
from auditor.probes.semantic.call_builders import asked_text, build_answer_call, build_rule_call, semantic_probe
from auditor.probes.semantic.given_answers import load_task_answers
from auditor.probes.semantic.records import MoralAnswerRecord, MoralQuestion, MoralWording, PairVerdict
from auditor.probes.semantic.settings import TASK_QUESTIONS
from auditor.storage import costs
from auditor.storage.records import save_records

R = TypeVar("R", MoralAnswerRecord, PairVerdict)


class _PlannedAnswer(NamedTuple):
    """An answer to collect, with its call."""

    call: Call
    model: str
    wording: MoralWording
    sample: int


async def collect_answers(
    context: RunContext,
    questions: Sequence[MoralQuestion],
    recorded_answers: Mapping[str, Mapping[str, Sequence[MoralAnswerRecord]]],
) -> None:
    """Ask every model all wordings of the questions and the rules of thumb, and store the answers.

    Models with given answers are not asked (see `SemanticProbe.has_given_answers`): theirs are to the items of a task,
    or recorded.

    Args:
        recorded_answers: by model and question.
    """
    ids = [question.id for question in questions]
    wordings = await asyncio.to_thread(answer_rows.load_wordings, context.db, context.audit_id, ids)
    probe = semantic_probe(context.config)
    countries = {question.id: question.country for question in questions}
    given_models = [model for model in context.config.models if probe.has_given_answers(context.config, model)]
    planned_answers = [
        planned
        for model in context.config.models
        if model not in given_models
        for question in ids
        for planned in _plan_answers(context, model, wordings[question], countries[question])
    ]
    answers = await run_audit_calls(context, "answer", [planned.call for planned in planned_answers])
    asked = [planned for planned in planned_answers if planned.call.key in answers]

    def read(position: int, answer: Answer) -> MoralAnswerRecord:
        """Parse an answer to the call at a position of `asked`."""
        planned = asked[position]
        outcome, text = parse_answer(answer, probe.mode)
        question, number = planned.wording.question, planned.wording.number or 0
        return MoralAnswerRecord(planned.model, question, number, planned.sample, outcome, text, answer.key)

    first_records = [(planned.call, read(i, answers[planned.call.key])) for i, planned in enumerate(asked)]
    answer_records = await repeat_audit_calls(context, "answer", first_records, read)
    texts = {
        (wording.question, wording.number): asked_text(wording.text, countries[wording.question], wording.language)
        for group in wordings.values()
        for wording in group
    }
    answer_records = await add_rules_of_thumb(context, answer_records, texts)
    for model in given_models:
        if probe.questions == TASK_QUESTIONS:
            answer_records += await asyncio.to_thread(load_task_answers, context, model.name, ids)
        else:
            answer_records += [answer for question in ids for answer in recorded_answers[model.name].get(question, ())]
    await asyncio.to_thread(save_records, context.db, context.audit_id, answer_records)


def _plan_answers(
    context: RunContext, model: ModelSection, wordings: Sequence[MoralWording], country: str
) -> list[_PlannedAnswer]:
    """Plan one answer of a model to each paraphrase and, for the consistency score, several to the original question.

    Args:
        wordings: all wordings of one question; number 0 is the question itself, None a rejected paraphrase.
        country: that the question is about; empty if none.
    """
    config = context.config
    consistency = semantic_probe(config).consistency
    planned_answers = [
        _PlannedAnswer(
            build_answer_call(config, model, asked_text(wording.text, country, wording.language)),
            model.name,
            wording,
            0,
        )
        for wording in wordings
        if wording.number is not None and wording.number
    ]
    if consistency is not None:
        original = next(wording for wording in wordings if wording.number == 0)
        planned_answers += [
            _PlannedAnswer(
                build_answer_call(
                    config,
                    model,
                    asked_text(original.text, country, original.language),
                    sample=sample,
                    temperature=consistency.temperature,
                ),
                model.name,
                original,
                sample,
            )
            for sample in range(consistency.samples)
        ]
    return planned_answers


async def add_rules_of_thumb(
    context: RunContext, answers: Sequence[MoralAnswerRecord], wording_texts: dict[tuple[str, int | None], str]
) -> list[MoralAnswerRecord]:
    """Ask for the rules of thumb behind answers to paraphrases, if configured, and return the answers with them.

    Args:
        wording_texts: text of each wording (`asked_text`), by question id and wording number.
    """
    probe = semantic_probe(context.config)
    calls: dict[int, Call] = {}  # by position of the answer
    for index, answer in enumerate(answers):
        if probe.rot and answer.text is not None and answer.wording:
            author = context.config.model(probe.rot_model or answer.model)
            calls[index] = build_rule_call(
                context.config, author, wording_texts[answer.question, answer.wording], answer.text
            )
    rule_answers = await run_audit_calls(context, "rule", list(calls.values()))
    updated_answers = list(answers)
    for index, call in calls.items():
        if call.key in rule_answers:
            rule_answer = rule_answers[call.key]
            outcome, rule = parse_rule(rule_answer, probe.mode, call.messages[0].content)
            updated_answers[index] = replace(answers[index], rot=rule, rot_outcome=outcome, rot_key=rule_answer.key)
    await _repeat_unusable_rules(context, calls, updated_answers)
    return updated_answers


async def _repeat_unusable_rules(
    context: RunContext, calls: Mapping[int, Call], answers: list[MoralAnswerRecord]
) -> None:
    """Ask again for unusable rules of thumb where the user wants that, and change the answers in place.

    Args:
        calls: for rules of thumb, by position of the answer.
    """
    outcomes = [(call, answers[index].rot_outcome) for index, call in calls.items()]
    second_answers = await repeat_calls(context, "rule", [(call, outcome) for call, outcome in outcomes if outcome])
    for index, call in calls.items():
        if call.key not in second_answers:
            continue
        answer, second = answers[index], second_answers[call.key]
        outcome, rule = parse_rule(second, semantic_probe(context.config).mode, call.messages[0].content)
        answers[index] = replace(
            answer,
            rot=rule if outcome is Outcome.OK else answer.rot,
            rot_outcome=outcome if outcome is Outcome.OK else answer.rot_outcome,
            rot_repeat_key=second.key,
            rot_first_outcome=answer.rot_outcome,
        )
    await _record_repeats(context, [(call, answers[index].rot_repeat_key) for index, call in calls.items()])


async def repeat_audit_calls(
    context: RunContext, stage: str, asked: Sequence[tuple[Call, R]], read: Callable[[int, Answer], R]
) -> list[R]:
    """Do what `repeat_unusable` does, and record the calls so that their cost is attributed to the audit."""
    records = await repeat_unusable(context, stage, asked, read)
    await _record_repeats(
        context, [(call, record.repeat_key) for (call, _), record in zip(asked, records, strict=True)]
    )
    return records


async def _record_repeats(context: RunContext, calls: Iterable[tuple[Call, str | None]]) -> None:
    """Record the calls that were repeated, each with the key of the repeat; None for those that were not."""
    identities = [(call.name, call.purpose.value, key) for call, key in calls if key is not None]
    if identities:
        await asyncio.to_thread(costs.record_calls, context.db, context.audit_id, identities)
