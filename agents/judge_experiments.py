"""Experiments on an audit's judges: planted faults, two traces side by side in both orders, a judge's own traces."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from auditor.agents.blinding_checks import rule_on
from auditor.agents.call_builders import blinded, fence, for_review, judge_params
from auditor.agents.call_runner import ask
from auditor.agents.fault_injection import Field, plant
from auditor.agents.run_context import Context
from auditor.config import ModelSection
from auditor.domain import Answer, Call, Cell, Conflict, Contest, Outcome, Purpose, Trace, derive_seed
from auditor.models.structured import SidePreference, read
from auditor.panel_assignment import Place
from auditor.prompts import load_prompt
from auditor.storage import judge_tests, results

NONE, SELF = "none", "self"
T = TypeVar("T")


async def planted(context: Context, sample: int) -> None:
    """Put traces with a known fault, and the same ones without, before their panels.

    Args:
        sample: traces for each fault at most.
    """
    traces = await _judged(context)
    for fault, pairs in plant(Field(context.config, context.survey, traces), sample).items():
        await rule_on(
            context, fault, [(j, altered) for _, altered in pairs for j in context.seating.panel(Place.of(altered))]
        )
        # What is unaltered was asked before as a verdict: the ledger knows it.
        await rule_on(context, NONE, [(j, trace) for trace, _ in pairs for j in context.seating.panel(Place.of(trace))])
    context.raise_if_stopped()


async def own_traces(context: Context, sample: int) -> None:
    """Have each judge that is audited rule on traces of its own; such rulings are never part of a vote.

    Args:
        sample: traces of each judge at most.
    """
    judges = {j.name: j for j in context.config.judge_models}
    traces = await _judged(context)
    for model in context.config.models:
        if model.name in judges:
            mine = _sample(context, "self", [t for t in traces if t.model == model.name], sample)
            await rule_on(context, SELF, [(judges[model.name], trace) for trace in mine])
    context.raise_if_stopped()


async def contests(context: Context, sample: int) -> None:
    """Show both sides of conflicts to their panels, once in either order.

    Args:
        sample: conflicts at most.
    """
    found = await asyncio.to_thread(results.scored_conflicts, context.db, context.audit_id)
    first: dict[tuple[str, Cell], Trace] = {}
    for trace in await _judged(context):
        first.setdefault((trace.model, trace.cell), trace)
    asked = []
    for conflict in _sample(context, "contest", found, sample):
        sides = [first.get((name, conflict.cell)) for name in (conflict.left, conflict.right)]
        if sides[0] is None or sides[1] is None:
            continue
        texts = [blinded(context.config, context.survey, side) for side in sides if side is not None]
        scored = [(text, side.score) for text, side in zip(texts, sides, strict=True) if side is not None]
        for judge in context.config.panel_of(conflict.left, conflict.right):
            for swapped in (False, True):
                shown = scored[::-1] if swapped else scored
                asked.append((judge, conflict, swapped, _contest_call(context, judge, conflict, shown)))
    answers = await ask(context, "review", [call for *_, call in asked])
    read_ = [_read_contest(answers[c.key], j.name, x, swapped) for j, x, swapped, c in asked if c.key in answers]
    await asyncio.to_thread(judge_tests.save_contests, context.db, context.audit_id, read_)
    context.raise_if_stopped()


def _contest_call(
    context: Context, judge: ModelSection, conflict: Conflict, shown: Sequence[tuple[str, float | None]]
) -> Call:
    config, survey = context.config, context.survey
    (first, score_first), (second, score_second) = shown
    messages = load_prompt("review.contest").render(
        preamble=judge.system,
        first=first,
        second=second,
        score_first=f"{score_first:+.2f}",
        score_second=f"{score_second:+.2f}",
        fence=fence(f"{first}\n{second}", config.seed, "contest", judge.model),
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


def _read_contest(answer: Answer, judge: str, conflict: Conflict, swapped: bool) -> Contest:
    empty = Contest(judge, conflict.cell, conflict.left, conflict.right, swapped, answer.outcome, key=answer.key)
    if answer.outcome is not Outcome.OK or answer.text is None:
        return empty
    said = read(SidePreference, answer.text)
    if isinstance(said, str):
        return replace(empty, outcome=Outcome.UNPARSED)
    return replace(empty, prefers_first=said.better == "FIRST")


async def _judged(context: Context) -> list[Trace]:
    traces = await asyncio.to_thread(results.traces, context.db, context.audit_id)
    return for_review(context.config, traces)


def _sample(context: Context, what: str, items: Sequence[T], n: int) -> list[T]:
    order = list(items)
    random.Random(derive_seed(context.config.seed, "sample", what)).shuffle(order)
    return order[:n]
