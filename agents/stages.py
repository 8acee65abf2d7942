"""State and stages of the graph: batches of positions, entering a stage, and branches that run beside others.

The state holds ids and counts, never texts: answers are kept in the ledger.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any, TypedDict, TypeVar, cast

from langgraph.runtime import Runtime

from auditor.agents.run_context import RunContext
from auditor.errors import AuditorError
from auditor.failpoints import failpoint
from auditor.storage import audits


class Batch(TypedDict):
    """A range of positions, [start, stop), in a list of the audit: of cells, questions or pairs of items."""

    start: int
    stop: int


def split_into_batches(n: int, size: int, start: int = 0) -> list[Batch]:
    """Split the positions from `start` up to `n`, exclusive, into batches of at most `size`."""
    return [Batch(start=first, stop=min(first + size, n)) for first in range(start, n, size)]


class AuditState(TypedDict, total=False):
    """State of one audit's graph.

    Keys:
        config_hash: hash of the configuration at the start of the run.
        cells: number of cells in the audit.
        measures: how log-probabilities are obtained, by model name (None: not available); empty without the probe.
        conflicts, open: number of conflicts, and of those left to a person.
    """

    config_hash: str
    cells: int
    measures: dict[str, str | None]
    conflicts: int
    open: int


class BranchResult(TypedDict):
    """What a branch returns that runs beside others: nothing, since all results are stored."""


N = TypeVar("N", bound=Callable[..., Awaitable[Any]])


async def enter_stage(context: RunContext, stage: str) -> None:
    """Record a new stage; raises if the run was stopped, since no parallel branch has calls in flight here."""
    context.raise_if_stopped()
    await record_stage(context, stage)


async def record_stage(context: RunContext, stage: str) -> None:
    """Record a new stage from within a parallel branch; does not raise if the run was stopped."""
    failpoint("stage")
    context.progress.on_stage_entered(stage)
    await asyncio.to_thread(audits.set_stage, context.db, context.audit_id, stage)


async def wait_for_answers(context: RunContext) -> None:
    """Wait in a branch until all direct answers are stored; raises if the run was stopped."""
    await context.schedule.answers_complete.wait()
    context.raise_if_stopped()


def branch_node(node: N) -> N:
    """Wrap a node of a branch that runs beside others, whose calls in flight must not be lost by an error.

    An error stops the run instead; the first node after all branches raises it. The node does nothing once the run is
    stopped, and then returns an empty state.
    """

    @functools.wraps(node)
    async def run(state: Any, runtime: Runtime[RunContext]) -> Any:
        """Run the node."""
        if not runtime.context.stop_event.is_set():
            try:
                return await node(state, runtime)
            except AuditorError as error:
                runtime.context.stop_with(error)
        return {}

    return cast(N, run)
