"""Recording the current stage of an audit in storage, and reporting it as progress."""

from __future__ import annotations

import asyncio

from auditor.agents.run_context import RunContext
from auditor.failpoints import failpoint
from auditor.storage import audits


async def enter_stage(context: RunContext, stage: str) -> None:
    """Record a new stage; raises if the run was stopped, since no parallel branch has calls in flight here."""
    context.raise_if_stopped()
    await record_stage(context, stage)


async def record_stage(context: RunContext, stage: str) -> None:
    """Record a new stage from within a parallel branch; does not raise if the run was stopped."""
    failpoint("stage")
    context.progress.on_stage_entered(stage)
    await asyncio.to_thread(audits.set_stage, context.db, context.audit_id, stage)
