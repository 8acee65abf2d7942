"""Running the graph from the start, or resuming it where it waits for a person."""

from __future__ import annotations

import sys
from dataclasses import replace

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from auditor.agents.audit_state import AuditState
from auditor.agents.conflict_nodes import detect_conflicts, resolve_by_vote
from auditor.agents.graph import build_graph
from auditor.agents.nodes import save_scores
from auditor.agents.run_context import RunContext
from auditor.config.installed_probes import load_built_in
from auditor.storage.probe_answers import apply_vote_weights

RUNNABLE_CONFIG: RunnableConfig = {"configurable": {"thread_id": "audit"}, "recursion_limit": sys.maxsize}
"""The only thread of a checkpointer in memory, and no limit on steps, since lanes loop over batches."""


async def run_graph(context: RunContext) -> None:
    """Run an audit's graph until it ends or waits for a person.

    A run always starts at the first node: completed calls are read from the ledger. Checkpoints are in memory, since
    langgraph interrupts no graph without them; the stored stage says where the audit stands.
    """
    graph = build_graph(InMemorySaver(), installed_probes=context.config.probes.plugins)
    await graph.ainvoke(AuditState(), RUNNABLE_CONFIG, context=context, durability="exit")


async def resume_graph(context: RunContext) -> None:
    """Run the rest of the graph of an audit that waited for a person, once no conflict is open."""
    graph = build_graph(InMemorySaver(), installed_probes=context.config.probes.plugins)
    await graph.aupdate_state(RUNNABLE_CONFIG, AuditState(open=0), as_node="await_human")
    await graph.ainvoke(None, RUNNABLE_CONFIG, context=context, durability="exit")


def recompute_results(context: RunContext) -> None:
    """Compute scores, conflicts and votes from the stored answers and verdicts; no model is called."""
    save_scores(context)
    for name in context.config.probes.stages:
        load_built_in(name).recompute_results(context)
    detect_conflicts(context)
    weighted_config = apply_vote_weights(context.db, context.audit_id, context.config)
    resolve_by_vote(replace(context, config=weighted_config))
