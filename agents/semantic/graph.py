"""The probe's own graph: pose the questions, word them anew where that is asked for, answer, score, judge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from auditor.agents.audit_state import State
from auditor.agents.run_context import Context
from auditor.agents.semantic.answer_collection import answer_batch
from auditor.agents.semantic.call_builders import probe_of
from auditor.agents.semantic.pair_verdicts import judge_consistency, judge_worst
from auditor.agents.semantic.paraphrases import word_anew
from auditor.agents.semantic.questions import planned_questions, written_wordings
from auditor.agents.semantic.scoring import Plan, score_audit
from auditor.agents.stages import enter
from auditor.config import AuditConfig
from auditor.config.semantic import SemanticProbe
from auditor.domain import ENGLISH
from auditor.domain.semantic import Question, SemanticFacts
from auditor.models.text_similarity import measures
from auditor.storage import semantic_results

BATCH_QUESTIONS = 16
"""Questions in one branch of the fan-out: bounds what a branch holds in memory."""
STAGE = "semantic"
ENGLISH_ONLY = "all-MiniLM-L6-v2"


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
    for node in (word, score, judge):
        graph.add_node(node)
    graph.add_edge(START, "pose")
    graph.add_conditional_edges("pose", route_word, ["word", END])
    graph.add_conditional_edges("word", route_answer, ["answer"])
    graph.add_edge("answer", "score")
    graph.add_edge("score", "judge")
    graph.add_edge("judge", END)
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
    semantic_results.replace_questions(context.db, context.audit_id, questions)
    wordings = [w for q in questions for w in written_wordings(q)]
    semantic_results.save_wordings(context.db, context.audit_id, wordings)
    encoder = probe.encoder or context.config.embedding.model
    if encoder == ENGLISH_ONLY and (others := sorted({w.language for w in wordings} - {ENGLISH})):
        context.progress.noted(
            f"The encoder {encoder} reads English only, but there are wordings in {', '.join(others)}: name a "
            "multilingual one as probes.semantic.encoder."
        )
    return len(questions)


def route_word(state: SemanticState) -> Literal["word", "__end__"]:
    """On where there are questions."""
    return "word" if state["questions"] else "__end__"


async def word(state: SemanticState, runtime: Runtime[Context]) -> SemanticState:
    """Have questions worded anew that have too few paraphrases, where a model is named for that."""
    context = runtime.context
    probe = probe_of(context.config)
    if probe.paraphraser is not None:
        async for questions in _batches(context):
            await word_anew(context, probe, questions)
    return {}


async def _batches(context: Context) -> AsyncIterator[list[Question]]:
    questions = await asyncio.to_thread(semantic_results.questions, context.db, context.audit_id)
    for start in range(0, len(questions), BATCH_QUESTIONS):
        yield questions[start : start + BATCH_QUESTIONS]


def route_answer(state: SemanticState) -> list[Send]:
    """One branch for each batch of questions."""
    n = state["questions"]
    batches = range(0, n, BATCH_QUESTIONS)
    return [Send("answer", QuestionBatch(start=i, stop=min(i + BATCH_QUESTIONS, n))) for i in batches]


async def answer(state: QuestionBatch, runtime: Runtime[Context]) -> SemanticState:
    """Put every wording of the batch to every model, and ask for the rule of thumb behind each answer."""
    context = runtime.context
    questions = await asyncio.to_thread(semantic_results.questions, context.db, context.audit_id)
    await answer_batch(context, questions[state["start"] : state["stop"]])
    return {}


async def score(state: SemanticState, runtime: Runtime[Context]) -> SemanticState:
    """Embed answers and rules, and score every question."""
    context = runtime.context
    await enter(context, STAGE)
    await asyncio.to_thread(score_audit, context.db, context.audit_id, plan_of(context))
    return {}


async def judge(state: SemanticState, runtime: Runtime[Context]) -> SemanticState:
    """Put pairs of answers before a judge, where one is named for that."""
    context = runtime.context
    await enter(context, STAGE)
    probe = probe_of(context.config)
    async for questions in _batches(context):
        if probe.consistency is not None:
            await judge_consistency(context, probe.consistency, questions)
        if probe.contradiction is not None:
            await judge_worst(context, probe, questions)
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
        named=probe.rivals,
        rivals=lambda encoder: measures(probe.rivals, encoder),
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
