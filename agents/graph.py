"""The wiring: plan, elicit, look, measure, semantic, logic, review, detect, resolve, a person where needed, report."""

from __future__ import annotations

from typing import Any, TypeAlias

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from auditor.agents import nodes
from auditor.agents.audit_state import Batch, State
from auditor.agents.logic.graph import build_logic_graph
from auditor.agents.logprob_scoring import WeighBatch, weigh
from auditor.agents.run_context import Context
from auditor.agents.semantic.graph import build_semantic_graph

RECURSION_LIMIT = 500
"""Steps at most; every look at intervals takes two."""

Graph: TypeAlias = CompiledStateGraph[State, Context, State, State]


def build_graph(checkpointer: BaseCheckpointSaver[Any] | None = None) -> Graph:
    """The audit's graph; with a checkpointer it remembers the stage under the audit's thread id."""
    graph = StateGraph(State, context_schema=Context)
    for node in (nodes.plan, nodes.look, nodes.measure, nodes.detect, nodes.resolve, nodes.person, nodes.report):
        graph.add_node(node)
    for branch in (nodes.elicit, nodes.review):
        graph.add_node(branch, input_schema=Batch)
    graph.add_node("semantic", build_semantic_graph())
    graph.add_node("logic", build_logic_graph())
    graph.add_node(weigh, input_schema=WeighBatch)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", nodes.route_elicit, ["elicit", "weigh", "measure"])
    graph.add_edge("elicit", "look")
    graph.add_edge("weigh", "look")
    graph.add_conditional_edges("look", nodes.route_look, ["elicit", "measure"])
    graph.add_edge("measure", "semantic")
    graph.add_edge("semantic", "logic")
    graph.add_conditional_edges("logic", nodes.route_review, ["review", "detect"])
    graph.add_edge("review", "detect")
    graph.add_edge("detect", "resolve")
    graph.add_conditional_edges("resolve", nodes.route_person, ["person", "report"])
    graph.add_conditional_edges("person", nodes.route_person, ["person", "report"])
    graph.add_edge("report", END)
    return graph.compile(checkpointer=checkpointer, name="audit")


def mermaid() -> str:
    """The graph as Mermaid text."""
    return build_graph().get_graph().draw_mermaid()
