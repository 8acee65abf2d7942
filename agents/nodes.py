"""Nodes of the audit's graph, but those of probes and conflicts.

Each can be repeated on the same storage, and none raises for a failed call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Literal

import numpy as np
from langgraph.runtime import Runtime
from langgraph.types import Send, interrupt

from auditor.agents.audit_state import AuditState, Batch, split_into_batches
from auditor.agents.blinding_checks import ask_for_guesses, restate_traces
from auditor.agents.call_builders import select_traces_for_review
from auditor.agents.cell_scoring import compute_cell_score, compute_logprob_scores, evidence_hash, texts_by_language
from auditor.agents.elicitation import elicit_traces, find_surplus_samples
from auditor.agents.peer_review import review_traces
from auditor.agents.run_context import RunContext
from auditor.agents.stages import enter_stage, record_stage
from auditor.domain import Cell, CellScore, Method, Trace
from auditor.failpoints import failpoint
from auditor.metrics.stopping import is_narrow, next_interim_look
from auditor.storage import audits, results
from auditor.storage.records import save_records
from auditor.surveys.languages import native_languages

CELLS_PER_BATCH = 32
"""Cells in one parallel branch; bounds its memory."""


async def plan(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Count the cells."""
    context = runtime.context
    await enter_stage(context, "plan")
    return {"config_hash": context.config.hash, "cells": len(context.cells)}


def route_elicit(state: AuditState, runtime: Runtime[RunContext]) -> list[Send] | Literal["measure"]:
    """Start one branch for each batch of cells and each probe that asks about cells; go to `measure` without any."""
    probes, batches = runtime.context.config.probes, split_into_batches(state["cells"], CELLS_PER_BATCH)
    logprob_batches = [
        Send("score_logprobs", {**batch, "measures": state["measures"]}) for batch in batches if probes.logprob
    ]
    return [*_next_elicitation_batches(runtime.context, 0), *logprob_batches] or "measure"


def route_precision_check(state: AuditState, runtime: Runtime[RunContext]) -> list[Send] | Literal["measure"]:
    """Continue with more cells while a confidence interval is too wide, otherwise go to `measure`."""
    return _next_elicitation_batches(runtime.context, state["reached"]) or "measure"


def _next_elicitation_batches(context: RunContext, n_reached: int) -> list[Send]:
    """One branch per batch of cells from position `n_reached` to the next precision check, or to the last cell."""
    if not context.config.probes.direct:
        return []
    n_cells = len(context.cells_in_elicitation_order)
    end = n_cells if context.config.direct.target_width is None else next_interim_look(n_reached, n_cells)
    return [Send("elicit", batch) for batch in split_into_batches(end, CELLS_PER_BATCH, n_reached)]


async def check_precision(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Decide whether to ask about more cells: stop once Fisher's interval of every model's r is narrow enough.

    Returns:
        `reached`: the number of cells asked so far, or the number of all cells to end elicitation.
    """
    context = runtime.context
    context.raise_if_stopped()
    n_cells, target_width = len(context.cells_in_elicitation_order), context.config.direct.target_width
    if not context.config.direct.is_open_ended or not context.config.probes.direct:
        return {"reached": n_cells}
    n_reached = n_cells if target_width is None else next_interim_look(state.get("reached", 0), n_cells)
    finished = n_reached == n_cells or (
        target_width is not None and await asyncio.to_thread(_intervals_are_narrow, context, n_reached, target_width)
    )
    if finished:
        await asyncio.to_thread(_drop_surplus_samples, context, n_reached)
    return {"reached": n_cells if finished else n_reached}


def _drop_surplus_samples(context: RunContext, n_reached: int) -> None:
    """Delete stored samples that the stopping rule does not require; `n_reached` is the number of cells asked about."""
    sample_scores = results.load_sample_scores(context.db, context.audit_id)
    surplus = find_surplus_samples(
        context.config.direct, set(context.cells_in_elicitation_order[:n_reached]), sample_scores
    )
    results.delete_traces(context.db, context.audit_id, surplus)


def _intervals_are_narrow(context: RunContext, n_reached: int, width: float) -> bool:
    """Whether Fisher's 95% interval of each model's r with the survey, on the cells reached, is at most `width`."""
    row_by_cell = {cell: index for index, cell in enumerate(context.cells_in_elicitation_order[:n_reached])}
    scores = {model.name: np.full(len(row_by_cell), np.nan) for model in context.config.models}
    for model, cell, mean in results.load_mean_scores(context.db, context.audit_id):
        if cell in row_by_cell:
            scores[model][row_by_cell[cell]] = mean
    survey_scores = context.survey.scores
    # One array per model, each in the order of the cells.
    return is_narrow(list(scores.values()), [survey_scores[cell] for cell in row_by_cell], width)


async def elicit(state: Batch, runtime: Runtime[RunContext]) -> AuditState:
    """Ask every model about every cell of the batch, with k samples in every language."""
    context = runtime.context
    if state["start"] == 0:
        await record_stage(context, "elicit")
    await elicit_traces(context, context.cells_in_elicitation_order[state["start"] : state["stop"]])
    return {}


async def measure(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Compute and store each cell's scores and self-consistency."""
    context = runtime.context
    await enter_stage(context, "measure")
    await asyncio.to_thread(save_scores, context)
    return {}


def save_scores(context: RunContext) -> None:
    """Compute and store all scores from the stored answers."""
    _save_direct_scores(context)
    _save_logprob_scores(context)


def _save_logprob_scores(context: RunContext) -> None:
    """Compute and store log-probability scores."""
    pair_scores = results.load_sentence_pairs(context.db, context.audit_id)
    save_records(context.db, context.audit_id, compute_logprob_scores(pair_scores))


def _save_direct_scores(context: RunContext) -> None:
    """Compute and store direct scores, in batches of cells; self-consistency only if its inputs have changed.

    Raises:
        RunInterrupted: the user stopped the run; the batches before are stored.
    """
    stored_scores = results.load_scores(context.db, context.audit_id)
    old_scores = {(score.model, score.cell): score for score in stored_scores if score.method == Method.DIRECT}
    for start in range(0, len(context.cells), CELLS_PER_BATCH):
        cells = context.cells[start : start + CELLS_PER_BATCH]
        traces = results.load_traces(context.db, context.audit_id, cells)
        scores = _compute_direct_scores(context, _group_by_model_and_cell(traces), old_scores)
        save_records(context.db, context.audit_id, scores)
        failpoint("scores")


def _compute_direct_scores(
    context: RunContext,
    traces_by_model_cell: Mapping[tuple[str, Cell], list[Trace]],
    old_scores: Mapping[tuple[str, Cell], CellScore],
) -> list[CellScore]:
    """Compute direct scores from traces by (model, cell); unchanged cells keep their self-consistency."""
    language_texts = {model_cell: texts_by_language(traces) for model_cell, traces in traces_by_model_cell.items()}
    evidence = {
        model_cell: evidence_hash(
            context.config.embedding.model, [text for texts in by_language.values() for text in texts]
        )
        for model_cell, by_language in language_texts.items()
    }
    changed_texts = {
        model_cell: texts
        for model_cell, texts in language_texts.items()
        if model_cell not in old_scores or old_scores[model_cell].evidence != evidence[model_cell]
    }
    new_consistencies: dict[tuple[str, Cell], float | None] = (
        dict.fromkeys(changed_texts) if context.consistency is None else context.consistency.compute(changed_texts)
    )
    scores = []
    for model_cell, traces in traces_by_model_cell.items():
        consistency = (
            new_consistencies[model_cell] if model_cell in changed_texts else old_scores[model_cell].self_consistency
        )
        # The second part of the key is the cell. A stopping rule may have taken more samples than guaranteed.
        n_planned = max(
            context.config.guaranteed_samples_per_cell(native_languages(model_cell[1].country)), len(traces)
        )
        scores.append(compute_cell_score(*model_cell, traces, n_planned, consistency, evidence[model_cell]))
    return scores


def route_review(state: AuditState, runtime: Runtime[RunContext]) -> list[Send] | Literal["detect"]:
    """Start one review branch for each batch of cells; go to `detect` without direct scores or judges."""
    if not runtime.context.config.probes.direct or not runtime.context.config.judge_models:
        return "detect"
    return [Send("review", batch) for batch in split_into_batches(state["cells"], CELLS_PER_BATCH)]


async def review(state: Batch, runtime: Runtime[RunContext]) -> AuditState:
    """Have panels review the traces of the batch, with the configured checks of blinding."""
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


def _group_by_model_and_cell(traces: Iterable[Trace]) -> dict[tuple[str, Cell], list[Trace]]:
    """Group traces by (model, cell)."""

    def model_and_cell(trace: Trace) -> tuple[str, Cell]:
        """Key of the groups, also the order of the traces."""
        return trace.model, trace.cell

    return {
        model_cell: list(group) for model_cell, group in groupby(sorted(traces, key=model_and_cell), key=model_and_cell)
    }
