"""The stage of a probe of another package: it plans, asks in batches, and stores what the answers say."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from auditor.agents.audit_state import AuditState, Batch, BranchResult, split_into_batches
from auditor.agents.call_runner import merge_repeated, repeat_calls, run_calls
from auditor.agents.nodes import save_scores
from auditor.agents.probe_questions import build_probe_call, open_probe_audit, read_answer
from auditor.agents.run_context import RunContext
from auditor.agents.stages import branch_node, record_stage, wait_for_answers
from auditor.config.installed_probes import InstalledProbe, load_probe
from auditor.domain import Outcome
from auditor.models.thinking import strip_thinking
from auditor.probe_interface import Needs, ProbeAnswer, ProbeAudit, ProbeResult, Question, Turn, Unit
from auditor.storage.records import save_records

UNITS_PER_BATCH = 32
"""Units in one parallel branch; bounds its memory."""


@dataclass(frozen=True)
class ProbePlan:
    """What the first step of a probe's stage has planned for its batches."""

    audit: ProbeAudit[Any]
    units: Sequence[Unit]
    respondents: Sequence[str]


class ProbeState(AuditState, total=False):
    """The audit's state, and the number of units to ask about."""

    units: int


def build_probe_graph(name: str) -> CompiledStateGraph[Any, RunContext, Any, Any]:
    """Build the graph of an installed probe: it plans, and asks about its units in parallel batches."""
    graph = StateGraph(ProbeState, context_schema=RunContext, output_schema=BranchResult)
    graph.add_node("plan_units", branch_node(partial(_plan_units, name)))
    graph.add_node("ask_units", branch_node(partial(_ask_units, name)), input_schema=Batch)
    graph.add_edge(START, "plan_units")
    graph.add_conditional_edges("plan_units", _route_units, ["ask_units", END])
    graph.add_edge("ask_units", END)
    return graph.compile(name=name)


async def _plan_units(name: str, state: ProbeState, runtime: Runtime[RunContext]) -> ProbeState:
    """Plan what the models are asked about."""
    context, probe = runtime.context, load_probe(name)
    if probe.probe.needs is not Needs.NOTHING:
        await wait_for_answers(context)
        await asyncio.to_thread(save_scores, context)
    await record_stage(context, name)
    audit = open_probe_audit(probe, context.config, context.survey, context.db, context.audit_id)
    plan = ProbePlan(audit, probe.plan(audit), probe.respondents(audit))
    context.probe_plans[name] = plan
    return {"units": len(plan.units)}


def _route_units(state: ProbeState) -> list[Send] | Literal["__end__"]:
    """Start one branch for each batch; end without anything to ask."""
    return [
        Send("ask_units", batch) for batch in split_into_batches(state.get("units", 0), UNITS_PER_BATCH)
    ] or "__end__"


async def _ask_units(name: str, state: Batch, runtime: Runtime[RunContext]) -> ProbeState:
    """Ask about the units of a batch and store what is read."""
    context, probe = runtime.context, load_probe(name)
    plan: ProbePlan = context.probe_plans[name]
    new_results = await _collect_results(context, probe, plan, plan.units[state["start"] : state["stop"]])
    await asyncio.to_thread(save_records, context.db, context.audit_id, new_results, probe=name)
    return {}


async def _collect_results(
    context: RunContext, probe: InstalledProbe, plan: ProbePlan, units: Sequence[Unit]
) -> list[ProbeResult]:
    """Ask every respondent about some units, then put the questions that follow; read all answers."""
    collected: list[ProbeResult] = []
    asked: list[tuple[str, list[Turn], Question]] = []
    for model in plan.respondents:
        questions = await asyncio.to_thread(probe.ask, plan.audit, model, units)
        asked += [(model, [], question) for question in questions]
    for turn in range(probe.probe.max_turns):
        calls = [
            build_probe_call(context.config, probe, context.config.model(model), question, turn)
            for model, _, question in asked
        ]
        answers = await run_calls(context, probe.name, calls)
        places = {
            position: ProbeAnswer(model, question.unit, question.sample, turn, calls[position].request_text, "")
            for position, (model, _, question) in enumerate(asked)
            if calls[position].key in answers
        }
        results = {
            position: read_answer(probe, place, calls[position].schema, answers[calls[position].key])
            for position, place in places.items()
        }
        second_answers = await repeat_calls(
            context, probe.name, [(calls[position], result.outcome) for position, result in results.items()]
        )
        conversations: list[tuple[str, list[Turn]]] = []
        for position, result in results.items():
            (model, turns, question), call = asked[position], calls[position]
            answer, final_result = answers[call.key], result
            if call.key in second_answers:
                second = read_answer(probe, places[position], call.schema, second_answers[call.key])
                final_result = merge_repeated(result, second)
                answer = second_answers[call.key] if second.outcome is Outcome.OK else answer
            collected.append(final_result)
            if answer.outcome.is_answer and answer.text:
                conversations.append((model, [*turns, Turn(question, strip_thinking(answer.text), final_result)]))
        if turn + 1 == probe.probe.max_turns:
            break
        asked = []
        for model, turns in conversations:
            first = turns[0].question
            if (following := probe.ask_next(plan.audit, turns)) is not None:
                asked.append((model, turns, replace(following, unit=first.unit, sample=first.sample)))
    return collected
