"""Driving the graph: from the start, or on from where it waits for a person."""

from __future__ import annotations

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from auditor.agents.audit_state import AuditState
from auditor.agents.checkpoints import open_checkpointer
from auditor.agents.graph import RECURSION_LIMIT, build_graph
from auditor.agents.run_context import RunContext
from auditor.storage.database import Database


async def run_graph(context: RunContext, database: Database, thread_id: str) -> None:
    """Run an audit's graph until it ends or waits for a person.

    The ledger makes work durable, so a run always begins at the plan; an old position would only mislead.

    Args:
        context: the audit's surroundings.
        database: the audit's, beside which the graph has its own.
        thread: names the audit's run; another database, or an audit made anew, must never meet an old one.
    """
    async with open_checkpointer(database) as saver:
        await saver.adelete_thread(thread_id)
        graph = build_graph(saver)
        await graph.ainvoke(AuditState(), _runnable_config(thread_id), context=context)
        if not (await graph.aget_state(_runnable_config(thread_id))).next:
            await saver.adelete_thread(thread_id)


async def resume_graph(context: RunContext, database: Database, thread_id: str, open_conflicts: int) -> bool:
    """Go on with a graph that waits for a person.

    Args:
        context, database, thread: as given to `drive`.
        left: conflicts that people have left open.

    Returns:
        Whether a graph was waiting under this thread. One that waits at a node which this version does not have, since
        an earlier version named it otherwise, does not count: langgraph lists nothing that could come next.
    """
    async with open_checkpointer(database) as saver:
        graph = build_graph(saver)
        is_waiting = bool((await graph.aget_state(_runnable_config(thread_id))).next)
        if is_waiting:
            await graph.ainvoke(Command(resume=str(open_conflicts)), _runnable_config(thread_id), context=context)
        if open_conflicts == 0:
            await saver.adelete_thread(thread_id)
        return is_waiting


def _runnable_config(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}, "recursion_limit": RECURSION_LIMIT}
