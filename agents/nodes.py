"""Nodes of the audit's graph, but those of probes: the survey, scores, and conflicts.

Each can be repeated on the same storage, and none raises for a failed call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from langgraph.runtime import Runtime
from langgraph.types import Send, interrupt

from auditor.agents.call_builders import select_traces_for_review
from auditor.agents.cell_scoring import compute_cell_score
from auditor.agents.conflict_resolution import resolve_conflicts
from auditor.agents.derived_results import (
    detect_conflicts,
    find_score_conflicts,
    resolve_by_vote,
    save_scores,
    verdict_filter,
)
from auditor.agents.peer_review import ask_panels_on_conflicts
from auditor.agents.run_context import RunContext
from auditor.agents.stages import AuditState, enter_stage, split_into_batches
from auditor.domain import AnswerKind, Cell, Trace
from auditor.panel_assignment import TraceKey
from auditor.storage import audits, results
from auditor.storage.probe_results import apply_vote_weights
from auditor.storage.records import save_records
from auditor.storage.review_queue import ConflictQueue

LOGPROB_CELLS_PER_BATCH = 32
"""Cells that are measured by log-probabilities together; bounds the memory."""


async def plan(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Count the cells."""
    context = runtime.context
    await enter_stage(context, "plan")
    return {"config_hash": context.config.hash, "cells": len(context.cells)}


def route_branches(state: AuditState, runtime: Runtime[RunContext]) -> list[Send | str]:
    """Start the configured branches, which run beside each other; go to `measure` without any."""
    probes = runtime.context.config.probes
    branches: list[Send | str] = ["cells"] if probes.direct else []
    if probes.logprob:
        branches += [
            Send("score_logprobs", {**batch, "measures": state["measures"]})
            for batch in split_into_batches(state["cells"], LOGPROB_CELLS_PER_BATCH)
        ]
    branches += probes.with_stage
    return branches or ["measure"]


async def measure(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Compute and store each cell's scores and self-consistency."""
    context = runtime.context
    await enter_stage(context, "measure")
    await asyncio.to_thread(save_scores, context)
    return {}


def route_human_review(state: AuditState) -> Literal["await_human", "report"]:
    """Wait for a person while any conflict is open, otherwise finish."""
    return "await_human" if state["open"] else "report"


async def await_human(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Interrupt the graph for a person; it resumes with the number of conflicts that are still open."""
    await enter_stage(runtime.context, audits.AWAITING_HUMAN)
    return {"open": int(interrupt({"open": state["open"]}))}


async def report(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Mark the audit as finished; its report is computed from storage alone."""
    await enter_stage(runtime.context, audits.REPORTING)
    await asyncio.to_thread(audits.set_stage, runtime.context.db, runtime.context.audit_id, audits.FINISHED)
    return {}


CONFLICTS_PER_BATCH = 500


async def detect(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Find and store the conflicts between models, and between methods of one model."""
    context = runtime.context
    await enter_stage(context, "detect")
    conflicts = await asyncio.to_thread(detect_conflicts, context)
    return {"conflicts": len(conflicts)}


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
    conflicts, _ = find_score_conflicts(context, cells, scores)
    rulings = results.load_rulings(context.db, context.audit_id, cells)
    save_records(context.db, context.audit_id, resolve_conflicts(context.config, conflicts, rulings))


async def resolve(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Settle conflicts by vote of the judges' verdicts on the two sides, and count those that people have to decide."""
    context = runtime.context
    await enter_stage(context, "resolve")
    weighted_config = await asyncio.to_thread(apply_vote_weights, context.db, context.audit_id, context.config)
    context = replace(context, config=weighted_config)
    if weighted_config.panel.adaptive:
        await _complete_adaptive_panels(context)
    await asyncio.to_thread(resolve_by_vote, context)
    return {"open": await asyncio.to_thread(ConflictQueue(context.db, context.audit_id, rater="").count_open)}


async def _complete_adaptive_panels(context: RunContext) -> None:
    """Ask the remaining judges whose verdicts a conflict needs, a batch of conflicts at a time."""
    all_conflicts = await asyncio.to_thread(results.load_voted_conflicts, context.db, context.audit_id)
    counts_in_conflicts = await asyncio.to_thread(verdict_filter, context)
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
