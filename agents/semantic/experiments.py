"""Experiments of the papers on semantic consistency: temperature, following a rule of thumb, known answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.agents.run_context import RunContext
from auditor.agents.semantic.answer_collection import run_audit_calls
from auditor.agents.semantic.answer_parsing import parse_answer, parse_choice, parse_rule
from auditor.agents.semantic.call_builders import build_answer_call, build_choice_call, build_rule_call, semantic_probe
from auditor.agents.semantic.group_scores import AnswerWithRule, GroupScores, score_groups
from auditor.agents.semantic.paraphrases import add_paraphrases
from auditor.domain import Call
from auditor.domain.semantic import MoralQuestion, MoralWording
from auditor.errors import UsageError
from auditor.storage import semantic_results

Floats = NDArray[np.float64]


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
    """Load the audit's questions, and the texts of their paraphrases by question id."""
    questions = await asyncio.to_thread(semantic_results.load_questions, context.db, context.audit_id)
    wordings_by_question = await asyncio.to_thread(semantic_results.load_wordings, context.db, context.audit_id)
    texts_by_question = {
        question.id: [
            wording.text
            for wording in sorted(wordings_by_question.get(question.id, []), key=lambda wording: wording.number or 0)
            if wording.number
        ]
        for question in questions
    }
    return questions, texts_by_question


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
    # Item 1 of a parsed answer or rule is its text; item 0 is the outcome.
    texts = [parse_answer(answers[call.key], probe.mode)[1] for call in calls]
    rule_calls: dict[int, Call] = {
        index: build_rule_call(config, config.model(probe.rot_model or request.model), request.text, text)
        for index, (request, text) in enumerate(zip(requests, texts, strict=True))
        if probe.measured != "answer" and text is not None
    }
    rule_answers = await run_audit_calls(context, "rule", list(rule_calls.values()))
    context.raise_if_stopped()
    rules = {
        index: parse_rule(rule_answers[call.key], probe.mode, call.messages[0].content)[1]
        for index, call in rule_calls.items()
    }
    return [AnswerWithRule(text, rules.get(index)) for index, text in enumerate(texts)]


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
        for answer in await asyncio.to_thread(semantic_results.load_answers, context.db, context.audit_id):
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


class KnownAnswerQuestion(NamedTuple):
    """A question with a known answer.

    Attributes:
        wordings: the question itself, then its paraphrases.
        correct_choice: number of the correct choice, from 1.
    """

    id: str
    wordings: tuple[str, ...]
    choices: tuple[str, ...]
    correct_choice: int


async def paraphrase_known_answers(
    context: RunContext, questions: Sequence[KnownAnswerQuestion]
) -> list[KnownAnswerQuestion]:
    """Have the audit's paraphraser write wordings of the questions that have only one.

    Nothing of them is stored with the audit's own questions; the paraphraser's answers are recorded.

    Raises:
        UsageError: there is such a question, but the audit has no paraphraser.
    """
    probe = semantic_probe(context.config)
    unparaphrased = [
        MoralQuestion(question.id, question.wordings[0]) for question in questions if len(question.wordings) < 2
    ]
    if not unparaphrased:
        return list(questions)
    if probe.paraphraser is None or not probe.paraphrases:
        raise UsageError(
            f"question '{unparaphrased[0].id}' has no paraphrase, and the audit has no model that writes one.",
            "Add a row for each paraphrase, or name a model as 'paraphraser' in [probes.semantic] of a new audit.",
        )
    wordings = {question.id: [MoralWording(question.id, 0, 0, question.text, "question")] for question in unparaphrased}
    await add_paraphrases(context, probe, unparaphrased, wordings)
    context.raise_if_stopped()
    texts = {
        id_: tuple(wording.text for wording in candidates if wording.number is not None)
        for id_, candidates in wordings.items()
    }
    return [question._replace(wordings=texts.get(question.id, question.wordings)) for question in questions]


async def accuracy_and_consistency(
    context: RunContext, questions: Sequence[KnownAnswerQuestion]
) -> dict[str, tuple[Floats, Floats]]:
    """By model, two arrays over the questions: the share of correct answers, and the consistency of the reasons."""
    measures_by_model = {}
    for model in context.config.models:
        calls = [
            [build_choice_call(context.config, model, text, question.choices) for text in question.wordings]
            for question in questions
        ]
        answers = await run_audit_calls(context, "answer", [call for group in calls for call in group])
        context.raise_if_stopped()
        choices_and_reasons = [
            [parse_choice(answers[call.key], len(question.choices)) for call in group]
            for question, group in zip(questions, calls, strict=True)
        ]
        is_correct = [
            [choice == question.correct_choice for choice, _ in group if choice is not None]
            for question, group in zip(questions, choices_and_reasons, strict=True)
        ]
        accuracy = np.array([np.mean(group) if group else np.nan for group in is_correct], dtype=float)
        reasons = [[AnswerWithRule(reason, None) for _, reason in group] for group in choices_and_reasons]
        scores = await asyncio.to_thread(score_groups, context, reasons, answers_only=True)
        measures_by_model[model.name] = accuracy, scores.main
    return measures_by_model


async def _elicit_and_score(context: RunContext, requests: Sequence[Sequence[AnswerRequest]]) -> GroupScores:
    """Collect the answers of each group of requests, and score their consistency: one score per group and measure."""
    answers = await elicit_answers(context, [request for group in requests for request in group])
    group_ends = np.cumsum([len(group) for group in requests])
    groups = [answers[end - len(group) : end] for group, end in zip(requests, group_ends, strict=True)]
    return await asyncio.to_thread(score_groups, context, groups)
