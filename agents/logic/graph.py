"""The probe's own graph: lay out what is compared, ask in batches of pairs."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from auditor.agents.audit_state import State
from auditor.agents.call_runner import ask
from auditor.agents.logic.item_sets import item_sets
from auditor.agents.logic.questions import comparison_call, pairs_of, questions_on, read_comparison
from auditor.agents.run_context import Context
from auditor.agents.stages import enter
from auditor.config import AuditConfig, ModelSection
from auditor.storage import comparisons

BATCH_PAIRS = 32
"""Pairs in one branch of the fan-out: bounds what a branch holds in memory."""
STAGE = "logic"


class LogicState(State, total=False):
    """The audit's state, and how many pairs there are to ask about."""

    pairs: int


class PairBatch(TypedDict):
    """Some pairs, by their position among all: [start, stop)."""

    start: int
    stop: int


def build_logic_graph() -> CompiledStateGraph[Any, Context, Any, Any]:
    """The graph of the probe; it ends at once where the probe is not asked for."""
    graph = StateGraph(LogicState, context_schema=Context)
    graph.add_node(lay_out)
    graph.add_node(compare, input_schema=PairBatch)
    graph.add_edge(START, "lay_out")
    graph.add_conditional_edges("lay_out", route_compare, ["compare", END])
    graph.add_edge("compare", END)
    return graph.compile(name=STAGE)


async def lay_out(state: LogicState, runtime: Runtime[Context]) -> LogicState:
    """Store the sets of items, and count the pairs."""
    context = runtime.context
    probe = context.config.probes.logic
    if probe is None:
        return {"pairs": 0}
    await enter(context, STAGE)
    sets = await asyncio.to_thread(item_sets, context, probe)
    await asyncio.to_thread(comparisons.replace_sets, context.db, context.audit_id, sets)
    return {"pairs": len(pairs_of(sets, probe, context.config.seed))}


def route_compare(state: LogicState) -> list[Send] | Literal["__end__"]:
    """One branch for each batch of pairs."""
    n = state["pairs"]
    sends = [Send("compare", PairBatch(start=i, stop=min(i + BATCH_PAIRS, n))) for i in range(0, n, BATCH_PAIRS)]
    return sends or "__end__"


async def compare(state: PairBatch, runtime: Runtime[Context]) -> LogicState:
    """Put every question about the pairs of the batch to every judge."""
    context = runtime.context
    config, probe = context.config, context.config.probes.logic
    assert probe is not None
    sets = await asyncio.to_thread(comparisons.sets, context.db, context.audit_id)
    pairs = pairs_of(sets, probe, config.seed)[state["start"] : state["stop"]]
    asked = [
        (comparison_call(config, probe, judge, sets[pair.of], question), judge.name, question)
        for judge in judges(config)
        for pair in pairs
        for question in questions_on(pair, probe)
    ]
    answers = await ask(context, STAGE, [call for call, _, _ in asked])
    found = [
        read_comparison(answers[call.key], judge, sets[question.of], question, letters=probe.answer == "probability")
        for call, judge, question in asked
        if call.key in answers
    ]
    await asyncio.to_thread(comparisons.save, context.db, context.audit_id, found)
    return {}


def judges(config: AuditConfig) -> list[ModelSection]:
    """Whoever compares: all audited models, and all judges."""
    return list({model.name: model for model in [*config.models, *config.judge_models]}.values())
