"""The audit's graph: the lanes of its cells, its edges, and running it from the start or where it waits.

A lane takes a model's next step, works on it, and takes another one, so that nobody waits for all answers. Rounds of
lanes follow one another only with `target_width`, and adaptive panels are asked when all answers are there. Where all
answers are recorded, nobody waits, and a single node takes one batch after another.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from auditor.agents import nodes
from auditor.agents.blinding_checks import ask_for_guesses, restate_traces, review_restated_traces
from auditor.agents.call_builders import select_traces_for_review
from auditor.agents.cell_schedule import MAX_CELLS_PER_BATCH, Lane, Role, Step, Task
from auditor.agents.elicitation import elicit_traces, find_surplus_samples
from auditor.agents.logprob_scoring import LogprobBatch, score_logprobs
from auditor.agents.nodes import can_settle_cells, detect, resolve, settle_cells
from auditor.agents.peer_review import review_adaptively, review_traces
from auditor.agents.preflight import preflight
from auditor.agents.probe_stage import build_probe_stage, build_stage_graph
from auditor.agents.recorded_cells import load_traces_for_review, review_recorded, split_by_model
from auditor.agents.run_context import RunContext
from auditor.agents.stages import AuditState, Batch, BranchResult, branch_node, record_stage, split_into_batches
from auditor.config import ModelSection
from auditor.config.installed_probes import list_built_in_names, load_built_in
from auditor.domain import Cell, Trace
from auditor.errors import AuditorError
from auditor.metrics.people.savings import is_narrow, next_interim_look
from auditor.storage import results


class CellState(TypedDict, total=False):
    """State of the subgraph: the number of cells that models were asked about so far."""

    reached: int


class LaneState(TypedDict):
    """State of a lane: its model."""

    model: str


def build_cell_graph() -> CompiledStateGraph[Any, RunContext, Any, Any]:
    """Build the subgraph."""
    graph = StateGraph(CellState, context_schema=RunContext, output_schema=BranchResult)
    graph.add_node(check_precision)
    graph.add_node(read_recorded_cells)
    graph.add_node(answer_batches, input_schema=LaneState)
    graph.add_node(review_batches, input_schema=LaneState)
    graph.add_node(ask_adaptive_panels, input_schema=Batch)
    graph.add_conditional_edges(START, route_start, ["check_precision", "read_recorded_cells"])
    graph.add_conditional_edges("read_recorded_cells", route_adaptive_panels, ["ask_adaptive_panels", END])
    graph.add_conditional_edges("check_precision", route_lanes, [*LANE_NODES.values(), "ask_adaptive_panels", END])
    for node in LANE_NODES.values():
        graph.add_edge(node, "check_precision")
    graph.add_edge("ask_adaptive_panels", END)
    return graph.compile(name="cells")


def route_start(state: CellState, runtime: Runtime[RunContext]) -> Literal["check_precision", "read_recorded_cells"]:
    """Start with the lanes, or with the node that needs none."""
    return "read_recorded_cells" if runtime.context.is_recorded else "check_precision"


@branch_node
async def check_precision(state: CellState, runtime: Runtime[RunContext]) -> CellState:
    """Let models answer the next cells; none once Fisher's interval of every model's r is narrow enough."""
    context, schedule = runtime.context, runtime.context.schedule
    n_reached = state.get("reached", 0)
    n_next = (
        n_reached if schedule.answers_complete.is_set() else await asyncio.to_thread(_plan_round, context, n_reached)
    )
    if n_next == n_reached:
        await asyncio.to_thread(_drop_surplus_samples, context, n_reached)
        schedule.release_reviews()
    else:
        schedule.add_answers(n_reached, n_next)
    return {"reached": n_next}


def _plan_round(context: RunContext, n_reached: int) -> int:
    """How many cells models are asked about after the next round; `n_reached` if there is no further one."""
    n_cells, target_width = len(context.cells_in_elicitation_order), context.config.direct.target_width
    if target_width is None:
        return n_cells
    if n_reached and (n_reached == n_cells or _intervals_are_narrow(context, n_reached, target_width)):
        return n_reached
    return next_interim_look(n_reached, n_cells)


@branch_node
async def read_recorded_cells(state: CellState, runtime: Runtime[RunContext]) -> CellState:
    """Do the work of all lanes, in batches of an author's answers and of all that is asked about them."""
    context = runtime.context
    n_reached = 0
    while (n_next := _plan_round(context, n_reached)) > n_reached:
        if not context.has_cells:
            for model, batch in split_by_model(context, context.cells_in_elicitation_order[n_reached:n_next]):
                await elicit_traces(context, model, batch)
        n_reached = n_next
    _drop_surplus_samples(context, n_reached)
    context.schedule.answers_complete.set()  # probes that need all answers wait for this
    if not context.has_cells:
        for model, batch in split_by_model(context, context.cells_in_elicitation_order[:n_reached]):
            await review_recorded(context, model.name, batch)
    return {"reached": n_reached}


def route_lanes(
    state: CellState, runtime: Runtime[RunContext]
) -> list[Send] | Literal["ask_adaptive_panels", "__end__"]:
    """Start all lanes of the models while there are steps, then the adaptive panels, and end."""
    context = runtime.context
    if context.stop_event.is_set():
        context.schedule.answers_complete.set()
        return "__end__"
    if lanes := [Send(LANE_NODES[lane.role], LaneState(model=lane.model)) for lane in context.schedule.lanes()]:
        return lanes
    return route_adaptive_panels(state, runtime)


def route_adaptive_panels(state: CellState, runtime: Runtime[RunContext]) -> list[Send] | Literal["__end__"]:
    """Start the adaptive panels, and end."""
    context = runtime.context
    is_adaptive = context.config.panel.adaptive and context.config.judge_models and not context.stop_event.is_set()
    batches = split_into_batches(len(context.cells) if is_adaptive else 0, MAX_CELLS_PER_BATCH)
    return [Send("ask_adaptive_panels", batch) for batch in batches] or "__end__"


async def answer_batches(state: LaneState, runtime: Runtime[RunContext]) -> CellState:
    """Ask a model about one batch of cells after another."""
    return await _work_in_lane(runtime.context, Lane(state["model"], Role.ANSWER))


async def review_batches(state: LaneState, runtime: Runtime[RunContext]) -> CellState:
    """Have a model review one batch of others' traces after another, and check that they are blinded."""
    return await _work_in_lane(runtime.context, Lane(state["model"], Role.REVIEW))


LANE_NODES = {Role.ANSWER: answer_batches.__name__, Role.REVIEW: review_batches.__name__}
"""Nodes of the lanes. Each is one node for all of its steps: a graph of its own would take 2 ms of CPU a lane."""


async def _work_in_lane(context: RunContext, lane: Lane) -> CellState:
    """Work on the steps of a lane until there are no more."""
    model = context.config.model(lane.model)
    while (step := await context.schedule.take(lane)) is not None:
        await _work_on_step(context, model, step)
    return {}


async def _work_on_step(context: RunContext, model: ModelSection, step: Step) -> None:
    """Work on a step, and let those follow that depend on it.

    An error stops the run when all calls in flight have ended, as with `branch_node`.
    """
    try:
        if context.schedule.begins(step.task) and step.task in STAGES:
            await record_stage(context, STAGES[step.task])
        await WORK[step.task](context, model, step)
    except AuditorError as error:
        context.stop_with(error)
    finally:
        is_last = context.schedule.complete(step)
    if is_last and can_settle_cells(context):
        await _settle(context, step)


async def _settle(context: RunContext, step: Step) -> None:
    """Store the conflicts on cells whose answers and reviews are complete."""
    try:
        await asyncio.to_thread(settle_cells, context, _cells_of(context, step))
    except AuditorError as error:
        context.stop_with(error)


STAGES = {Task.ANSWER: "elicit", Task.REVIEW: "review"}
"""Stages that begin with the first step of a task."""


async def _answer(context: RunContext, model: ModelSection, step: Step) -> None:
    """Ask a model about every cell of the batch, with k samples in every language."""
    await elicit_traces(context, model, _cells_of(context, step))


async def _review(context: RunContext, judge: ModelSection, step: Step) -> None:
    """Have a judge review the traces of the batch."""
    await review_traces(context, judge, await _load_traces(context, step))


async def _guess(context: RunContext, judge: ModelSection, step: Step) -> None:
    """Have a judge guess where the traces of the batch come from."""
    await ask_for_guesses(context, judge, await _load_traces(context, step))


async def _restate(context: RunContext, rewriter: ModelSection, step: Step) -> None:
    """Have the traces of the batch restated."""
    await restate_traces(context, rewriter, await _load_traces(context, step))


async def _review_restated(context: RunContext, judge: ModelSection, step: Step) -> None:
    """Have a judge review the restated traces of the batch."""
    await review_restated_traces(context, judge, await _load_traces(context, step))


async def _load_traces(context: RunContext, step: Step) -> list[Trace]:
    """Load the author's traces of the batch that judges review."""
    return await load_traces_for_review(context, step.author, _cells_of(context, step))


def _cells_of(context: RunContext, step: Step) -> Sequence[Cell]:
    return context.cells_in_elicitation_order[step.start : step.stop]


WORK: Mapping[Task, Callable[[RunContext, ModelSection, Step], Awaitable[None]]] = {
    Task.ANSWER: _answer,
    Task.REVIEW: _review,
    Task.GUESS: _guess,
    Task.RESTATE: _restate,
    Task.REVIEW_RESTATED: _review_restated,
}


@branch_node
async def ask_adaptive_panels(state: Batch, runtime: Runtime[RunContext]) -> CellState:
    """Have adaptive panels review the traces of the batch."""
    context = runtime.context
    if state["start"] == 0:
        await record_stage(context, "review")
    cells = context.cells[state["start"] : state["stop"]]
    async with context.batch_slot("review"):
        if not context.stop_event.is_set():
            traces = await asyncio.to_thread(results.load_traces, context.db, context.audit_id, cells)
            await review_adaptively(context, select_traces_for_review(context.config, traces))
    return {}


def _drop_surplus_samples(context: RunContext, n_reached: int) -> None:
    """Delete stored samples that the stopping rule does not require; `n_reached` is the number of cells asked about."""
    if not context.config.direct.is_open_ended:
        return
    sample_scores = results.load_sample_scores(context.db, context.audit_id)
    surplus = find_surplus_samples(
        context.config.direct, set(context.cells_in_elicitation_order[:n_reached]), sample_scores
    )
    results.delete_traces(context.db, context.audit_id, surplus)


def _intervals_are_narrow(context: RunContext, n_reached: int, width: float) -> bool:
    """Whether Fisher's 95% interval of each model's r with the survey, on the cells reached, is at most `width`."""
    row_by_cell = {cell: index for index, cell in enumerate(context.cells_in_elicitation_order[:n_reached])}
    scores = {model.name: np.full(len(row_by_cell), np.nan) for model in context.config.models}
    for model, cell, mean in results.load_mean_scores(context.db, context.audit_id):
        if cell in row_by_cell:
            scores[model][row_by_cell[cell]] = mean
    survey_scores = context.survey.scores
    # One array per model, each in the order of the cells.
    return is_narrow(list(scores.values()), [survey_scores[cell] for cell in row_by_cell], width)


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
