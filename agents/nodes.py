"""Nodes of the audit's graph, but those of probes and conflicts.

Each can be repeated on the same storage, and none raises for a failed call.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from langgraph.runtime import Runtime
from langgraph.types import Send, interrupt

from auditor.agents.audit_state import AuditState, split_into_batches
from auditor.agents.derived_results import save_scores
from auditor.agents.run_context import RunContext
from auditor.agents.stages import enter_stage
from auditor.storage import audits

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
