"""The stage that measures log-probabilities: how each model can be measured, and the comparisons of its cells."""

from __future__ import annotations

import asyncio
from typing import TypedDict

from langgraph.runtime import Runtime

from auditor.agents.audit_state import AuditState
from auditor.agents.call_runner import run_calls
from auditor.agents.run_context import RunContext
from auditor.agents.sentence_pairs import build_sentence_pairs, parse_sentence_pair_score
from auditor.config import ModelSection
from auditor.domain import LogprobMeasure, Outcome
from auditor.models.continuation import check_scoring_weights
from auditor.models.logprobs import supported_measures
from auditor.storage import results

STAGE = "logprobs"


class LogprobBatch(TypedDict):
    """Some cells [start, stop), and what each model's log-probabilities are read from; None where they cannot be."""

    start: int
    stop: int
    measures: dict[str, str | None]


async def find_measures(context: RunContext) -> dict[str, str | None]:
    """What each model's log-probabilities are read from, found by asking about the first cell; recorded as any call."""
    probe = context.config.probes.logprob
    if probe is None or not context.cells:
        return {}
    chosen: dict[str, str | None] = {}
    for model in context.config.models:
        for measure in supported_measures(model, probe.method):
            if await _is_measurable(context, model, measure):
                chosen[model.name] = measure.value
                break
        else:
            chosen[model.name] = None
    return chosen


async def _is_measurable(context: RunContext, model: ModelSection, measure: LogprobMeasure) -> bool:
    """Whether the first question was not answered by saying that this cannot be measured."""
    if measure is LogprobMeasure.CONTINUATION:
        check_scoring_weights(model)
        return True
    first = next(c.call for c in build_sentence_pairs(model, context.cells[0], measure) if c.call)
    answers = await run_calls(context, STAGE, [first])
    answer = answers.get(first.key)
    return answer is None or answer.outcome is not Outcome.NOT_MEASURABLE


async def score_logprobs(state: LogprobBatch, runtime: Runtime[RunContext]) -> AuditState:
    """Compare the two ends of every sentence on the cells of the batch, for every model."""
    context = runtime.context
    cells = context.cells[state["start"] : state["stop"]]
    chosen = {name: LogprobMeasure(m) if m else None for name, m in state["measures"].items()}
    asked = [
        (comparison, model.name)
        for model in context.config.models
        for cell in cells
        for comparison in build_sentence_pairs(model, cell, chosen[model.name])
    ]
    answers = await run_calls(context, STAGE, [call for comparison, _ in asked for call in comparison.calls])
    found = [parse_sentence_pair_score(comparison, name, chosen[name], answers) for comparison, name in asked]
    await asyncio.to_thread(results.save_sentence_pairs, context.db, context.audit_id, [c for c in found if c])
    return {}
