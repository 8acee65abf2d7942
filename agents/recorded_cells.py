"""Reading the recorded answers of cells batch by batch: direct questions, reviews, and checks of blinding.

It needs no graph, so that the processes that share it start without langgraph.
"""

from __future__ import annotations

import asyncio

from auditor.agents.blinding_checks import ask_for_guesses, restate_traces, review_restated_traces
from auditor.agents.call_builders import select_traces_for_review
from auditor.agents.cell_schedule import MAX_CELLS_PER_BATCH, Step, Task
from auditor.agents.elicitation import elicit_traces
from auditor.agents.peer_review import review_with_panels
from auditor.agents.run_context import RunContext
from auditor.config import ModelSection
from auditor.domain import Trace
from auditor.storage import results

MAX_CALLS_PER_BATCH = 2_000
"""Answers and reviews of a batch of cells, unless one cell has more: each takes some 5 KB of memory."""


async def read_recorded_slice(context: RunContext, number: int, n_slices: int) -> None:
    """Read the answers about one of several parts of the cells, and all that was asked about them.

    Each part is read in a process of its own. Patterns of blinding belong to a cell, so that no two parts share one.

    Not with rounds of answers (`target_width`), in which a round depends on all answers before it.
    """
    n_cells = len(context.cells_in_elicitation_order)
    for model, step in split_into_steps(context, n_cells * number // n_slices, n_cells * (number + 1) // n_slices):
        await answer_step(context, model, step)
        await review_recorded(context, step)


def split_into_steps(context: RunContext, start: int, stop: int) -> list[tuple[ModelSection, Step]]:
    """Split a range of cells into batches of each model."""
    calls_per_cell = context.config.direct.guaranteed_samples * (1 + len(context.config.judge_models))
    cells_per_batch = max(1, min(MAX_CELLS_PER_BATCH, MAX_CALLS_PER_BATCH // calls_per_cell))
    return [
        (model, Step(Task.ANSWER, model.name, first, min(first + cells_per_batch, stop)))
        for first in range(start, stop, cells_per_batch)
        for model in context.config.models
    ]


async def answer_step(context: RunContext, model: ModelSection, step: Step) -> None:
    """Ask a model about every cell of the batch, with k samples in every language."""
    await elicit_traces(context, model, context.cells_in_elicitation_order[step.start : step.stop])


async def review_recorded(context: RunContext, step: Step) -> None:
    """Read the reviews of an author's batch by all judges, and the checks of blinding."""
    if context.stop_event.is_set():
        return
    config, probe = context.config, context.config.probes.review
    traces, judges = await load_traces_for_review(context, step), config.judges_of(step.author)
    if not config.panel.adaptive:
        await review_with_panels(context, traces)
    if probe.guess:
        for judge in judges:
            await ask_for_guesses(context, judge, traces)
    if config.judge_models and probe.rewrite == "neutral" and probe.rewriter not in (None, step.author):
        await restate_traces(context, config.model(probe.rewriter), traces)
        for judge in judges:
            if judge.name != probe.rewriter:
                await review_restated_traces(context, judge, traces)


async def load_traces_for_review(context: RunContext, step: Step) -> list[Trace]:
    """Load the author's traces of the batch that judges review."""
    cells = context.cells_in_elicitation_order[step.start : step.stop]
    traces = await asyncio.to_thread(results.load_traces, context.db, context.audit_id, cells, step.author)
    return select_traces_for_review(context.config, traces)
