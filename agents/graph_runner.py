"""Running the graph from the start, or resuming it where it waits for a person."""

from __future__ import annotations

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from auditor.agents.audit_state import AuditState
from auditor.agents.graph import RECURSION_LIMIT, build_graph
from auditor.agents.run_context import RunContext

RUNNABLE_CONFIG: RunnableConfig = {"configurable": {"thread_id": "audit"}, "recursion_limit": RECURSION_LIMIT}
"""Settings of langgraph: the maximum number of steps, and the only thread of a checkpointer in memory."""


async def run_graph(context: RunContext) -> None:
    """Run an audit's graph until it ends or waits for a person.

    A run always starts at the first node: completed calls are read from the ledger. Checkpoints are in memory, since
    langgraph interrupts no graph without them; the stored stage says where the audit stands.
    """
    graph = build_graph(InMemorySaver())
    await graph.ainvoke(AuditState(), RUNNABLE_CONFIG, context=context, durability="exit")


async def resume_graph(context: RunContext) -> None:
    """Run the rest of the graph of an audit that waited for a person, once no conflict is open."""
    graph = build_graph(InMemorySaver())
    await graph.aupdate_state(RUNNABLE_CONFIG, AuditState(open=0), as_node="await_human")
    await graph.ainvoke(None, RUNNABLE_CONFIG, context=context, durability="exit")
