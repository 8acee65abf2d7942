"""Running the graph from the start, or resuming it where it waits for a person."""

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

    A run always starts at the first node and ignores earlier checkpoints: completed calls are read from the ledger.

    Args:
        context: the audit's config, survey, storage and models.
        database: the audit's database, to which the checkpointer belongs.
        thread_id: id of the audit's run; unique across databases and re-created audits.
    """
    async with open_checkpointer(database) as saver:
        await saver.adelete_thread(thread_id)
        graph = build_graph(saver)
        await graph.ainvoke(AuditState(), _runnable_config(thread_id), context=context)
        if not (await graph.aget_state(_runnable_config(thread_id))).next:
            await saver.adelete_thread(thread_id)


async def resume_graph(context: RunContext, database: Database, thread_id: str, open_conflicts: int) -> bool:
    """Resume a graph that waits for a person.

    Args:
        context, database, thread_id: as for `run_graph`.
        open_conflicts: number of conflicts that people have left open.

    Returns:
        Whether a graph was waiting under this thread. A graph that waits at a node of an earlier version, which has
        another name in this one, does not count: langgraph lists no next node for it.
    """
    async with open_checkpointer(database) as saver:
        graph = build_graph(saver)
        is_waiting = bool((await graph.aget_state(_runnable_config(thread_id))).next)
        if is_waiting:
            await graph.ainvoke(Command(resume=str(open_conflicts)), _runnable_config(thread_id), context=context)
        if open_conflicts == 0:
            await saver.adelete_thread(thread_id)
        return is_waiting


async def delete_thread(database: Database, thread_id: str) -> None:
    """Delete the checkpoints of an audit's run."""
    async with open_checkpointer(database) as saver:
        await saver.adelete_thread(thread_id)


def _runnable_config(thread_id: str) -> RunnableConfig:
    """Settings of langgraph for one run: the thread of its checkpoints, and the maximum number of steps."""
    return {"configurable": {"thread_id": thread_id}, "recursion_limit": RECURSION_LIMIT}
