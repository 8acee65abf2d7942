"""The audit's graph: its edges, and running it from the start or where it waits for a person."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from auditor.agents import nodes
from auditor.agents.audit_state import AuditState
from auditor.agents.cell_graph import build_cell_graph
from auditor.agents.conflict_nodes import detect, resolve
from auditor.agents.logprob_scoring import LogprobBatch, score_logprobs
from auditor.agents.preflight import preflight
from auditor.agents.probe_stage import build_probe_stage, build_stage_graph
from auditor.agents.run_context import RunContext
from auditor.config.installed_probes import list_built_in_names, load_built_in

AuditGraph: TypeAlias = CompiledStateGraph[AuditState, RunContext, AuditState, AuditState]


def build_graph(
    checkpointer: BaseCheckpointSaver[Any] | None = None, *, installed_probes: Iterable[str] = ()
) -> AuditGraph:
    """Build the audit's graph.

    Args:
        checkpointer: only with one, the graph can wait for a person.
        installed_probes: names of the probes of other packages that the audit uses, in the order of their stages.
    """
    graph = StateGraph(AuditState, context_schema=RunContext)
    for node in (nodes.plan, preflight, nodes.measure, detect, resolve, nodes.await_human, nodes.report):
        graph.add_node(node)
    graph.add_node("cells", build_cell_graph())
    graph.add_node(score_logprobs, input_schema=LogprobBatch)
    installed_probes = list(installed_probes)
    stages = [load_built_in(name).build_stage() for name in list_built_in_names()]
    for stage in (*stages, *map(build_probe_stage, installed_probes)):
        graph.add_node(stage.name, build_stage_graph(stage))
    branches = ["cells", "score_logprobs", *list_built_in_names(), *installed_probes]
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "preflight")
    graph.add_conditional_edges("preflight", nodes.route_branches, [*branches, "measure"])
    for branch in branches:
        graph.add_edge(branch, "measure")
    graph.add_edge("measure", "detect")
    graph.add_edge("detect", "resolve")
    graph.add_conditional_edges("resolve", nodes.route_human_review, ["await_human", "report"])
    graph.add_conditional_edges("await_human", nodes.route_human_review, ["await_human", "report"])
    graph.add_edge("report", END)
    return graph.compile(checkpointer=checkpointer, name="audit")


def draw_mermaid(*, xray: bool = False) -> str:
    """Render the graph as Mermaid text.

    Args:
        xray: whether the nodes of the branches are shown too.
    """
    return build_graph().get_graph(xray=xray).draw_mermaid()


RUNNABLE_CONFIG: RunnableConfig = {"configurable": {"thread_id": "audit"}, "recursion_limit": sys.maxsize}
"""The only thread of a checkpointer in memory, and no limit on steps: rounds of answers have no fixed number."""


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
