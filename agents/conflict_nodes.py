"""Nodes of the audit's graph that find conflicts and settle them by the judges' votes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from langgraph.runtime import Runtime

from auditor.agents.audit_state import AuditState
from auditor.agents.call_builders import select_traces_for_review
from auditor.agents.cell_scoring import compute_cell_score
from auditor.agents.conflict_resolution import (
    add_answers,
    commonest_answer_filter,
    effective_threshold,
    find_answer_conflicts,
    find_cell_conflicts,
    find_method_conflicts,
    mark_within_noise,
    resolve_conflicts,
)
from auditor.agents.peer_review import ask_panels_on_conflicts
from auditor.agents.run_context import RunContext
from auditor.agents.stages import enter_stage
from auditor.domain import AnswerKind, Cell, CellScore, Conflict, ConflictState, Method, Trace
from auditor.panel_assignment import TraceKey, select_reviewed
from auditor.storage import audits, results
from auditor.storage.probe_results import apply_vote_weights
from auditor.storage.records import save_records

CONFLICTS_PER_BATCH = 500
CONFLICTS_PER_COUNT = 50
"""Conflicts whose votes are counted together: the rulings on their cells are in memory at once."""


async def detect(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Find and store the conflicts between models, and between methods of one model."""
    context = runtime.context
    await enter_stage(context, "detect")
    conflicts = await asyncio.to_thread(detect_conflicts, context)
    return {"conflicts": len(conflicts)}


def detect_conflicts(context: RunContext) -> list[Conflict]:
    """Find conflicts in direct scores or task answers and, if configured, between methods; store and return them."""
    scores = results.load_scores(context.db, context.audit_id)
    task = context.survey.task
    if task is not None and task.kind is not AnswerKind.SCORE:
        answer_conflicts = find_answer_conflicts(scores, [model.name for model in context.config.models], context.cells)
        results.replace_conflicts(context.db, context.audit_id, answer_conflicts)
        return answer_conflicts
    conflicts, threshold = _find_score_conflicts(context, context.cells, scores)
    if context.config.conflicts.methods:
        conflicts += find_method_conflicts(scores, threshold)
    results.replace_conflicts(context.db, context.audit_id, conflicts)
    return conflicts


def _find_score_conflicts(
    context: RunContext, cells: Sequence[Cell], scores: Sequence[CellScore]
) -> tuple[list[Conflict], float]:
    """Find the conflicts between the direct scores of models on some cells, all open; also returns the threshold."""
    # One row per cell and one column per model; nan for a missing score.
    score_table = np.full((len(cells), len(context.config.models)), np.nan)
    row_by_cell = {cell: index for index, cell in enumerate(cells)}
    column_by_model = {model.name: index for index, model in enumerate(context.config.models)}
    for score in scores:
        if score.score is not None and score.method == Method.DIRECT:
            score_table[row_by_cell[score.cell], column_by_model[score.model]] = score.score
    threshold = effective_threshold(context.config.conflicts.threshold, score_table)
    conflicts = [
        conflict
        for cell, cell_scores in zip(cells, score_table, strict=True)
        for conflict in find_cell_conflicts(cell, list(column_by_model), cell_scores, threshold)
    ]
    conflicts = mark_within_noise(conflicts, [score for score in scores if score.method == Method.DIRECT])
    return (conflicts if context.survey.task is None else add_answers(conflicts, scores)), threshold


def can_settle_cells(context: RunContext) -> bool:
    """Whether the conflicts on a cell, and the votes on them, depend on its own answers and verdicts only."""
    config, task = context.config, context.survey.task
    has_local_conflicts = (
        len(config.models) > 1
        and config.conflicts.threshold != "auto"
        and not config.direct.is_open_ended
        and (task is None or task.kind is AnswerKind.SCORE)
    )
    panel = config.panel
    has_local_votes = panel.vote != "dawid_skene" and panel.weights_from is None and panel.judges_per_trace is None
    return has_local_conflicts and has_local_votes and not panel.adaptive


def settle_cells(context: RunContext, cells: Sequence[Cell]) -> None:
    """Find and settle the conflicts on cells whose answers and reviews are complete, and store them.

    They can be reviewed while other cells are being asked about. `detect` and `resolve` store the same again, and
    delete those of an earlier run that are none any more.
    """
    traces_by_model_cell: dict[tuple[str, Cell], list[Trace]] = {}
    for trace in results.load_traces(context.db, context.audit_id, cells):
        traces_by_model_cell.setdefault((trace.model, trace.cell), []).append(trace)
    scores = [
        compute_cell_score(model, cell, traces, len(traces), None, "")
        for (model, cell), traces in traces_by_model_cell.items()
    ]
    conflicts, _ = _find_score_conflicts(context, cells, scores)
    rulings = results.load_rulings(context.db, context.audit_id, cells)
    save_records(context.db, context.audit_id, resolve_conflicts(context.config, conflicts, rulings))


async def resolve(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Settle conflicts by vote of the judges' verdicts on the two sides, and count those that stay open."""
    context = runtime.context
    await enter_stage(context, "resolve")
    weighted_config = await asyncio.to_thread(apply_vote_weights, context.db, context.audit_id, context.config)
    context = replace(context, config=weighted_config)
    if weighted_config.panel.adaptive:
        await _complete_adaptive_panels(context)
    conflicts = await asyncio.to_thread(resolve_by_vote, context)
    return {"open": sum(conflict.state is ConflictState.OPEN for conflict in conflicts)}


async def _complete_adaptive_panels(context: RunContext) -> None:
    """Ask the remaining judges whose verdicts a conflict needs, a batch of conflicts at a time."""
    all_conflicts = await asyncio.to_thread(results.load_voted_conflicts, context.db, context.audit_id)
    counts_in_conflicts = await asyncio.to_thread(_verdict_filter, context)
    for start in range(0, len(all_conflicts), CONFLICTS_PER_BATCH):
        conflicts = all_conflicts[start : start + CONFLICTS_PER_BATCH]
        cells = {conflict.cell for conflict in conflicts}
        traces = await asyncio.to_thread(results.load_traces, context.db, context.audit_id, cells)
        counted_traces = [
            trace
            for trace in select_traces_for_review(context.config, traces)
            if counts_in_conflicts(TraceKey.from_trace(trace))
        ]
        await ask_panels_on_conflicts(context, conflicts, counted_traces)
        context.raise_if_stopped()


def resolve_by_vote(context: RunContext) -> list[Conflict]:
    """Count the votes on the conflicts that have any; store and return these with the other conflicts of scores.

    The rulings on the cells of some conflicts are in memory at a time; all of them for `dawid_skene`, which estimates
    the judges' error rates from them.
    """
    counts_in_conflicts = _verdict_filter(context)
    model_conflicts, assigned_judges = results.load_voted_conflicts(context.db, context.audit_id), None
    if context.config.panel.judges_per_trace is not None:
        scored_keys = (TraceKey(*key) for key in results.load_scored_trace_keys(context.db, context.audit_id))
        assigned_judges = context.panel_assignment.judges_by_cell(
            filter(counts_in_conflicts, select_reviewed(context.config, scored_keys))
        )
    conflicts: list[Conflict] = []
    needs_all = context.config.panel.vote == "dawid_skene"
    batch_size = max(1, len(model_conflicts)) if needs_all else CONFLICTS_PER_COUNT
    for start in range(0, len(model_conflicts), batch_size):
        batch = model_conflicts[start : start + batch_size]
        cells = None if needs_all else {conflict.cell for conflict in batch}
        rulings = [
            ruling
            for ruling in results.load_rulings(context.db, context.audit_id, cells)
            if counts_in_conflicts((ruling.model, ruling.cell, ruling.sample))
        ]
        conflicts += resolve_conflicts(context.config, batch, rulings, assigned_judges)
    conflicts += results.load_unvoted_conflicts(context.db, context.audit_id)
    results.replace_conflicts(context.db, context.audit_id, conflicts)
    return conflicts


def _verdict_filter(context: RunContext) -> Callable[[tuple[str, Cell, int]], bool]:
    """Build a predicate on samples (model, cell, number): whether verdicts on them count in conflicts.

    All count, except for tasks without scores; see `commonest_answer_filter`.
    """
    task = context.survey.task
    if task is None or task.kind is AnswerKind.SCORE:
        return lambda key: True
    return commonest_answer_filter(
        results.load_scores(context.db, context.audit_id), audits.load_answers(context.db, context.audit_id)
    )
