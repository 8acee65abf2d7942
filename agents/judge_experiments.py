"""Experiments on an audit's judges: planted faults, two traces side by side in both orders, a judge's own traces."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from auditor.agents.blinding_checks import judge_altered_traces
from auditor.agents.call_builders import blind_trace, fence_line, judge_params, select_traces_for_review
from auditor.agents.call_runner import run_calls
from auditor.agents.fault_injection import TracePool, inject_faults
from auditor.agents.run_context import RunContext
from auditor.config import ModelSection
from auditor.domain import Answer, Call, Cell, Conflict, Contest, Outcome, Purpose, Trace, derive_seed
from auditor.models.structured import SidePreference, parse_structured_answer
from auditor.panel_assignment import TraceKey
from auditor.prompts import load_prompt
from auditor.storage import judge_tests, results

UNALTERED, SELF_JUDGED = "none", "self"
T = TypeVar("T")


async def run_fault_injection(context: RunContext, sample: int) -> None:
    """Put traces with a known fault, and the same ones without, before their panels.

    Args:
        sample: traces for each fault at most.
    """
    traces = await _load_traces_for_review(context)
    for fault, pairs in inject_faults(TracePool(context.config, context.survey, traces), sample).items():
        await judge_altered_traces(
            context,
            fault,
            [
                (j, altered)
                for _, altered in pairs
                for j in context.panel_assignment.panel(TraceKey.from_trace(altered))
            ],
        )
        # What is unaltered was asked before as a verdict: the ledger knows it.
        await judge_altered_traces(
            context,
            UNALTERED,
            [(j, trace) for trace, _ in pairs for j in context.panel_assignment.panel(TraceKey.from_trace(trace))],
        )
    context.raise_if_stopped()


async def run_self_judging(context: RunContext, sample: int) -> None:
    """Have each judge that is audited rule on traces of its own; such rulings are never part of a vote.

    Args:
        sample: traces of each judge at most.
    """
    judges = {j.name: j for j in context.config.judge_models}
    traces = await _load_traces_for_review(context)
    for model in context.config.models:
        if model.name in judges:
            mine = _draw_sample(context, "self", [t for t in traces if t.model == model.name], sample)
            await judge_altered_traces(context, SELF_JUDGED, [(judges[model.name], trace) for trace in mine])
    context.raise_if_stopped()


async def run_contests(context: RunContext, sample: int) -> None:
    """Show both sides of conflicts to their panels, once in either order.

    Args:
        sample: conflicts at most.
    """
    found = await asyncio.to_thread(results.load_model_conflicts, context.db, context.audit_id)
    first: dict[tuple[str, Cell], Trace] = {}
    for trace in await _load_traces_for_review(context):
        first.setdefault((trace.model, trace.cell), trace)
    asked = []
    for conflict in _draw_sample(context, "contest", found, sample):
        sides = [first.get((name, conflict.cell)) for name in (conflict.left, conflict.right)]
        if sides[0] is None or sides[1] is None:
            continue
        texts = [blind_trace(context.config, context.survey, side) for side in sides if side is not None]
        scored = [(text, side.score) for text, side in zip(texts, sides, strict=True) if side is not None]
        for judge in context.config.shared_judges(conflict.left, conflict.right):
            for swapped in (False, True):
                shown = scored[::-1] if swapped else scored
                asked.append((judge, conflict, swapped, _build_contest_call(context, judge, conflict, shown)))
    answers = await run_calls(context, "review", [call for *_, call in asked])
    read_ = [_parse_contest(answers[c.key], j.name, x, swapped) for j, x, swapped, c in asked if c.key in answers]
    await asyncio.to_thread(judge_tests.save_contests, context.db, context.audit_id, read_)
    context.raise_if_stopped()


def _build_contest_call(
    context: RunContext, judge: ModelSection, conflict: Conflict, scored_texts: Sequence[tuple[str, float | None]]
) -> Call:
    config, survey = context.config, context.survey
    (first, score_first), (second, score_second) = scored_texts
    messages = load_prompt("review.contest").render(
        preamble=judge.system,
        first=first,
        second=second,
        score_first=f"{score_first:+.2f}",
        score_second=f"{score_second:+.2f}",
        fence=fence_line(f"{first}\n{second}", config.seed, "contest", judge.model),
        never=survey.scale[0],
        always=survey.scale[1],
    )
    return Call(
        name=judge.name,
        model=judge.model,
        server=judge.api_base,
        messages=messages,
        purpose=Purpose.CONTEST,
        params=judge_params(config, judge, derive_seed(config.seed, "contest", *conflict.cell)),
        schema=SidePreference.__name__,
        max_words=config.probes.review.max_words,
    )


def _parse_contest(answer: Answer, judge: str, conflict: Conflict, swapped: bool) -> Contest:
    empty = Contest(judge, conflict.cell, conflict.left, conflict.right, swapped, answer.outcome, key=answer.key)
    if answer.outcome is not Outcome.OK or answer.text is None:
        return empty
    said = parse_structured_answer(SidePreference, answer.text)
    if isinstance(said, str):
        return replace(empty, outcome=Outcome.UNPARSED)
    return replace(empty, prefers_first=said.better == "FIRST")


async def _load_traces_for_review(context: RunContext) -> list[Trace]:
    traces = await asyncio.to_thread(results.load_traces, context.db, context.audit_id)
    return select_traces_for_review(context.config, traces)


def _draw_sample(context: RunContext, purpose: str, items: Sequence[T], size: int) -> list[T]:
    order = list(items)
    random.Random(derive_seed(context.config.seed, "sample", purpose)).shuffle(order)
    return order[:size]
