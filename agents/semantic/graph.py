"""The probe's own graph: pose the questions, word them anew where that is asked for, answer, score, judge."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from auditor.agents.context import Context
from auditor.agents.semantic.answering import answer_batch
from auditor.agents.semantic.questions import planned_questions, written_wordings
from auditor.agents.semantic.scoring import Plan, score_audit
from auditor.agents.stages import enter
from auditor.agents.state import State
from auditor.config import AuditConfig
from auditor.semantic import SemanticFacts
from auditor.semantic_config import SemanticProbe
from auditor.storage import moral

BATCH_QUESTIONS = 16
"""Questions in one branch of the fan-out: bounds what a branch holds in memory."""
STAGE = "semantic"


class SemanticState(State, total=False):
    """The audit's state, and how many questions there are."""

    questions: int


class QuestionBatch(TypedDict):
    """Some questions, by their position among all: [start, stop)."""

    start: int
    stop: int


def build_semantic_graph() -> CompiledStateGraph[Any, Context, Any, Any]:
    """The graph of the probe; it ends at once where the probe is not asked for."""
    graph = StateGraph(SemanticState, context_schema=Context)
    graph.add_node(pose)
    graph.add_node(answer, input_schema=QuestionBatch)
    graph.add_node(score)
    graph.add_edge(START, "pose")
    graph.add_conditional_edges("pose", route_answer, ["answer", END])
    graph.add_edge("answer", "score")
    graph.add_edge("score", END)
    return graph.compile(name=STAGE)


async def pose(state: SemanticState, runtime: Runtime[Context]) -> SemanticState:
    """Store the questions and their wordings, and count them."""
    context = runtime.context
    probe = context.config.probes.semantic
    if probe is None:
        return {"questions": 0}
    await enter(context, STAGE)
    return {"questions": await asyncio.to_thread(_pose, context, probe)}


def _pose(context: Context, probe: SemanticProbe) -> int:
    questions = planned_questions(probe)
    moral.replace_questions(context.db, context.audit_id, questions)
    wordings = [w for q in questions for w in written_wordings(q)]
    moral.save_wordings(context.db, context.audit_id, wordings)
    return len(questions)


def route_answer(state: SemanticState) -> list[Send] | Literal["__end__"]:
    """One branch for each batch of questions."""
    return _sends("answer", state["questions"]) or "__end__"


def _sends(node: str, n: int) -> list[Send]:
    batches = range(0, n, BATCH_QUESTIONS)
    return [Send(node, QuestionBatch(start=i, stop=min(i + BATCH_QUESTIONS, n))) for i in batches]


async def answer(state: QuestionBatch, runtime: Runtime[Context]) -> SemanticState:
    """Put every wording of the batch to every model, and ask for the rule of thumb behind each answer."""
    context = runtime.context
    questions = await asyncio.to_thread(moral.questions, context.db, context.audit_id)
    await answer_batch(context, questions[state["start"] : state["stop"]])
    return {}


async def score(state: SemanticState, runtime: Runtime[Context]) -> SemanticState:
    """Embed answers and rules, and score every question."""
    context = runtime.context
    await enter(context, STAGE)
    await asyncio.to_thread(score_audit, context.db, context.audit_id, plan_of(context))
    return {}


def plan_of(context: Context) -> Plan:
    """How the answers of a run are scored."""
    probe, encoder = context.config.probes.semantic, context.moral_encoder
    assert probe is not None
    assert encoder is not None
    return Plan(
        facts=facts_of(context.config, probe),
        encoder=encoder,
        seed=context.config.seed,
        planned=lambda n: context.progress.planned("embed", n, 0),
        done=lambda n: context.progress.worked("embed", n),
    )


def facts_of(config: AuditConfig, probe: SemanticProbe) -> SemanticFacts:
    """What a report says of how the scores were made, but for what only the encoder knows."""
    return SemanticFacts(
        source=probe.questions,
        encoder=probe.encoder or config.embedding.model,
        revision="",
        variant=probe.variant,
        alpha=probe.alpha,
        rot_weight=probe.rot_weight,
        measured=probe.measured,
        wordings=probe.paraphrases,
        evidence="",
    )
