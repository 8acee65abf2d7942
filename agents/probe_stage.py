"""The stages of probes: each plans, asks in batches, and stores what the answers say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from auditor.agents.call_runner import merge_repeated, repeat_calls, run_calls
from auditor.agents.derived_results import save_scores
from auditor.agents.probe_questions import build_probe_call, open_probe_audit, read_answer
from auditor.agents.run_context import RunContext
from auditor.agents.stages import (
    AuditState,
    Batch,
    BranchResult,
    branch_node,
    record_stage,
    split_into_batches,
    wait_for_answers,
)
from auditor.config.installed_probes import InstalledProbe, load_probe
from auditor.domain import Outcome
from auditor.models.reasoning import strip_thinking
from auditor.probe_interface import Needs, ProbeAnswer, ProbeAudit, ProbeResult, Question, Turn, Unit
from auditor.storage.records import save_records

UNITS_PER_BATCH = 32
"""Units in one parallel branch; bounds its memory."""
Step: TypeAlias = Callable[[RunContext], Awaitable[None]]
"""A step of a stage, which stores what it does."""


@dataclass(frozen=True)
class ProbePlan:
    """What the first step of a probe's stage has planned for its batches."""

    audit: ProbeAudit[Any]
    units: Sequence[Unit]
    respondents: Sequence[str]


@dataclass(frozen=True)
class ProbeStage:
    """The steps of a probe's stage; each is a node of the graph with the name of its function.

    Attributes:
        name: name of the probe.
        plan: stores what is asked about, and returns the number of units; 0 ends the stage.
        ask: asks about the units of a range, and stores what the answers say. It runs for many ranges at a time.
        batch_size: units of a range; bounds the memory.
        before: steps between `plan` and `ask`, one after another.
        after: steps after all units were asked about.
    """

    name: str
    plan: Callable[[RunContext], Awaitable[int]]
    ask: Callable[[RunContext, int, int], Awaitable[None]]
    batch_size: int
    before: Sequence[Step] = ()
    after: Sequence[Step] = ()


class StageState(AuditState, total=False):
    """The audit's state, and the number of units to ask about."""

    units: int


def build_stage_graph(stage: ProbeStage) -> CompiledStateGraph[Any, RunContext, Any, Any]:
    """Build the graph of a stage; it ends immediately if the probe is not configured."""
    graph = StateGraph(StageState, context_schema=RunContext, output_schema=BranchResult)
    plan, ask = stage.plan.__name__, stage.ask.__name__

    async def run_plan(state: StageState, runtime: Runtime[RunContext]) -> StageState:
        """Plan."""
        is_configured = stage.name in runtime.context.config.probes.with_stage
        return {"units": await stage.plan(runtime.context) if is_configured else 0}

    async def run_ask(state: Batch, runtime: Runtime[RunContext]) -> StageState:
        """Ask about one range of units."""
        async with runtime.context.batch_slot(stage.name):
            if not runtime.context.stop_event.is_set():
                await stage.ask(runtime.context, state["start"], state["stop"])
        return {}

    def start_batches(state: StageState) -> list[Send] | Literal["__end__"]:
        """Start one branch for each range; end without anything to ask."""
        return [Send(ask, batch) for batch in split_into_batches(state.get("units", 0), stage.batch_size)] or "__end__"

    graph.add_node(plan, branch_node(run_plan))
    graph.add_node(ask, branch_node(run_ask), input_schema=Batch)
    for step in (*stage.before, *stage.after):
        graph.add_node(step.__name__, branch_node(_as_node(step)))
    graph.add_edge(START, plan)
    first_names = [plan, *(step.__name__ for step in stage.before)]
    for node, following in pairwise(first_names):
        graph.add_conditional_edges(node, partial(_continue_with_units, following), [following, END])
    graph.add_conditional_edges(first_names[-1], start_batches, [ask] if stage.before else [ask, END])
    names = [ask, *(step.__name__ for step in stage.after), END]
    for node, following in pairwise(names):
        graph.add_edge(node, following)
    return graph.compile(name=stage.name)


def _as_node(step: Step) -> Any:
    """Make a node of a step."""

    async def run_step(state: StageState, runtime: Runtime[RunContext]) -> StageState:
        """Run the step."""
        await step(runtime.context)
        return {}

    return run_step


def _continue_with_units(following: str, state: StageState) -> str:
    """Go on to a node if there are units, otherwise end."""
    return following if state.get("units") else END


def build_probe_stage(name: str) -> ProbeStage:
    """Build the stage of a probe without one of its own: it plans, and asks about its units in parallel batches."""
    probe = load_probe(name)

    async def plan_units(context: RunContext) -> int:
        """Plan what the models are asked about."""
        if probe.probe.needs is not Needs.NOTHING:
            await wait_for_answers(context)
            await asyncio.to_thread(save_scores, context)
        await record_stage(context, name)
        audit = open_probe_audit(probe, context.config, context.survey, context.db, context.audit_id)
        plan = ProbePlan(audit, probe.plan(audit), probe.respondents(audit))
        context.probe_plans[name] = plan
        return len(plan.units)

    async def ask_units(context: RunContext, start: int, stop: int) -> None:
        """Ask about the units of a range and store what is read."""
        plan: ProbePlan = context.probe_plans[name]
        new_results = await _collect_results(context, probe, plan, plan.units[start:stop])
        await asyncio.to_thread(save_records, context.db, context.audit_id, new_results, probe=name)

    return ProbeStage(name, plan_units, ask_units, UNITS_PER_BATCH)


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
            position: ProbeAnswer(
                *(model, question.unit, question.sample, turn, calls[position].request_text, ""),
                prefill=calls[position].prefill,
            )
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
