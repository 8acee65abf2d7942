"""The probe's own graph: lay out what is compared, ask in batches of pairs."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from auditor.agents.audit_state import AuditState
from auditor.agents.call_runner import run_calls
from auditor.agents.logic.item_sets import build_item_sets
from auditor.agents.logic.questions import build_comparison_call, parse_comparison, plan_pairs, questions_about
from auditor.agents.run_context import RunContext
from auditor.agents.stages import enter_stage
from auditor.config import AuditConfig, ModelSection
from auditor.storage import comparisons

PAIRS_PER_BATCH = 32
"""Pairs in one branch of the fan-out: bounds what a branch holds in memory."""
STAGE = "logic"


class LogicState(AuditState, total=False):
    """The audit's state, and how many pairs there are to ask about."""

    pairs: int


class PairBatch(TypedDict):
    """Some pairs, by their position among all: [start, stop)."""

    start: int
    stop: int


def build_logic_graph() -> CompiledStateGraph[Any, RunContext, Any, Any]:
    """The graph of the probe; it ends at once where the probe is not asked for."""
    graph = StateGraph(LogicState, context_schema=RunContext)
    graph.add_node(store_item_sets)
    graph.add_node(compare, input_schema=PairBatch)
    graph.add_edge(START, "store_item_sets")
    graph.add_conditional_edges("store_item_sets", route_compare, ["compare", END])
    graph.add_edge("compare", END)
    return graph.compile(name=STAGE)


async def store_item_sets(state: LogicState, runtime: Runtime[RunContext]) -> LogicState:
    """Store the sets of items, and count the pairs."""
    context = runtime.context
    probe = context.config.probes.logic
    if probe is None:
        return {"pairs": 0}
    await enter_stage(context, STAGE)
    sets = await asyncio.to_thread(build_item_sets, context, probe)
    await asyncio.to_thread(comparisons.replace_item_sets, context.db, context.audit_id, sets)
    return {"pairs": len(plan_pairs(sets, probe, context.config.seed))}


def route_compare(state: LogicState) -> list[Send] | Literal["__end__"]:
    """One branch for each batch of pairs."""
    n = state["pairs"]
    sends = [
        Send("compare", PairBatch(start=i, stop=min(i + PAIRS_PER_BATCH, n))) for i in range(0, n, PAIRS_PER_BATCH)
    ]
    return sends or "__end__"


async def compare(state: PairBatch, runtime: Runtime[RunContext]) -> LogicState:
    """Put every question about the pairs of the batch to every judge."""
    context = runtime.context
    config, probe = context.config, context.config.probes.logic
    assert probe is not None
    sets = await asyncio.to_thread(comparisons.load_item_sets, context.db, context.audit_id)
    pairs = plan_pairs(sets, probe, config.seed)[state["start"] : state["stop"]]
    asked = [
        (build_comparison_call(config, probe, judge, sets[pair.set_index], question), judge.name, question)
        for judge in comparing_models(config)
        for pair in pairs
        for question in questions_about(pair, probe)
    ]
    answers = await run_calls(context, STAGE, [call for call, _, _ in asked])
    found = [
        parse_comparison(
            answers[call.key], judge, sets[question.set_index], question, from_letters=probe.answer == "probability"
        )
        for call, judge, question in asked
        if call.key in answers
    ]
    await asyncio.to_thread(comparisons.save_comparisons, context.db, context.audit_id, found)
    return {}


def comparing_models(config: AuditConfig) -> list[ModelSection]:
    """Whoever compares: all audited models, and all judges."""
    return list({model.name: model for model in [*config.models, *config.judge_models]}.values())
