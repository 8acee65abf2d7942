"""Going on with a graph whose memory an earlier version of the program wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from auditor.agents.audit_state import AuditState
from auditor.agents.checkpoints import open_checkpointer
from auditor.agents.graph_runner import resume_graph
from auditor.storage.database import Database, open_database

THREAD = "1/2026-01-01"
SETTINGS: RunnableConfig = {"configurable": {"thread_id": THREAD}}
UNUSED = cast(Any, None)


def wait(state: AuditState) -> AuditState:
    """A node that this version does not have."""
    return {"open": int(interrupt({}))}


async def leave_waiting(db: Database) -> None:
    """Leave a graph waiting at that node."""
    earlier = StateGraph(AuditState)
    earlier.add_node("node_of_an_earlier_version", wait)
    earlier.add_edge(START, "node_of_an_earlier_version")
    async with open_checkpointer(db) as saver:
        graph = earlier.compile(checkpointer=saver)
        await graph.ainvoke({"open": 2}, SETTINGS)
        assert (await graph.aget_state(SETTINGS)).next == ("node_of_an_earlier_version",)


async def checkpoints(db: Database) -> int:
    async with open_checkpointer(db) as saver:
        return len([checkpoint async for checkpoint in saver.alist(SETTINGS)])


async def test_a_graph_that_waits_at_an_unknown_node_counts_as_none_and_is_forgotten_in_the_end(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path / 'audits.db'}") as db:
        await leave_waiting(db)
        assert not await resume_graph(UNUSED, db, THREAD, open_conflicts=1)
        assert await checkpoints(db) > 0
        assert not await resume_graph(UNUSED, db, THREAD, open_conflicts=0)
        assert await checkpoints(db) == 0
