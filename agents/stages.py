"""Recording the current stage of an audit in storage, reporting it as progress, and ending branches of the graph."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from langgraph.runtime import Runtime

from auditor.agents.run_context import RunContext
from auditor.errors import AuditorError
from auditor.failpoints import failpoint
from auditor.storage import audits

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
