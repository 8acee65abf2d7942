"""The stages of an audit. Each is idempotent against storage, and none raises for a call that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import groupby
from typing import Literal

import numpy as np
from langgraph.runtime import Runtime
from langgraph.types import Send, interrupt

from auditor.agents.answer_conflicts import conflicts_of_answers, speaking, with_answers
from auditor.agents.audit_state import Batch, State
from auditor.agents.blinding_checks import guess_traces, restate_traces
from auditor.agents.call_builders import for_review
from auditor.agents.cell_scoring import cell_score, evidence_of, logprob_scores, self_consistencies
from auditor.agents.conflict_resolution import conflicts_of_methods, conflicts_on, marked, settled, threshold_of
from auditor.agents.elicitation import elicit_traces, surplus
from auditor.agents.logprob_scoring import find_measures
from auditor.agents.peer_review import hear_conflicts, review_traces
from auditor.agents.run_context import Context
from auditor.agents.stages import enter, note
from auditor.domain import AnswerKind, Cell, CellScore, Conflict, ConflictState, Method, Outcome, Trace
from auditor.metrics.stopping import is_narrow, next_look
from auditor.panel_assignment import Place, reviewed
from auditor.storage import audits, results, tasks
from auditor.storage.judge_consistency import with_weights
from auditor.surveys.languages import native_languages

BATCH_CELLS = 32
"""Cells in one branch of the fan-out: bounds what a branch holds in memory."""
BATCH_CONFLICTS = 500


async def plan(state: State, runtime: Runtime[Context]) -> State:
    """Count the cells, and find how log-probabilities can be measured; the calls are planned batch by batch."""
    context = runtime.context
    await enter(context, "plan")
    measures = await find_measures(context)
    context.raise_if_stopped()
    return {"config_hash": context.config.hash, "cells": len(context.cells), "measures": measures}


def route_elicit(state: State, runtime: Runtime[Context]) -> list[Send] | Literal["measure"]:
    """One branch for each batch of cells; straight on when no probe asks about cells."""
    probes, batches = runtime.context.config.probes, _batches(state["cells"])
    likelihoods = [Send("weigh", {**batch, "measures": state["measures"]}) for batch in batches if probes.logprob]
    return [*_asked_next(runtime.context, 0), *likelihoods] or "measure"


def route_look(state: State, runtime: Runtime[Context]) -> list[Send] | Literal["measure"]:
    """On with more cells while an interval is too wide."""
    return _asked_next(runtime.context, state["reached"]) or "measure"


def _asked_next(context: Context, reached: int) -> list[Send]:
    """One branch for each batch of the cells that are asked before the next look; all, where no width is aimed at."""
    if not context.config.probes.direct:
        return []
    cells = len(context.asked)
    end = cells if context.config.direct.target_width is None else next_look(reached, cells)
    return [Send("elicit", batch) for batch in _batches(end, reached)]


async def look(state: State, runtime: Runtime[Context]) -> State:
    """Count the cells that were asked; all are, once every model's r is known as closely as is wanted."""
    context = runtime.context
    context.raise_if_stopped()
    cells, width = len(context.asked), context.config.direct.target_width
    if not context.config.direct.is_open_ended or not context.config.probes.direct:
        return {"reached": cells}
    reached = cells if width is None else next_look(state.get("reached", 0), cells)
    ended = reached == cells or (width is not None and await asyncio.to_thread(_is_narrow, context, reached, width))
    if ended:
        await asyncio.to_thread(_drop_surplus, context, reached)
    return {"reached": cells if ended else reached}


def _drop_surplus(context: Context, reached: int) -> None:
    stored = results.sample_scores(context.db, context.audit_id)
    found = surplus(context.config.direct, set(context.asked[:reached]), stored)
    results.drop_traces(context.db, context.audit_id, found)


def _is_narrow(context: Context, reached: int, width: float) -> bool:
    row = {cell: i for i, cell in enumerate(context.asked[:reached])}
    scores = {m.name: np.full(len(row), np.nan) for m in context.config.models}
    for model, cell, mean in results.means(context.db, context.audit_id):
        if cell in row:
            scores[model][row[cell]] = mean
    people = context.survey.scores
    return is_narrow(list(scores.values()), [people[cell] for cell in row], width)


async def elicit(state: Batch, runtime: Runtime[Context]) -> State:
    """Ask every model about every cell of the batch, k samples each in every language."""
    context = runtime.context
    if state["start"] == 0:
        await note(context, "elicit")
    await elicit_traces(context, context.asked[state["start"] : state["stop"]])
    return {}


async def measure(state: State, runtime: Runtime[Context]) -> State:
    """Score each cell, and measure how consistent its samples are."""
    context = runtime.context
    await enter(context, "measure")
    await asyncio.to_thread(_measure, context)
    await asyncio.to_thread(_scale, context)
    return {}


def _scale(context: Context) -> None:
    contrasts = results.contrasts(context.db, context.audit_id)
    results.save_scores(context.db, context.audit_id, logprob_scores(contrasts))


def _measure(context: Context) -> None:
    stored = results.scores(context.db, context.audit_id)
    old = {(s.model, s.cell): s for s in stored if s.method == Method.DIRECT}
    scores: list[CellScore] = []
    for start in range(0, len(context.cells), BATCH_CELLS):
        cells = context.cells[start : start + BATCH_CELLS]
        groups = _by_model_and_cell(results.traces(context.db, context.audit_id, cells))
        texts = {who: _texts(traces) for who, traces in groups.items()}
        evidence = {
            who: evidence_of(context.config.embedding.model, [t for asked in by.values() for t in asked])
            for who, by in texts.items()
        }
        fresh = {w: t for w, t in texts.items() if w not in old or old[w].evidence != evidence[w]}
        consistency = self_consistencies(fresh, context.encoder)
        for who, traces in groups.items():
            value = consistency[who] if who in fresh else old[who].self_consistency
            planned = max(context.config.least_samples_in(native_languages(who[1].country)), len(traces))
            scores.append(cell_score(*who, traces, planned, value, evidence[who]))
    results.save_scores(context.db, context.audit_id, scores)


def _texts(traces: Iterable[Trace]) -> dict[str, list[str]]:
    """By language: a model is consistent with itself among answers to the same words."""
    found: dict[str, list[str]] = {}
    for trace in traces:
        if trace.outcome is Outcome.OK and trace.text:
            found.setdefault(trace.language, []).append(trace.text)
    return found


def route_review(state: State, runtime: Runtime[Context]) -> list[Send] | Literal["detect"]:
    """One branch for each batch of cells; straight on when there is nothing to judge, or nobody."""
    if not runtime.context.config.probes.direct or not runtime.context.config.judge_models:
        return "detect"
    return [Send("review", batch) for batch in _batches(state["cells"])]


async def review(state: Batch, runtime: Runtime[Context]) -> State:
    """Put each trace of the batch before its panel: every judge but its author."""
    context = runtime.context
    if state["start"] == 0:
        await note(context, "review")
    cells = context.cells[state["start"] : state["stop"]]
    traces = await asyncio.to_thread(results.traces, context.db, context.audit_id, cells)
    judged, probe = for_review(context.config, traces), context.config.probes.review
    await review_traces(context, judged)
    if probe.guess:
        await guess_traces(context, judged)
    if probe.rewrite == "neutral":
        await restate_traces(context, judged)
    return {}


async def detect(state: State, runtime: Runtime[Context]) -> State:
    """Find the pairs of models that conflict on a cell."""
    context = runtime.context
    await enter(context, "detect")
    conflicts = await asyncio.to_thread(_detect, context)
    return {"conflicts": len(conflicts)}


def _detect(context: Context) -> list[Conflict]:
    scores = results.scores(context.db, context.audit_id)
    task = context.survey.task
    if task is not None and task.kind is not AnswerKind.SCORE:
        different = conflicts_of_answers(scores, [m.name for m in context.config.models], context.cells)
        results.replace_conflicts(context.db, context.audit_id, different)
        return different
    table = np.full((len(context.cells), len(context.config.models)), np.nan)
    row = {cell: i for i, cell in enumerate(context.cells)}
    column = {m.name: j for j, m in enumerate(context.config.models)}
    for score in scores:
        if score.score is not None and score.method == Method.DIRECT:
            table[row[score.cell], column[score.model]] = score.score
    threshold = threshold_of(context.config.conflicts.threshold, table)
    pairs = zip(context.cells, table, strict=True)
    found = [c for cell, values in pairs for c in conflicts_on(cell, list(column), values, threshold)]
    found = marked(found, [s for s in scores if s.method == Method.DIRECT])
    found = with_answers(found, scores) if task is not None else found
    if context.config.conflicts.methods:
        found += conflicts_of_methods(scores, threshold)
    results.replace_conflicts(context.db, context.audit_id, found)
    return found


async def resolve(state: State, runtime: Runtime[Context]) -> State:
    """Let the judges' verdicts on the two sides of each conflict vote."""
    context = runtime.context
    await enter(context, "resolve")
    chosen = await asyncio.to_thread(with_weights, context.db, context.audit_id, context.config)
    context = replace(context, config=chosen)
    if chosen.panel.adaptive:
        await _hear_on(context)
    conflicts = await asyncio.to_thread(_resolve, context)
    return {"open": sum(c.state is ConflictState.OPEN for c in conflicts)}


async def _hear_on(context: Context) -> None:
    found = await asyncio.to_thread(results.scored_conflicts, context.db, context.audit_id)
    speaks = await asyncio.to_thread(_speaks, context)
    for start in range(0, len(found), BATCH_CONFLICTS):
        conflicts = found[start : start + BATCH_CONFLICTS]
        cells = {c.cell for c in conflicts}
        traces = await asyncio.to_thread(results.traces, context.db, context.audit_id, cells)
        heard = [t for t in for_review(context.config, traces) if speaks(Place.of(t))]
        await hear_conflicts(context, conflicts, heard)
        context.raise_if_stopped()


def _resolve(context: Context) -> list[Conflict]:
    verdicts = results.verdicts(context.db, context.audit_id)
    speaks = _speaks(context)
    verdicts = [v for v in verdicts if speaks((v.model, v.cell, v.sample))]
    scored, seated = results.scored_conflicts(context.db, context.audit_id), None
    if context.config.panel.judges_per_trace is not None:
        read = (Place(*key) for key in results.readable(context.db, context.audit_id))
        seated = context.seating.seated(filter(speaks, reviewed(context.config, read)))
    conflicts = settled(context.config, scored, verdicts, seated)
    conflicts += results.method_conflicts(context.db, context.audit_id)
    results.replace_conflicts(context.db, context.audit_id, conflicts)
    return conflicts


def _speaks(context: Context) -> Callable[[tuple[str, Cell, int]], bool]:
    """Whose verdicts count in conflicts: all samples', but of a task whose answers are no scores see `speaking`."""
    task = context.survey.task
    if task is None or task.kind is AnswerKind.SCORE:
        return lambda key: True
    return speaking(results.scores(context.db, context.audit_id), tasks.answers(context.db, context.audit_id))


def route_person(state: State) -> Literal["person", "report"]:
    """To a person while anything is open."""
    return "person" if state["open"] else "report"


async def person(state: State, runtime: Runtime[Context]) -> State:
    """Wait for a person: the graph stops here, and goes on with how many conflicts people have left open."""
    await enter(runtime.context, audits.PERSON)
    return {"open": int(interrupt({"open": state["open"]}))}


async def report(state: State, runtime: Runtime[Context]) -> State:
    """Close the audit: from here on its report can be made from storage alone."""
    await enter(runtime.context, "report")
    await asyncio.to_thread(audits.set_stage, runtime.context.db, runtime.context.audit_id, audits.DONE)
    return {}


def _batches(cells: int, start: int = 0) -> list[Batch]:
    return [Batch(start=i, stop=min(i + BATCH_CELLS, cells)) for i in range(start, cells, BATCH_CELLS)]


def _by_model_and_cell(traces: Iterable[Trace]) -> dict[tuple[str, Cell], list[Trace]]:
    def who(trace: Trace) -> tuple[str, Cell]:
        return trace.model, trace.cell

    return {key: list(group) for key, group in groupby(sorted(traces, key=who), key=who)}
