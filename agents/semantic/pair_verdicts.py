"""What a judge says of pairs of answers: the consistency score, and whether the two that differ most contradict."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import combinations

from auditor.agents.run_context import RunContext
from auditor.agents.semantic.answer_collection import run_audit_calls
from auditor.agents.semantic.answer_parsing import parse_pair_verdict
from auditor.agents.semantic.call_builders import build_pair_call
from auditor.config.semantic import ConsistencySection, SemanticProbe
from auditor.domain import Call, Purpose
from auditor.domain.semantic import MoralAnswerRecord, MoralQuestion, PairVerdict
from auditor.storage import semantic_results

AnswerPair = tuple[MoralAnswerRecord, MoralAnswerRecord, int, int]
"""Two answers of a model to one question, and how the pair is numbered."""


async def judge_consistency(
    context: RunContext, section: ConsistencySection, questions: Sequence[MoralQuestion]
) -> None:
    """Ask of pairs of sampled answers whether the second is supported by the first."""
    ids = [q.id for q in questions]
    answers = await asyncio.to_thread(semantic_results.load_answers, context.db, context.audit_id, ids)
    groups: dict[tuple[str, str], list[MoralAnswerRecord]] = {}
    for answer in answers:
        if answer.wording == 0 and answer.text is not None and answer.model != section.judge:
            groups.setdefault((answer.model, answer.question), []).append(answer)
    pairs = [
        (a, b, a.sample, b.sample)
        for group in groups.values()
        for a, b in answer_pairs(sorted(group, key=lambda x: x.sample), section.pairs)
    ]
    await _judge_pairs(context, Purpose.CONSISTENCY, section.judge, questions, pairs)


def answer_pairs(
    answers: Sequence[MoralAnswerRecord], pairing: str
) -> Iterable[tuple[MoralAnswerRecord, MoralAnswerRecord]]:
    """The first answer with each other (`first`), or each with each that comes after it (`all`)."""
    return combinations(answers, 2) if pairing == "all" else ((answers[0], other) for other in answers[1:])


async def judge_contradictions(context: RunContext, probe: SemanticProbe, questions: Sequence[MoralQuestion]) -> None:
    """Ask of each model's least consistent questions whether the two answers that differ most contradict each other."""
    assert probe.contradiction is not None
    pairs = await asyncio.to_thread(_least_consistent_pairs, context, probe)
    await _judge_pairs(context, Purpose.CONTRADICTION, probe.contradiction, questions, pairs)


def _least_consistent_pairs(context: RunContext, probe: SemanticProbe) -> list[AnswerPair]:
    facts = semantic_results.load_facts(context.db, context.audit_id)
    assert facts is not None
    scores = semantic_results.load_scores(context.db, context.audit_id)
    chosen = [
        s
        for model in semantic_results.answering_models(context.db, context.audit_id)
        if model != probe.contradiction
        for s in semantic_results.select_least_consistent(scores, facts, model, probe.worst)
    ]
    answers = {
        (a.model, a.question, a.wording): a
        for a in semantic_results.load_answers(context.db, context.audit_id, {s.question for s in chosen})
        if a.wording
    }
    return [
        (answers[s.model, s.question, s.left], answers[s.model, s.question, s.right], s.left, s.right)
        for s in chosen
        if s.left is not None and s.right is not None
    ]


async def _judge_pairs(
    context: RunContext, purpose: Purpose, name: str, questions: Sequence[MoralQuestion], pairs: Sequence[AnswerPair]
) -> None:
    judge, texts = context.config.model(name), {q.id: q.text for q in questions}
    asked: list[tuple[Call, AnswerPair]] = [
        (build_pair_call(context.config, judge, purpose, texts[p[0].question], p[0].text or "", p[1].text or ""), p)
        for p in pairs
        if p[0].question in texts
    ]
    answers = await run_audit_calls(context, purpose.value, [call for call, _ in asked])
    found = []
    for call, (first, _, left, right) in asked:
        if call.key in answers:
            outcome, holds, reason = parse_pair_verdict(answers[call.key], purpose)
            key = (name, purpose.value, first.model, first.question, left, right)
            found.append(PairVerdict(*key, outcome, holds, reason, call.key))
    await asyncio.to_thread(semantic_results.save_pair_verdicts, context.db, context.audit_id, found)
