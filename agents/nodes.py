"""Nodes of the audit's graph, but those of probes and conflicts.

Each can be repeated on the same storage, and none raises for a failed call.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal

from langgraph.runtime import Runtime
from langgraph.types import Send, interrupt

from auditor.agents.audit_state import AuditState, split_into_batches
from auditor.agents.cell_scoring import (
    CHANCE_COLUMNS,
    compute_cell_score,
    compute_logprob_scores,
    evidence_hash,
    texts_by_language,
)
from auditor.agents.run_context import RunContext
from auditor.agents.stages import enter_stage
from auditor.domain import Cell, CellScore, Method, Trace
from auditor.failpoints import failpoint
from auditor.storage import audits, results
from auditor.storage.records import save_records
from auditor.surveys.countries import native_languages

CELLS_PER_BATCH = 32
"""Cells whose scores are computed, or measured by log-probabilities, together; bounds the memory."""
MAX_CHANCE_CELLS = 300
"""Cells whose reasonings are compared with each other, one of each cell."""


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
            for batch in split_into_batches(state["cells"], CELLS_PER_BATCH)
        ]
    branches += probes.with_stage
    return branches or ["measure"]


async def measure(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Compute and store each cell's scores and self-consistency."""
    context = runtime.context
    await enter_stage(context, "measure")
    await asyncio.to_thread(save_scores, context)
    return {}


def save_scores(context: RunContext) -> None:
    """Compute and store all scores from the stored answers."""
    _save_direct_scores(context)
    pair_scores = results.load_sentence_pairs(context.db, context.audit_id)
    save_records(context.db, context.audit_id, compute_logprob_scores(pair_scores))


def _save_direct_scores(context: RunContext) -> None:
    """Compute and store direct scores, in batches of cells; self-consistency only if its inputs have changed.

    Raises:
        RunInterrupted: the user stopped the run; the batches before are stored.
    """
    encoder = None
    while encoder != (encoder := _encoder_identity(context)):  # its weights may turn out to be others than recorded
        _save_scores_by_encoder(context, encoder)


def _encoder_identity(context: RunContext) -> str:
    """What stands for the encoder in the evidence of self-consistencies."""
    return context.config.embedding.model if context.consistency is None else context.consistency.identity


def _save_scores_by_encoder(context: RunContext, encoder: str) -> None:
    """Compute and store direct scores while the encoder stays the same."""
    stored_scores = results.load_scores(context.db, context.audit_id)
    old_scores = {(score.model, score.cell): score for score in stored_scores if score.method == Method.DIRECT}
    chance = _measure_chance(context, old_scores)
    for start in range(0, len(context.cells), CELLS_PER_BATCH):
        cells = context.cells[start : start + CELLS_PER_BATCH]
        traces = results.load_traces(context.db, context.audit_id, cells)
        scores = _compute_direct_scores(context, _group_by_model_and_cell(traces), old_scores)
        if _encoder_identity(context) != encoder:
            return
        save_records(context.db, context.audit_id, [_add_chance(score, chance) for score in scores])
        failpoint("scores")


def _measure_chance(
    context: RunContext, old_scores: Mapping[tuple[str, Cell], CellScore]
) -> Mapping[tuple[str, Cell], Mapping[str, float | None]]:
    """How alike each model's reasonings about different cells are, as values of columns of its scores.

    Of audits with many cells some are drawn. Without an encoder, stored values stay.
    """
    if context.consistency is None:
        return {key: {column: getattr(score, column) for column in CHANCE_COLUMNS} for key, score in old_scores.items()}
    n_cells = min(len(context.cells), MAX_CHANCE_CELLS)
    cells = random.Random(context.config.seed).sample(context.cells, n_cells)
    texts_by_model: dict[str, dict[Cell, dict[str, list[str]]]] = {}
    for (model, cell), traces in _group_by_model_and_cell(
        results.load_traces(context.db, context.audit_id, cells)
    ).items():
        texts_by_model.setdefault(model, {})[cell] = texts_by_language(traces)
    return {
        (model, cell): similarities
        for model, texts in texts_by_model.items()
        for cell, similarities in context.consistency.compute_chance(texts, context.config.seed).items()
    }


def _add_chance(score: CellScore, chance: Mapping[tuple[str, Cell], Mapping[str, float | None]]) -> CellScore:
    """The score with its model's similarities between cells."""
    chance_similarity, topic_similarity = map(chance.get((score.model, score.cell), {}).get, CHANCE_COLUMNS)
    return replace(score, chance_similarity=chance_similarity, topic_similarity=topic_similarity)


def _hash_texts(context: RunContext, texts_by_language: Mapping[str, Sequence[str]]) -> str:
    """Hash of the encoder and of a cell's texts, which its self-consistency is computed from."""
    return evidence_hash(_encoder_identity(context), [text for texts in texts_by_language.values() for text in texts])


def _compute_direct_scores(
    context: RunContext,
    traces_by_model_cell: Mapping[tuple[str, Cell], list[Trace]],
    old_scores: Mapping[tuple[str, Cell], CellScore],
) -> list[CellScore]:
    """Compute direct scores from traces by (model, cell); unchanged cells keep their self-consistency."""
    language_texts = {model_cell: texts_by_language(traces) for model_cell, traces in traces_by_model_cell.items()}
    evidence = {model_cell: _hash_texts(context, by_language) for model_cell, by_language in language_texts.items()}
    changed_texts = {
        model_cell: texts
        for model_cell, texts in language_texts.items()
        if model_cell not in old_scores or old_scores[model_cell].evidence != evidence[model_cell]
    }
    new_consistencies: Mapping[tuple[str, Cell], float | None] = (
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
