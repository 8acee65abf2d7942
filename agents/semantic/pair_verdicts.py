"""What a judge says of pairs of answers: the consistency score, and whether the two that differ most contradict."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import combinations

from auditor.agents.run_context import Context
from auditor.agents.semantic.answer_collection import ask_noted
from auditor.agents.semantic.answer_parsing import read_pair
from auditor.agents.semantic.call_builders import pair_call
from auditor.config.semantic import ConsistencySection, SemanticProbe
from auditor.domain import Call, Purpose
from auditor.domain.semantic import MoralAnswer, PairVerdict, Question
from auditor.storage import semantic_results

Pair = tuple[MoralAnswer, MoralAnswer, int, int]
"""Two answers of a model to one question, and how the pair is numbered."""


async def judge_consistency(context: Context, score: ConsistencySection, questions: Sequence[Question]) -> None:
    """Ask of pairs of sampled answers whether the second is supported by the first."""
    ids = [q.id for q in questions]
    answers = await asyncio.to_thread(semantic_results.answers, context.db, context.audit_id, ids)
    groups: dict[tuple[str, str], list[MoralAnswer]] = {}
    for answer in answers:
        if answer.wording == 0 and answer.text is not None and answer.model != score.judge:
            groups.setdefault((answer.model, answer.question), []).append(answer)
    pairs = [
        (a, b, a.sample, b.sample)
        for group in groups.values()
        for a, b in pairs_of(sorted(group, key=lambda x: x.sample), score.pairs)
    ]
    await _judge(context, Purpose.CONSISTENCY, score.judge, questions, pairs)


def pairs_of(answers: Sequence[MoralAnswer], which: str) -> Iterable[tuple[MoralAnswer, MoralAnswer]]:
    """The first answer with each other (`first`), or each with each that comes after it (`all`)."""
    return combinations(answers, 2) if which == "all" else ((answers[0], other) for other in answers[1:])


async def judge_worst(context: Context, probe: SemanticProbe, questions: Sequence[Question]) -> None:
    """Ask of each model's least consistent questions whether the two answers that differ most contradict each other."""
    assert probe.contradiction is not None
    pairs = await asyncio.to_thread(_worst_pairs, context, probe)
    await _judge(context, Purpose.CONTRADICTION, probe.contradiction, questions, pairs)


def _worst_pairs(context: Context, probe: SemanticProbe) -> list[Pair]:
    facts = semantic_results.facts(context.db, context.audit_id)
    assert facts is not None
    scores = semantic_results.scores(context.db, context.audit_id)
    chosen = [
        s
        for model in semantic_results.answering_models(context.db, context.audit_id)
        if model != probe.contradiction
        for s in semantic_results.least_consistent(scores, facts, model, probe.worst)
    ]
    answers = {
        (a.model, a.question, a.wording): a
        for a in semantic_results.answers(context.db, context.audit_id, {s.question for s in chosen})
        if a.wording
    }
    return [
        (answers[s.model, s.question, s.left], answers[s.model, s.question, s.right], s.left, s.right)
        for s in chosen
        if s.left is not None and s.right is not None
    ]


async def _judge(
    context: Context, purpose: Purpose, name: str, questions: Sequence[Question], pairs: Sequence[Pair]
) -> None:
    judge, texts = context.config.model(name), {q.id: q.text for q in questions}
    asked: list[tuple[Call, Pair]] = [
        (pair_call(context.config, judge, purpose, texts[p[0].question], p[0].text or "", p[1].text or ""), p)
        for p in pairs
        if p[0].question in texts
    ]
    answers = await ask_noted(context, purpose.value, [call for call, _ in asked])
    found = []
    for call, (first, _, left, right) in asked:
        if call.key in answers:
            outcome, holds, reason = read_pair(answers[call.key], purpose)
            key = (name, purpose.value, first.model, first.question, left, right)
            found.append(PairVerdict(*key, outcome, holds, reason, call.key))
    await asyncio.to_thread(semantic_results.save_verdicts, context.db, context.audit_id, found)
