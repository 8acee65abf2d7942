"""The stages of an audit. Each is idempotent against storage, and none raises for a call that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import groupby
from typing import Literal

import numpy as np
from langgraph.runtime import Runtime
from langgraph.types import Send, interrupt

from auditor.agents.answer_conflicts import add_answers, commonest_answer_filter, find_answer_conflicts
from auditor.agents.audit_state import AuditState, CellBatch
from auditor.agents.blinding_checks import ask_for_guesses, restate_traces
from auditor.agents.call_builders import select_traces_for_review
from auditor.agents.cell_scoring import compute_cell_score, compute_logprob_scores, evidence_hash, self_consistencies
from auditor.agents.conflict_resolution import (
    effective_threshold,
    find_cell_conflicts,
    find_method_conflicts,
    mark_within_noise,
    resolve_conflicts,
)
from auditor.agents.elicitation import elicit_traces, find_surplus_samples
from auditor.agents.logprob_scoring import find_measures
from auditor.agents.peer_review import ask_panels_on_conflicts, review_traces
from auditor.agents.run_context import RunContext
from auditor.agents.stages import enter_stage, record_stage
from auditor.domain import AnswerKind, Cell, CellScore, Conflict, ConflictState, Method, Outcome, Trace
from auditor.metrics.stopping import is_narrow, next_interim_look
from auditor.panel_assignment import TraceKey, select_reviewed
from auditor.storage import audits, results, tasks
from auditor.storage.judge_consistency import apply_consistency_weights
from auditor.surveys.languages import native_languages

CELLS_PER_BATCH = 32
"""Cells in one branch of the fan-out: bounds what a branch holds in memory."""
CONFLICTS_PER_BATCH = 500


async def plan(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Count the cells, and find how log-probabilities can be measured; the calls are planned batch by batch."""
    context = runtime.context
    await enter_stage(context, "plan")
    measures = await find_measures(context)
    context.raise_if_stopped()
    return {"config_hash": context.config.hash, "cells": len(context.cells), "measures": measures}


def route_elicit(state: AuditState, runtime: Runtime[RunContext]) -> list[Send] | Literal["measure"]:
    """One branch for each batch of cells; straight on when no probe asks about cells."""
    probes, batches = runtime.context.config.probes, _cell_batches(state["cells"])
    likelihoods = [
        Send("score_logprobs", {**batch, "measures": state["measures"]}) for batch in batches if probes.logprob
    ]
    return [*_next_elicitation_batches(runtime.context, 0), *likelihoods] or "measure"


def route_precision_check(state: AuditState, runtime: Runtime[RunContext]) -> list[Send] | Literal["measure"]:
    """On with more cells while an interval is too wide."""
    return _next_elicitation_batches(runtime.context, state["reached"]) or "measure"


def _next_elicitation_batches(context: RunContext, n_reached: int) -> list[Send]:
    """One branch for each batch of the cells that are asked before the next look; all, where no width is aimed at."""
    if not context.config.probes.direct:
        return []
    cells = len(context.cells_in_elicitation_order)
    end = cells if context.config.direct.target_width is None else next_interim_look(n_reached, cells)
    return [Send("elicit", batch) for batch in _cell_batches(end, n_reached)]


async def check_precision(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Count the cells that were asked; all are, once every model's r is known as closely as is wanted."""
    context = runtime.context
    context.raise_if_stopped()
    cells, width = len(context.cells_in_elicitation_order), context.config.direct.target_width
    if not context.config.direct.is_open_ended or not context.config.probes.direct:
        return {"reached": cells}
    reached = cells if width is None else next_interim_look(state.get("reached", 0), cells)
    ended = reached == cells or (
        width is not None and await asyncio.to_thread(_intervals_are_narrow, context, reached, width)
    )
    if ended:
        await asyncio.to_thread(_drop_surplus_samples, context, reached)
    return {"reached": cells if ended else reached}


def _drop_surplus_samples(context: RunContext, n_reached: int) -> None:
    stored = results.load_sample_scores(context.db, context.audit_id)
    found = find_surplus_samples(context.config.direct, set(context.cells_in_elicitation_order[:n_reached]), stored)
    results.delete_traces(context.db, context.audit_id, found)


def _intervals_are_narrow(context: RunContext, n_reached: int, width: float) -> bool:
    row = {cell: i for i, cell in enumerate(context.cells_in_elicitation_order[:n_reached])}
    scores = {m.name: np.full(len(row), np.nan) for m in context.config.models}
    for model, cell, mean in results.load_mean_scores(context.db, context.audit_id):
        if cell in row:
            scores[model][row[cell]] = mean
    people = context.survey.scores
    return is_narrow(list(scores.values()), [people[cell] for cell in row], width)


async def elicit(state: CellBatch, runtime: Runtime[RunContext]) -> AuditState:
    """Ask every model about every cell of the batch, k samples each in every language."""
    context = runtime.context
    if state["start"] == 0:
        await record_stage(context, "elicit")
    await elicit_traces(context, context.cells_in_elicitation_order[state["start"] : state["stop"]])
    return {}


async def measure(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Score each cell, and measure how consistent its samples are."""
    context = runtime.context
    await enter_stage(context, "measure")
    await asyncio.to_thread(_save_direct_scores, context)
    await asyncio.to_thread(_save_logprob_scores, context)
    return {}


def _save_logprob_scores(context: RunContext) -> None:
    contrasts = results.load_sentence_pairs(context.db, context.audit_id)
    results.save_scores(context.db, context.audit_id, compute_logprob_scores(contrasts))


def _save_direct_scores(context: RunContext) -> None:
    stored = results.load_scores(context.db, context.audit_id)
    old = {(s.model, s.cell): s for s in stored if s.method == Method.DIRECT}
    scores: list[CellScore] = []
    for start in range(0, len(context.cells), CELLS_PER_BATCH):
        cells = context.cells[start : start + CELLS_PER_BATCH]
        groups = _group_by_model_and_cell(results.load_traces(context.db, context.audit_id, cells))
        texts = {who: _texts_by_language(traces) for who, traces in groups.items()}
        evidence = {
            who: evidence_hash(context.config.embedding.model, [t for asked in by.values() for t in asked])
            for who, by in texts.items()
        }
        fresh = {w: t for w, t in texts.items() if w not in old or old[w].evidence != evidence[w]}
        consistency = self_consistencies(fresh, context.load_encoder)
        for who, traces in groups.items():
            value = consistency[who] if who in fresh else old[who].self_consistency
            planned = max(context.config.guaranteed_samples_per_cell(native_languages(who[1].country)), len(traces))
            scores.append(compute_cell_score(*who, traces, planned, value, evidence[who]))
    results.save_scores(context.db, context.audit_id, scores)


def _texts_by_language(traces: Iterable[Trace]) -> dict[str, list[str]]:
    """By language: a model is consistent with itself among answers to the same words."""
    found: dict[str, list[str]] = {}
    for trace in traces:
        if trace.outcome is Outcome.OK and trace.text:
            found.setdefault(trace.language, []).append(trace.text)
    return found


def route_review(state: AuditState, runtime: Runtime[RunContext]) -> list[Send] | Literal["detect"]:
    """One branch for each batch of cells; straight on when there is nothing to judge, or nobody."""
    if not runtime.context.config.probes.direct or not runtime.context.config.judge_models:
        return "detect"
    return [Send("review", batch) for batch in _cell_batches(state["cells"])]


async def review(state: CellBatch, runtime: Runtime[RunContext]) -> AuditState:
    """Put each trace of the batch before its panel: every judge but its author."""
    context = runtime.context
    if state["start"] == 0:
        await record_stage(context, "review")
    cells = context.cells[state["start"] : state["stop"]]
    traces = await asyncio.to_thread(results.load_traces, context.db, context.audit_id, cells)
    judged, probe = select_traces_for_review(context.config, traces), context.config.probes.review
    await review_traces(context, judged)
    if probe.guess:
        await ask_for_guesses(context, judged)
    if probe.rewrite == "neutral":
        await restate_traces(context, judged)
    return {}


async def detect(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Find the pairs of models that conflict on a cell."""
    context = runtime.context
    await enter_stage(context, "detect")
    conflicts = await asyncio.to_thread(_detect_conflicts, context)
    return {"conflicts": len(conflicts)}


def _detect_conflicts(context: RunContext) -> list[Conflict]:
    scores = results.load_scores(context.db, context.audit_id)
    task = context.survey.task
    if task is not None and task.kind is not AnswerKind.SCORE:
        different = find_answer_conflicts(scores, [m.name for m in context.config.models], context.cells)
        results.replace_conflicts(context.db, context.audit_id, different)
        return different
    table = np.full((len(context.cells), len(context.config.models)), np.nan)
    row = {cell: i for i, cell in enumerate(context.cells)}
    column = {m.name: j for j, m in enumerate(context.config.models)}
    for score in scores:
        if score.score is not None and score.method == Method.DIRECT:
            table[row[score.cell], column[score.model]] = score.score
    threshold = effective_threshold(context.config.conflicts.threshold, table)
    pairs = zip(context.cells, table, strict=True)
    found = [c for cell, values in pairs for c in find_cell_conflicts(cell, list(column), values, threshold)]
    found = mark_within_noise(found, [s for s in scores if s.method == Method.DIRECT])
    found = add_answers(found, scores) if task is not None else found
    if context.config.conflicts.methods:
        found += find_method_conflicts(scores, threshold)
    results.replace_conflicts(context.db, context.audit_id, found)
    return found


async def resolve(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Let the judges' verdicts on the two sides of each conflict vote."""
    context = runtime.context
    await enter_stage(context, "resolve")
    chosen = await asyncio.to_thread(apply_consistency_weights, context.db, context.audit_id, context.config)
    context = replace(context, config=chosen)
    if chosen.panel.adaptive:
        await _complete_adaptive_panels(context)
    conflicts = await asyncio.to_thread(_resolve_by_vote, context)
    return {"open": sum(c.state is ConflictState.OPEN for c in conflicts)}


async def _complete_adaptive_panels(context: RunContext) -> None:
    found = await asyncio.to_thread(results.load_model_conflicts, context.db, context.audit_id)
    speaks = await asyncio.to_thread(_verdict_filter, context)
    for start in range(0, len(found), CONFLICTS_PER_BATCH):
        conflicts = found[start : start + CONFLICTS_PER_BATCH]
        cells = {c.cell for c in conflicts}
        traces = await asyncio.to_thread(results.load_traces, context.db, context.audit_id, cells)
        heard = [t for t in select_traces_for_review(context.config, traces) if speaks(TraceKey.from_trace(t))]
        await ask_panels_on_conflicts(context, conflicts, heard)
        context.raise_if_stopped()


def _resolve_by_vote(context: RunContext) -> list[Conflict]:
    verdicts = results.load_verdicts(context.db, context.audit_id)
    speaks = _verdict_filter(context)
    verdicts = [v for v in verdicts if speaks((v.model, v.cell, v.sample))]
    scored, seated = results.load_model_conflicts(context.db, context.audit_id), None
    if context.config.panel.judges_per_trace is not None:
        read = (TraceKey(*key) for key in results.load_scored_trace_keys(context.db, context.audit_id))
        seated = context.panel_assignment.judges_by_cell(filter(speaks, select_reviewed(context.config, read)))
    conflicts = resolve_conflicts(context.config, scored, verdicts, seated)
    conflicts += results.load_method_conflicts(context.db, context.audit_id)
    results.replace_conflicts(context.db, context.audit_id, conflicts)
    return conflicts


def _verdict_filter(context: RunContext) -> Callable[[tuple[str, Cell, int]], bool]:
    """Whose verdicts count in conflicts: all samples', but of a task whose answers are no scores see `speaking`."""
    task = context.survey.task
    if task is None or task.kind is AnswerKind.SCORE:
        return lambda key: True
    return commonest_answer_filter(
        results.load_scores(context.db, context.audit_id), tasks.load_answers(context.db, context.audit_id)
    )


def route_human_review(state: AuditState) -> Literal["await_human", "report"]:
    """To a person while anything is open."""
    return "await_human" if state["open"] else "report"


async def await_human(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Wait for a person: the graph stops here, and goes on with how many conflicts people have left open."""
    await enter_stage(runtime.context, audits.AWAITING_HUMAN)
    return {"open": int(interrupt({"open": state["open"]}))}


async def report(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Close the audit: from here on its report can be made from storage alone."""
    await enter_stage(runtime.context, "report")
    await asyncio.to_thread(audits.set_stage, runtime.context.db, runtime.context.audit_id, audits.FINISHED)
    return {}


def _cell_batches(cells: int, start: int = 0) -> list[CellBatch]:
    return [CellBatch(start=i, stop=min(i + CELLS_PER_BATCH, cells)) for i in range(start, cells, CELLS_PER_BATCH)]


def _group_by_model_and_cell(traces: Iterable[Trace]) -> dict[tuple[str, Cell], list[Trace]]:
    def who(trace: Trace) -> tuple[str, Cell]:
        return trace.model, trace.cell

    return {key: list(group) for key, group in groupby(sorted(traces, key=who), key=who)}
