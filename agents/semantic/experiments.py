"""The papers' experiments, asked: other temperatures, and a rule of thumb to follow; scores by model and question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.agents.run_context import RunContext
from auditor.agents.semantic.answer_collection import run_audit_calls
from auditor.agents.semantic.answer_parsing import parse_answer, parse_choice, parse_rule
from auditor.agents.semantic.call_builders import build_answer_call, build_choice_call, build_rule_call, semantic_probe
from auditor.agents.semantic.graph import scoring_settings
from auditor.agents.semantic.scoring import mix_vectors
from auditor.agents.semantic.vector_cache import VectorCache, stack_vectors
from auditor.domain import Call
from auditor.domain.semantic import MoralQuestion
from auditor.metrics.semantic import semantic_graph_entropies
from auditor.storage import semantic_results

Floats = NDArray[np.float64]


class AnswerRequest(NamedTuple):
    """One answer that is wanted."""

    model: str
    text: str
    sample: int = 0
    temperature: float | None = None
    rule: str | None = None


class AnswerWithRule(NamedTuple):
    """What came back, with its rule of thumb where the probe asks for them; None where it cannot be used."""

    answer: str | None
    rule: str | None


async def load_asked_questions(context: RunContext) -> tuple[list[MoralQuestion], dict[str, list[str]]]:
    """The audit's questions, and the wordings in which they were asked."""
    questions = await asyncio.to_thread(semantic_results.load_questions, context.db, context.audit_id)
    groups = await asyncio.to_thread(semantic_results.load_wordings, context.db, context.audit_id)
    texts = {
        q.id: [w.text for w in sorted(groups.get(q.id, []), key=lambda w: w.number or 0) if w.number] for q in questions
    }
    return questions, texts


async def elicit_answers(context: RunContext, requests: Sequence[AnswerRequest]) -> list[AnswerWithRule]:
    """Answers and rules of thumb; a run that is stopped ends here."""
    config, probe = context.config, semantic_probe(context.config)
    calls = [
        build_answer_call(
            config, config.model(a.model), a.text, sample=a.sample, temperature=a.temperature, rule=a.rule
        )
        for a in requests
    ]
    got = await run_audit_calls(context, "answer", calls)
    context.raise_if_stopped()
    texts = [parse_answer(got[call.key], probe.mode)[1] for call in calls]
    ruled: dict[int, Call] = {
        i: build_rule_call(config, config.model(probe.rot_model or a.model), a.text, text)
        for i, (a, text) in enumerate(zip(requests, texts, strict=True))
        if probe.measured != "answer" and text is not None
    }
    rules = await run_audit_calls(context, "rule", list(ruled.values()))
    context.raise_if_stopped()
    read = {i: parse_rule(rules[c.key], probe.mode, c.messages[0].content)[1] for i, c in ruled.items()}
    return [AnswerWithRule(text, read.get(i)) for i, text in enumerate(texts)]


def score_groups(
    context: RunContext, groups: Sequence[Sequence[AnswerWithRule]], *, answers_only: bool = False
) -> Floats:
    """The audit's own score of each group of answers, nan with fewer than two that are usable."""
    assert context.load_semantic_encoder is not None
    assert context.config.probes.semantic is not None
    facts = scoring_settings(context.config, context.config.probes.semantic)
    n = max(map(len, groups), default=0)
    known = VectorCache(context.db, context.load_semantic_encoder()).embed(
        t for g in groups for said in g for t in said if t
    )
    answers = stack_vectors([[s.answer for s in g] for g in groups], known, n)
    rows = answers
    if facts.measured != "answer" and not answers_only:
        rules = stack_vectors([[s.rule for s in g] for g in groups], known, n)
        rows = rules if facts.measured == "rot" else mix_vectors(rules, answers, facts.rot_weight)
    return semantic_graph_entropies(rows, "sge" if facts.variant == "sge" else "sage", facts.alpha)


async def scores_by_temperature(
    context: RunContext, temperatures: Sequence[float]
) -> dict[tuple[str, float, bool], Floats]:
    """Scores by model, temperature and whether it was the wording that changed, over the audit's questions in order."""
    questions, wordings = await load_asked_questions(context)
    found = {}
    for model in context.config.models:
        for temperature in temperatures:
            for reworded in (False, True):
                asks = [
                    [
                        AnswerRequest(model.name, text if reworded else q.text, 0 if reworded else i, temperature)
                        for i, text in enumerate(wordings[q.id])
                    ]
                    for q in questions
                ]
                found[model.name, temperature, reworded] = await _elicit_and_score(context, asks)
    return found


async def scores_by_rule(context: RunContext) -> dict[tuple[str, bool], Floats]:
    """Scores by model, and whether it was given its own first rule of thumb on the question to follow."""
    questions, wordings = await load_asked_questions(context)
    given: dict[tuple[str, str], str] = {}
    for answer in await asyncio.to_thread(semantic_results.load_answers, context.db, context.audit_id):
        if answer.wording and answer.rot is not None:
            given.setdefault((answer.model, answer.question), answer.rot)
    found = {}
    for model in context.config.models:
        for followed in (False, True):
            asks = [
                [
                    AnswerRequest(model.name, text, rule=given[model.name, q.id] if followed else None)
                    for text in wordings[q.id]
                    if (model.name, q.id) in given
                ]
                for q in questions
            ]
            found[model.name, followed] = await _elicit_and_score(context, asks)
    return found


class KnownAnswerQuestion(NamedTuple):
    """A question whose answer is known.

    Attributes:
        wordings: at least two.
        correct: which of the choices is right, from 1.
    """

    id: str
    wordings: tuple[str, ...]
    choices: tuple[str, ...]
    correct: int


async def accuracy_and_consistency(
    context: RunContext, questions: Sequence[KnownAnswerQuestion]
) -> dict[str, tuple[Floats, Floats]]:
    """By model, and by question in order: the share of usable answers that are right, and how alike the reasons are."""
    found = {}
    for model in context.config.models:
        calls = [[build_choice_call(context.config, model, text, q.choices) for text in q.wordings] for q in questions]
        got = await run_audit_calls(context, "answer", [call for group in calls for call in group])
        context.raise_if_stopped()
        read = [
            [parse_choice(got[call.key], len(q.choices)) for call in group]
            for q, group in zip(questions, calls, strict=True)
        ]
        right = [
            [choice == q.correct for choice, _ in group if choice is not None]
            for q, group in zip(questions, read, strict=True)
        ]
        accuracy = np.array([np.mean(group) if group else np.nan for group in right], dtype=float)
        said = [[AnswerWithRule(reason, None) for _, reason in group] for group in read]
        found[model.name] = accuracy, await asyncio.to_thread(score_groups, context, said, answers_only=True)
    return found


async def _elicit_and_score(context: RunContext, requests: Sequence[Sequence[AnswerRequest]]) -> Floats:
    said = await elicit_answers(context, [one for group in requests for one in group])
    ends = np.cumsum([len(group) for group in requests])
    groups = [said[end - len(group) : end] for group, end in zip(requests, ends, strict=True)]
    return await asyncio.to_thread(score_groups, context, groups)
