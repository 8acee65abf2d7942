"""Reading the recorded answers of cells batch by batch: direct questions, reviews, and checks of blinding.

It needs no graph, so that the processes that share it start without langgraph.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from operator import attrgetter

from auditor.agents.blinding_checks import ask_for_guesses, restate_traces, review_restated_traces
from auditor.agents.call_builders import select_traces_for_review
from auditor.agents.cell_schedule import MAX_CELLS_PER_BATCH
from auditor.agents.elicitation import elicit_traces
from auditor.agents.peer_review import review_with_panels
from auditor.agents.run_context import RunContext
from auditor.config import AuditConfig, ModelSection
from auditor.domain import Cell, Trace
from auditor.storage import results

MAX_CALLS_PER_BATCH = 2_000
"""Answers and reviews of a batch of cells, unless one cell has more: each takes some 5 KB of memory."""


def has_only_cells(config: AuditConfig) -> bool:
    """Whether `read_recorded_slice` reads all answers of an audit, so that its results need no graph."""
    probes = config.probes
    is_fixed = probes.direct is not None and not config.direct.is_open_ended and not config.panel.adaptive
    return is_fixed and not probes.logprob and not probes.with_stage


async def read_recorded_slice(context: RunContext, number: int, n_slices: int) -> None:
    """Read the answers about one of several parts of the cells, and all that was asked about them.

    Each part is read in a process of its own, and has topics of its own, but for one at each end: a topic's patterns of
    blinding take some 20 ms.

    Not with rounds of answers (`target_width`), in which a round depends on all answers before it.
    """
    cells = sorted(context.cells_in_elicitation_order, key=attrgetter("topic"))
    n_cells = len(cells)
    for model, batch in split_by_model(
        context, cells[n_cells * number // n_slices : n_cells * (number + 1) // n_slices]
    ):
        await elicit_traces(context, model, batch)
        await review_recorded(context, model.name, batch)


def split_by_model(context: RunContext, cells: Sequence[Cell]) -> list[tuple[ModelSection, Sequence[Cell]]]:
    """Split cells into batches of each model."""
    calls_per_cell = context.config.direct.guaranteed_samples * (1 + len(context.config.judge_models))
    cells_per_batch = max(1, min(MAX_CELLS_PER_BATCH, MAX_CALLS_PER_BATCH // calls_per_cell))
    return [
        (model, cells[first : first + cells_per_batch])
        for first in range(0, len(cells), cells_per_batch)
        for model in context.config.models
    ]


async def review_recorded(context: RunContext, author: str, cells: Sequence[Cell]) -> None:
    """Read the reviews of an author's batch by all judges, and the checks of blinding."""
    if context.stop_event.is_set():
        return
    config, probe = context.config, context.config.probes.review
    traces, judges = await load_traces_for_review(context, author, cells), config.judges_of(author)
    if not config.panel.adaptive:
        await review_with_panels(context, traces)
    if probe.guess:
        for judge in judges:
            await ask_for_guesses(context, judge, traces)
    if config.judge_models and probe.rewrite == "neutral" and probe.rewriter not in (None, author):
        await restate_traces(context, config.model(probe.rewriter), traces)
        for judge in judges:
            if judge.name != probe.rewriter:
                await review_restated_traces(context, judge, traces)


async def load_traces_for_review(context: RunContext, author: str, cells: Sequence[Cell]) -> list[Trace]:
    """Load the author's traces on some cells that judges review."""
    traces = await asyncio.to_thread(results.load_traces, context.db, context.audit_id, cells, author)
    return select_traces_for_review(context.config, traces)
