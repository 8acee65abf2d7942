"""Experiments with an audit's judges: injected faults, pairwise comparisons in both orders, and self-judging."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from auditor.agents.blinding_checks import judge_altered_traces
from auditor.agents.call_builders import blind_trace, fence_line, select_traces_for_review
from auditor.agents.call_runner import run_calls
from auditor.agents.fault_injection import TracePool, inject_faults, pad_trace
from auditor.agents.model_call import build_judge_call
from auditor.agents.run_context import RunContext
from auditor.config import ModelSection
from auditor.domain import (
    Answer,
    Call,
    Cell,
    Conflict,
    Contest,
    HarmlessAlteration,
    Outcome,
    Purpose,
    Trace,
    derive_seed,
)
from auditor.models.review_schemas import SidePreference
from auditor.models.structured_reading import parse_structured_answer
from auditor.panel_assignment import TraceKey
from auditor.prompts import load_prompt
from auditor.storage import results
from auditor.storage.records import save_records

T = TypeVar("T")


async def run_fault_injection(context: RunContext, max_traces: int) -> None:
    """Have panels judge traces with an injected fault, and the same traces without it.

    Args:
        max_traces: maximum number of traces per fault.
    """
    traces = await _load_traces_for_review(context)
    for fault, pairs in inject_faults(TracePool(context.config, context.survey, traces), max_traces).items():
        await judge_altered_traces(
            context,
            fault,
            [
                (judge, altered)
                for _, altered in pairs
                for judge in context.panel_assignment.panel(TraceKey.from_trace(altered))
            ],
        )
        # The audit asked for verdicts on the unaltered traces already: their answers come from the ledger.
        await judge_altered_traces(
            context,
            HarmlessAlteration.NONE,
            [
                (judge, trace)
                for trace, _ in pairs
                for judge in context.panel_assignment.panel(TraceKey.from_trace(trace))
            ],
        )
    context.raise_if_stopped()


async def run_self_judging(context: RunContext, max_traces: int) -> None:
    """Have each judge that is also audited judge its own traces; these verdicts are excluded from votes.

    Args:
        max_traces: maximum number of traces per judge.
    """
    judges = {judge.name: judge for judge in context.config.judge_models}
    traces = await _load_traces_for_review(context)
    for model in context.config.models:
        if model.name in judges:
            judge_traces = _draw_items(
                context, "self", [trace for trace in traces if trace.model == model.name], max_traces
            )
            await judge_altered_traces(
                context, HarmlessAlteration.SELF, [(judges[model.name], trace) for trace in judge_traces]
            )
    context.raise_if_stopped()


async def run_padding(context: RunContext, max_traces: int) -> None:
    """Have panels judge traces with sentences without content appended; the audit has their verdicts without these.

    Args:
        max_traces: maximum number of traces, drawn at random.
    """
    traces = [trace for trace in await _load_traces_for_review(context) if trace.text]
    padded_traces = [pad_trace(trace) for trace in _draw_items(context, "padding", traces, max_traces)]
    await judge_altered_traces(
        context,
        HarmlessAlteration.PADDED,
        [
            (judge, trace)
            for trace in padded_traces
            if trace is not None
            for judge in context.panel_assignment.panel(TraceKey.from_trace(trace))
        ],
    )
    context.raise_if_stopped()


async def run_contests(context: RunContext, max_conflicts: int) -> None:
    """Have judges compare both sides of conflicts, once in each order.

    Args:
        max_conflicts: maximum number of conflicts.
    """
    conflicts = await asyncio.to_thread(results.load_voted_conflicts, context.db, context.audit_id)
    first_traces: dict[tuple[str, Cell], Trace] = {}
    for trace in await _load_traces_for_review(context):
        first_traces.setdefault((trace.model, trace.cell), trace)
    requests = []
    for conflict in _draw_items(context, "contest", conflicts, max_conflicts):
        # The first reviewed trace of the left and of the right model; None for a model without one.
        side_traces = [first_traces.get((name, conflict.cell)) for name in (conflict.left, conflict.right)]
        if side_traces[0] is None or side_traces[1] is None:
            continue
        texts = [
            blind_trace(context.config, context.survey, side_trace)
            for side_trace in side_traces
            if side_trace is not None
        ]
        texts_and_scores = [
            (text, side_trace.score)
            for text, side_trace in zip(texts, side_traces, strict=True)
            if side_trace is not None
        ]
        for judge in context.config.shared_judges(conflict.left, conflict.right):
            for swapped in (False, True):
                texts_in_order = texts_and_scores[::-1] if swapped else texts_and_scores
                requests.append(
                    (judge, conflict, swapped, _build_contest_call(context, judge, conflict, texts_in_order))
                )
    answers = await run_calls(context, "review", [call for *_, call in requests])
    contests = [
        _parse_contest(answers[call.key], judge.name, conflict, swapped, call.request_text)
        for judge, conflict, swapped, call in requests
        if call.key in answers
    ]
    await asyncio.to_thread(save_records, context.db, context.audit_id, contests)
    context.raise_if_stopped()


def _build_contest_call(
    context: RunContext, judge: ModelSection, conflict: Conflict, scored_texts: Sequence[tuple[str, float | None]]
) -> Call:
    """Build the call that asks a judge to compare two blinded traces, with their scores, in the order given."""
    config, survey = context.config, context.survey
    (first_text, score_first), (second_text, score_second) = scored_texts
    low, high = survey.question_about(conflict.cell.topic).scale
    messages = load_prompt("review.contest").render(
        preamble=judge.system,
        first=first_text,
        second=second_text,
        score_first=f"{score_first:+.2f}",
        score_second=f"{score_second:+.2f}",
        fence=fence_line(f"{first_text}\n{second_text}", config.seed, "contest", judge.model),
        never=low,  # labels of the scale's ends, -1 and +1
        always=high,
    )
    return build_judge_call(
        config,
        judge,
        Purpose.CONTEST,
        messages,
        about=conflict.cell,
        schema=SidePreference.__name__,
        max_words=config.probes.review.max_words,
    )


def _parse_contest(answer: Answer, judge: str, conflict: Conflict, swapped: bool, request: str = "") -> Contest:
    """Parse a judge's preference; without one if the call failed or the answer is invalid.

    Args:
        swapped: whether the trace of `conflict.right` was shown first.
    """
    unanswered = Contest(judge, conflict.cell, conflict.left, conflict.right, swapped, answer.outcome, key=answer.key)
    if answer.outcome is not Outcome.OK or answer.text is None:
        return unanswered
    preference = parse_structured_answer(SidePreference, answer.text, request)
    if isinstance(preference, str):
        return replace(unanswered, outcome=Outcome.UNPARSED)
    return replace(unanswered, prefers_first=preference.better == "FIRST")


async def _load_traces_for_review(context: RunContext) -> list[Trace]:
    """Load the audit's traces that are selected for review."""
    traces = await asyncio.to_thread(results.load_traces, context.db, context.audit_id)
    return select_traces_for_review(context.config, traces)


def _draw_items(context: RunContext, purpose: str, items: Sequence[T], size: int) -> list[T]:
    """Draw at most `size` items at random; the same ones in every run with the same seed and `purpose`."""
    shuffled = list(items)
    random.Random(derive_seed(context.config.seed, "sample", purpose)).shuffle(shuffled)
    return shuffled[:size]
