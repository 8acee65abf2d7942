"""Experiments of the papers on semantic consistency: temperature, and following a rule of thumb."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.agents.call_runner import run_audit_calls
from auditor.agents.run_context import RunContext
from auditor.domain import Call
from auditor.experiments.stored_audit import Requirement
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.answer_parsing import parse_answer, parse_rule
from auditor.probes.semantic.call_builders import asked_text, build_answer_call, build_rule_call, semantic_probe
from auditor.probes.semantic.group_scores import AnswerWithRule, GroupScores, score_groups
from auditor.probes.semantic.paraphrases import generate_paraphrases
from auditor.probes.semantic.questions import save_questions
from auditor.probes.semantic.records import MoralQuestion
from auditor.probes.semantic.settings import SemanticProbe

Floats = NDArray[np.float64]

SEMANTIC_PROBE = Requirement(
    lambda _db, _audit, config: config.probes.find(SemanticProbe),
    "has asked no moral questions",
    "Name one with `semantic = {}` under [probes].",
)


class AnswerRequest(NamedTuple):
    """Parameters of one answer to collect; see `build_answer_call`.

    Attributes:
        model: name of the model.
        text: text of the wording to ask.
    """

    model: str
    text: str
    sample: int = 0
    temperature: float | None = None
    rule: str | None = None


async def load_asked_questions(context: RunContext) -> tuple[list[MoralQuestion], dict[str, list[str]]]:
    """Load the audit's questions, and the texts of their paraphrases by question id, all as the prompts show them.

    Of an audit that has not asked any yet, the questions are stored, and missing paraphrases written.
    """
    questions = await asyncio.to_thread(answer_rows.load_questions, context.db, context.audit_id)
    if not questions:
        probe = semantic_probe(context.config)
        questions = await asyncio.to_thread(save_questions, context.db, context.audit_id, probe, context.survey)
        if probe.paraphraser is not None:
            await generate_paraphrases(context, probe, questions)
            context.raise_if_stopped()
    wordings_by_question = await asyncio.to_thread(answer_rows.load_wordings, context.db, context.audit_id)
    texts_by_question = {
        question.id: [
            asked_text(wording.text, question.country, wording.language)
            for wording in sorted(wordings_by_question.get(question.id, []), key=lambda wording: wording.number or 0)
            if wording.number
        ]
        for question in questions
    }
    asked = [
        replace(question, text=asked_text(question.text, question.country, question.language)) for question in questions
    ]
    return asked, texts_by_question


async def elicit_answers(context: RunContext, requests: Sequence[AnswerRequest]) -> list[AnswerWithRule]:
    """Collect answers and, if the probe scores them, their rules of thumb; in the order of the requests.

    Raises:
        AuditorError: the run was stopped.
    """
    config, probe = context.config, semantic_probe(context.config)
    calls = [
        build_answer_call(
            config,
            config.model(request.model),
            request.text,
            sample=request.sample,
            temperature=request.temperature,
            rule=request.rule,
        )
        for request in requests
    ]
    answers = await run_audit_calls(context, "answer", calls)
    context.raise_if_stopped()
    parsed_answers = [parse_answer(answers[call.key], probe.mode) for call in calls]
    rule_calls: dict[int, Call] = {
        index: build_rule_call(config, config.model(probe.rot_model or request.model), request.text, text)
        for index, (request, (_, text)) in enumerate(zip(requests, parsed_answers, strict=True))
        if probe.measured != "answer" and text is not None
    }
    rule_answers = await run_audit_calls(context, "rule", list(rule_calls.values()))
    context.raise_if_stopped()
    parsed_rules = {
        index: parse_rule(rule_answers[call.key], probe.mode, call.messages[0].content)
        for index, call in rule_calls.items()
    }
    return [AnswerWithRule(*answer, *parsed_rules.get(index, ())) for index, answer in enumerate(parsed_answers)]


async def scores_by_temperature(
    context: RunContext, temperatures: Sequence[float]
) -> dict[tuple[str, float, bool], GroupScores]:
    """Scores by (model, temperature, reworded), arrays over the audit's questions in order.

    `reworded` is True for one answer to each paraphrase, False for as many samples of the original question.
    """
    questions, wordings = await load_asked_questions(context)
    scores = {}
    for model in context.config.models:
        for temperature in temperatures:
            for reworded in (False, True):
                requests = [
                    [
                        AnswerRequest(
                            model.name, text if reworded else question.text, 0 if reworded else sample, temperature
                        )
                        for sample, text in enumerate(wordings[question.id])
                    ]
                    for question in questions
                ]
                scores[model.name, temperature, reworded] = await _elicit_and_score(context, requests)
    return scores


async def scores_by_rule(
    context: RunContext, rules: Mapping[str, str] | None = None
) -> dict[tuple[str, bool], GroupScores]:
    """Scores by (model, followed), arrays over the audit's questions in order.

    `followed` is True if the model was given a rule of thumb to follow. Questions without a rule have no score.

    Args:
        rules: rules by question id; by default, each model follows its own first rule of thumb on the question.
    """
    questions, wordings = await load_asked_questions(context)
    rule_by_key: dict[tuple[str, str], str] = {
        (model.name, question): rule for model in context.config.models for question, rule in (rules or {}).items()
    }
    if rules is None:
        for answer in await asyncio.to_thread(answer_rows.load_answers, context.db, context.audit_id):
            if answer.wording and answer.rot is not None:
                rule_by_key.setdefault((answer.model, answer.question), answer.rot)
    scores = {}
    for model in context.config.models:
        for followed in (False, True):
            requests = [
                [
                    AnswerRequest(model.name, text, rule=rule_by_key[model.name, question.id] if followed else None)
                    for text in wordings[question.id]
                    if (model.name, question.id) in rule_by_key
                ]
                for question in questions
            ]
            scores[model.name, followed] = await _elicit_and_score(context, requests)
    return scores


async def _elicit_and_score(context: RunContext, requests: Sequence[Sequence[AnswerRequest]]) -> GroupScores:
    """Collect the answers of each group of requests, and score their consistency: one score per group and measure."""
    answers = await elicit_answers(context, [request for group in requests for request in group])
    group_ends = np.cumsum([len(group) for group in requests])
    groups = [answers[end - len(group) : end] for group, end in zip(requests, group_ends, strict=True)]
    return await asyncio.to_thread(score_groups, context, groups)
