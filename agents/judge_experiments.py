"""Experiments with an audit's judges: injected faults, planted instructions, comparisons, and self-judging."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from auditor.agents.blinding_checks import judge_altered_traces
from auditor.agents.call_builders import (
    blind_trace,
    build_judge_call,
    fence_line,
    question_with_options,
    select_traces_for_review,
)
from auditor.agents.call_runner import run_calls
from auditor.agents.fault_injection import TracePool, inject_faults, pad_trace, plant_instruction
from auditor.agents.refusals import find_outcome_without_structure, refuses_in_reasons
from auditor.agents.run_context import RunContext
from auditor.config import AuditConfig, ModelSection
from auditor.domain import (
    AlteredTraceVerdict,
    Answer,
    Call,
    Cell,
    Conflict,
    Contest,
    HarmlessAlteration,
    Message,
    Outcome,
    Purpose,
    Ruling,
    Trace,
    derive_seed,
)
from auditor.models.answer_schemas import SidePreference
from auditor.models.structured_reading import parse_structured_answer
from auditor.panel_assignment import TraceKey
from auditor.prompts import load_prompt
from auditor.storage import results
from auditor.storage.records import save_experiment
from auditor.text_safety import truncate_middle

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


async def run_planted_instructions(context: RunContext, max_traces: int) -> None:
    """Have panels judge traces with an instruction to give the verdict that they did not give without it.

    Args:
        max_traces: maximum number of traces, drawn at random.
    """
    traces = [trace for trace in await _load_traces_for_review(context) if trace.text]
    traces = _draw_items(context, "instruction", traces, max_traces)
    judges_and_traces = [
        (judge, trace) for trace in traces for judge in context.panel_assignment.panel(TraceKey.from_trace(trace))
    ]
    unaltered = await judge_altered_traces(context, HarmlessAlteration.NONE, judges_and_traces)
    rulings = {(verdict.judge, verdict.model, verdict.cell, verdict.sample): verdict.ruling for verdict in unaltered}
    for alteration, demand, other in (
        (HarmlessAlteration.DEMANDS_VALID, Ruling.VALID, Ruling.INVALID),
        (HarmlessAlteration.DEMANDS_INVALID, Ruling.INVALID, Ruling.VALID),
    ):
        altered = {trace: plant_instruction(trace, context.config.seed, demand) for trace in traces}
        pairs = [
            (judge, altered[trace])
            for judge, trace in judges_and_traces
            if rulings.get((judge.name, trace.model, trace.cell, trace.sample)) is other
        ]
        await judge_altered_traces(context, alteration, pairs)
    context.raise_if_stopped()


async def run_planted_preferences(context: RunContext, max_conflicts: int) -> None:
    """Have judges compare both sides of conflicts again, with an instruction to prefer the side they did not prefer.

    Args:
        max_conflicts: maximum number of conflicts.
    """
    requests = await _build_contest_requests(context, max_conflicts, orders=(False,))
    contests = await _ask_contests(context, requests)
    # A judge is told only once to prefer a trace, whatever the other side of the conflict is.
    planted: dict[tuple[str, Trace], ContestRequest] = {}
    for request in requests:
        contest = contests.get(request.call.key)
        if contest is not None and contest.prefers_first is not None:
            index = int(contest.prefers_first)  # of the side that was not preferred
            sides = list(request.sides)
            target = sides[index]
            sides[index] = plant_instruction(target, context.config.seed, None)
            call = _build_contest_call(context, request.judge, request.conflict, sides)
            planted.setdefault((request.judge.name, target), replace(request, call=call))
    answers = await run_calls(context, "review", [request.call for request in planted.values()])
    verdicts = []
    for (judge, target), request in planted.items():
        if request.call.key in answers:
            answer = answers[request.call.key]
            contest = _parse_contest(answer, judge, request.conflict, False, request.call.request_text)
            ruling = None
            if contest.prefers_first is not None:
                is_preferred = contest.prefers_first == (target is request.sides[0])
                ruling = Ruling.VALID if is_preferred else Ruling.INVALID
            verdicts.append(
                AlteredTraceVerdict(
                    HarmlessAlteration.DEMANDS_PREFERENCE,
                    judge,
                    target.model,
                    target.cell,
                    target.sample,
                    contest.outcome,
                    ruling,
                    answer.key,
                )
            )
    await asyncio.to_thread(save_experiment, context.db, context.audit_id, verdicts)
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
    await _ask_contests(context, await _build_contest_requests(context, max_conflicts, orders=(False, True)))
    context.raise_if_stopped()


@dataclass(frozen=True, slots=True)
class ContestRequest:
    """A call that asks a judge to compare the sides of a conflict, in the order shown; `swapped` as in `Contest`."""

    judge: ModelSection
    conflict: Conflict
    swapped: bool
    sides: Sequence[Trace]
    call: Call


async def _build_contest_requests(
    context: RunContext, max_conflicts: int, *, orders: Sequence[bool]
) -> list[ContestRequest]:
    """Build the calls that compare both sides of conflicts, drawn at random, in these orders: swapped, or not."""
    conflicts = await asyncio.to_thread(results.load_voted_conflicts, context.db, context.audit_id)
    first_traces: dict[tuple[str, Cell], Trace] = {}
    for trace in await _load_traces_for_review(context):
        first_traces.setdefault((trace.model, trace.cell), trace)
    requests = []
    for conflict in _draw_items(context, "contest", conflicts, max_conflicts):
        # The first reviewed trace of the left and of the right model; None for a model without one.
        left, right = (first_traces.get((name, conflict.cell)) for name in (conflict.left, conflict.right))
        if left is None or right is None:
            continue
        for judge in context.config.shared_judges(conflict.left, conflict.right):
            for swapped in orders:
                sides = (right, left) if swapped else (left, right)
                call = _build_contest_call(context, judge, conflict, sides)
                requests.append(ContestRequest(judge, conflict, swapped, sides, call))
    return requests


async def _ask_contests(context: RunContext, requests: Sequence[ContestRequest]) -> dict[str, Contest]:
    """Ask judges to compare traces, and store what they prefer; by the key of the call."""
    answers = await run_calls(context, "review", [request.call for request in requests])
    contests = {
        request.call.key: _parse_contest(
            answers[request.call.key], request.judge.name, request.conflict, request.swapped, request.call.request_text
        )
        for request in requests
        if request.call.key in answers
    }
    await asyncio.to_thread(save_experiment, context.db, context.audit_id, list(contests.values()))
    return contests


def _build_contest_call(context: RunContext, judge: ModelSection, conflict: Conflict, sides: Sequence[Trace]) -> Call:
    """Build the call that asks a judge to compare two traces, blinded, with their scores or answers, in this order."""
    config, survey = context.config, context.survey
    first_text, second_text = (blind_trace(config, survey, side) for side in sides)
    fence = fence_line(f"{first_text}\n{second_text}", config.seed, "contest", judge.model)
    if survey.task is not None:
        answer_first, answer_second = (
            truncate_middle(side.answer or "", config.probes.review.max_trace_chars) for side in sides
        )
        messages = load_prompt("review.contest.task").render(
            preamble=judge.system,
            question=question_with_options(survey.task.item_for(conflict.cell)),
            first=first_text,
            second=second_text,
            answer_first=answer_first,
            answer_second=answer_second,
            fence=fence,
        )
        return _build_preference_call(config, judge, conflict, messages)
    score_first, score_second = (side.score for side in sides)
    low, high = survey.question_about(conflict.cell.topic).scale
    messages = load_prompt("review.contest").render(
        preamble=judge.system,
        first=first_text,
        second=second_text,
        score_first=f"{score_first:+.2f}",
        score_second=f"{score_second:+.2f}",
        fence=fence,
        never=low,  # labels of the scale's ends, -1 and +1
        always=high,
    )
    return _build_preference_call(config, judge, conflict, messages)


def _build_preference_call(
    config: AuditConfig, judge: ModelSection, conflict: Conflict, messages: tuple[Message, ...]
) -> Call:
    """Build the call that asks a judge which of two traces is better."""
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
        return replace(unanswered, outcome=find_outcome_without_structure(answer.text))
    if refuses_in_reasons(preference):
        return replace(unanswered, outcome=Outcome.REFUSED)
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
