"""The audit's graph: its nodes, in `nodes`, `conflict_nodes` and the subgraphs of probes, and their edges."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeAlias

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from auditor.agents import nodes
from auditor.agents.audit_state import AuditState, Batch
from auditor.agents.conflict_nodes import detect, resolve
from auditor.agents.logprob_scoring import LogprobBatch, score_logprobs
from auditor.agents.preflight import preflight
from auditor.agents.probe_stage import build_probe_graph
from auditor.agents.run_context import RunContext
from auditor.config.probes import SECTION_BY_PROBE

RECURSION_LIMIT = 500
"""Maximum number of graph steps; each precision check takes two."""

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
    for node in (
        nodes.plan,
        preflight,
        nodes.check_precision,
        nodes.measure,
        detect,
        resolve,
        nodes.await_human,
        nodes.report,
    ):
        graph.add_node(node)
    for branch in (nodes.elicit, nodes.review):
        graph.add_node(branch, input_schema=Batch)
    installed_probes = list(installed_probes)
    for name, section_class in SECTION_BY_PROBE.items():
        graph.add_node(name, section_class.parts.load("build_graph")())
    for name in installed_probes:
        graph.add_node(name, build_probe_graph(name))
    graph.add_node(score_logprobs, input_schema=LogprobBatch)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "preflight")
    graph.add_conditional_edges("preflight", nodes.route_elicit, ["elicit", "score_logprobs", "measure"])
    graph.add_edge("elicit", "check_precision")
    graph.add_edge("score_logprobs", "check_precision")
    graph.add_conditional_edges("check_precision", nodes.route_precision_check, ["elicit", "measure"])
    stages = ["measure", *SECTION_BY_PROBE, *installed_probes]
    for stage, next_stage in pairwise(stages):
        graph.add_edge(stage, next_stage)
    graph.add_conditional_edges(stages[-1], nodes.route_review, ["review", "detect"])
    graph.add_edge("review", "detect")
    graph.add_edge("detect", "resolve")
    graph.add_conditional_edges("resolve", nodes.route_human_review, ["await_human", "report"])
    graph.add_conditional_edges("await_human", nodes.route_human_review, ["await_human", "report"])
    graph.add_edge("report", END)
    return graph.compile(checkpointer=checkpointer, name="audit")


def draw_mermaid() -> str:
    """Render the graph as Mermaid text."""
    return build_graph().get_graph().draw_mermaid()
