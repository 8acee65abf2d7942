"""Log-probability stage: finding a supported measure for each model, and scoring the sentence pairs of its cells."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from langgraph.runtime import Runtime

from auditor.agents.call_runner import repeat_calls, run_calls
from auditor.agents.run_context import RunContext
from auditor.agents.sentence_pairs import SentencePair, build_sentence_pairs, parse_sentence_pair_score
from auditor.agents.stages import AuditState, Batch, branch_node
from auditor.config import ModelSection
from auditor.domain import Answer, Cell, LogprobMeasure, Outcome, SentencePairScore
from auditor.models.continuation import check_scoring_weights
from auditor.models.logprobs import supported_measures
from auditor.storage.records import save_records

STAGE = "logprobs"


class LogprobBatch(Batch):
    """A range of cells, [start, stop), and each model's measure by name; None if it supports no measure."""

    measures: dict[str, str | None]


async def find_measures(context: RunContext) -> dict[str, str | None]:
    """Find each model's measure by asking about the first cell; the calls are recorded like all others.

    Returns:
        Measure by model name; None if no measure works.
    """
    probe = context.config.probes.logprob
    if probe is None or not context.cells:
        return {}
    measure_by_model: dict[str, str | None] = {}
    for model in context.config.models:
        for measure in supported_measures(model, probe.method):
            if await _is_measurable(context, model, measure):
                measure_by_model[model.name] = measure.value
                break
        else:
            measure_by_model[model.name] = None
    return measure_by_model


async def _is_measurable(context: RunContext, model: ModelSection, measure: LogprobMeasure) -> bool:
    """Whether a measure works for a model: the answer to its first call is not `not_measurable`."""
    if measure is LogprobMeasure.CONTINUATION:
        check_scoring_weights(model)
        return True
    first_call = next(pair.call for pair in build_sentence_pairs(model, context.cells[0], measure) if pair.call)
    answers = await run_calls(context, STAGE, [first_call])
    answer = answers.get(first_call.key)
    return answer is None or answer.outcome is not Outcome.NOT_MEASURABLE


@branch_node
async def score_logprobs(state: LogprobBatch, runtime: Runtime[RunContext]) -> AuditState:
    """Score the two endings of every sentence on the cells of the batch, for every model, and store the results."""
    context = runtime.context
    measures = {name: LogprobMeasure(measure) if measure else None for name, measure in state["measures"].items()}
    async with context.batch_slot(STAGE):
        if not context.stop_event.is_set():
            await _score_cells(context, context.cells[state["start"] : state["stop"]], measures)
    return {}


async def _score_cells(
    context: RunContext, cells: Sequence[Cell], measure_by_model: Mapping[str, LogprobMeasure | None]
) -> None:
    """Score the sentences of some cells for every model."""
    probe = context.config.probes.logprob
    assert probe
    requests = [
        (pair, model.name)
        for model in context.config.models
        for cell in cells
        for pair in build_sentence_pairs(model, cell, measure_by_model[model.name])
    ]
    calls = [call for pair, _ in requests for call in pair.calls]
    answers = await run_calls(context, STAGE, calls)
    second_answers = await repeat_calls(
        context, STAGE, [(call, answers[call.key].outcome) for call in calls if call.key in answers]
    )
    pair_scores = [
        _merge_repeated(
            pair,
            second_answers,
            *(
                parse_sentence_pair_score(pair, model_name, measure_by_model[model_name], read, probe.min_mass)
                for read in (answers, answers | second_answers)
            ),
        )
        for pair, model_name in requests
    ]
    await asyncio.to_thread(
        save_records,
        context.db,
        context.audit_id,
        [pair_score for pair_score in pair_scores if pair_score],
    )


def _merge_repeated(
    pair: SentencePair,
    second_answers: Mapping[str, Answer],
    score: SentencePairScore | None,
    second: SentencePairScore | None,
) -> SentencePairScore | None:
    """The score of a pair, one or both of whose calls were repeated; None if an answer is missing.

    Args:
        second_answers: by key of the first call.
        score: from the first answers.
        second: from the second answers, and from the first ones of calls that were not repeated.
    """
    repeat_keys = [
        second_answers[call.key].key if call is not None and call.key in second_answers else None
        for call in (pair.call, pair.swapped_call)
    ]
    if score is None or second is None or not any(repeat_keys):
        return score
    merged = second if second.outcome is Outcome.OK else score
    repeat_key, swapped_repeat_key = repeat_keys
    return replace(merged, repeat_key=repeat_key, swapped_repeat_key=swapped_repeat_key, first_outcome=score.outcome)
