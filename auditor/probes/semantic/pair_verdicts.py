"""Judges' verdicts on pairs of answers: the consistency score, and contradictions of the least similar answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import combinations

from auditor.agents.call_runner import run_audit_calls
from auditor.agents.run_context import RunContext
from auditor.domain import Answer, Call, Purpose
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.answer_collection import repeat_audit_calls
from auditor.probes.semantic.answer_parsing import parse_pair_verdict
from auditor.probes.semantic.call_builders import asked_text, build_pair_call, is_paper_form
from auditor.probes.semantic.records import (
    CONSISTENCY_PURPOSE,
    MoralAnswerRecord,
    MoralQuestion,
    PairVerdict,
    QuestionScore,
)
from auditor.probes.semantic.settings import ConsistencySection, SemanticProbe
from auditor.storage.probe_answers import list_answering_models
from auditor.storage.records import load_records, save_records

AnswerPair = tuple[MoralAnswerRecord, MoralAnswerRecord, int, int]
"""Two answers of a model to one question, and the numbers under which the pair is stored."""


async def judge_consistency(
    context: RunContext, section: ConsistencySection, questions: Sequence[MoralQuestion]
) -> None:
    """Ask the judge whether the first of two sampled answers of a model supports the second, and store the verdicts."""
    ids = [question.id for question in questions]
    answers = await asyncio.to_thread(answer_rows.load_answers, context.db, context.audit_id, ids)
    groups: dict[tuple[str, str], list[MoralAnswerRecord]] = {}
    for answer in answers:
        if answer.wording == 0 and answer.text is not None and answer.model != section.judge:
            groups.setdefault((answer.model, answer.question), []).append(answer)
    pairs = [
        (first, second, first.sample, second.sample)
        for group in groups.values()
        for first, second in answer_pairs(sorted(group, key=lambda sampled: sampled.sample), section.pairs)
    ]
    await judge_pairs(context, CONSISTENCY_PURPOSE, section.judge, questions, pairs)


def answer_pairs(
    answers: Sequence[MoralAnswerRecord], pairing: str
) -> Iterable[tuple[MoralAnswerRecord, MoralAnswerRecord]]:
    """Pairs of the first answer with every other one (pairing `first`), or all pairs (`all`)."""
    return (
        combinations(answers, 2) if pairing == "all" else ((answers[0], later_answer) for later_answer in answers[1:])
    )


def find_least_consistent_pairs(context: RunContext, probe: SemanticProbe) -> list[AnswerPair]:
    """The two least similar answers to each of a model's least consistent questions, `probe.worst` of them at most.

    The answers of the judge of contradictions are left out; empty if there is no such judge.
    """
    if probe.contradiction is None:
        return []
    facts = answer_rows.load_facts(context.db, context.audit_id)
    assert facts is not None
    scores = load_records(context.db, context.audit_id, QuestionScore)
    selected_scores = [
        score
        for model in list_answering_models(context.db, context.audit_id, ["semantic"])
        if model != probe.contradiction
        for score in answer_rows.select_least_consistent(scores, facts, model, probe.worst)
    ]
    answers = {
        (answer.model, answer.question, answer.wording): answer
        for answer in answer_rows.load_answers(
            context.db, context.audit_id, {score.question for score in selected_scores}
        )
        if answer.wording
    }
    return [
        (
            answers[score.model, score.question, score.left],
            answers[score.model, score.question, score.right],
            score.left,
            score.right,
        )
        for score in selected_scores
        if score.left is not None and score.right is not None
    ]


async def judge_pairs(
    context: RunContext,
    purpose: Purpose,
    judge_name: str,
    questions: Sequence[MoralQuestion],
    pairs: Sequence[AnswerPair],
) -> None:
    """Ask the judge about pairs of answers, and store the verdicts.

    Args:
        purpose: `CONSISTENCY_PURPOSE` or `CONTRADICTION_PURPOSE`.
        questions: the questions asked about; pairs of answers to others are skipped.
    """
    judge = context.config.model(judge_name)
    texts = {question.id: asked_text(question.text, question.country, question.language) for question in questions}
    # pair[0] and pair[1] are the two answers.
    requests: list[tuple[Call, AnswerPair]] = [
        (
            build_pair_call(
                context.config, judge, purpose, texts[pair[0].question], pair[0].text or "", pair[1].text or ""
            ),
            pair,
        )
        for pair in pairs
        if pair[0].question in texts
    ]
    answers = await run_audit_calls(context, purpose.value, [call for call, _ in requests])
    is_paper = is_paper_form(context.config, purpose)
    asked = [request for request in requests if request[0].key in answers]

    def read(position: int, answer: Answer) -> PairVerdict:
        """Parse an answer to the call at a position of `asked`."""
        call, (first, _, left, right) = asked[position]
        outcome, holds, reason = parse_pair_verdict(answer, purpose, is_paper_form=is_paper, request=call.request_text)
        key = (judge_name, purpose.value, first.model, first.question, left, right)
        return PairVerdict(*key, outcome, holds, reason, answer.key)

    first_verdicts = [(call, read(position, answers[call.key])) for position, (call, _) in enumerate(asked)]
    verdicts = await repeat_audit_calls(context, purpose.value, first_verdicts, read)
    await asyncio.to_thread(save_records, context.db, context.audit_id, verdicts)
