"""Entering a stage: noted in storage, and told to whoever watches."""

from __future__ import annotations

import asyncio

from auditor.agents.run_context import RunContext
from auditor.failpoints import failpoint
from auditor.storage import audits


async def enter_stage(context: RunContext, stage: str) -> None:
    """Note the stage; a run that was stopped ends here, where no sibling branch can lose what is in flight."""
    context.raise_if_stopped()
    await record_stage(context, stage)


async def record_stage(context: RunContext, stage: str) -> None:
    """Note the stage, from within a branch."""
    failpoint("stage")
    context.progress.on_stage_entered(stage)
    await asyncio.to_thread(audits.set_stage, context.db, context.audit_id, stage)
