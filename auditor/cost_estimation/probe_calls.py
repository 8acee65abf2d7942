"""The calls that each probe of an audit plans, with examples, without sending any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from auditor.agents.call_builders import build_direct_call
from auditor.agents.localization import samples_per_cell
from auditor.agents.logic.item_sets import build_item_sets
from auditor.agents.logic.questions import build_comparison_call, plan_pairs, questions_about
from auditor.agents.run_context import OfflineClient, RunContext
from auditor.agents.sentence_pairs import build_sentence_pairs
from auditor.config import AuditConfig
from auditor.cost_estimation.call_counts import count_direct_calls
from auditor.cost_estimation.planned_calls import MAX_EXAMPLES, PlannedCalls, sample_evenly
from auditor.cost_estimation.preflight_calls import plan_preflight_calls
from auditor.cost_estimation.review_calls import plan_review_calls
from auditor.cost_estimation.semantic_calls import plan_semantic_calls
from auditor.domain import Call, Cell, Purpose, Survey
from auditor.models.logprobs import supported_measures
from auditor.reports.data.cost.forecast import ForecastRange

ESTIMATED_PROBES = ("direct", "review", "logprob", "logic", "semantic")


def plan_calls(
    config: AuditConfig, survey: Survey, cells: Sequence[Cell], needs_discovery: Callable[[Call], bool]
) -> Iterator[PlannedCalls]:
    """Yield the planned calls of all configured probes, one entry per model and stage.

    The probe `logic` over traces is left out, since its items depend on the answers.
    """
    if config.probes.direct and cells:
        yield from _plan_direct_calls(config, survey, cells)
        yield from plan_preflight_calls(config, survey, cells[0], needs_discovery)
        yield from plan_review_calls(config, survey, cells)
    if config.probes.logprob and cells:
        yield from _plan_logprob_calls(config, cells)
    if config.probes.logic and config.probes.logic.items != "traces":
        yield from _plan_logic_calls(config, survey, cells)
    if config.probes.semantic:
        yield from plan_semantic_calls(config, config.probes.semantic)


def find_first_call(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Call | None:
    """A call that a run would send first, as far as it does not depend on answers; None if it plans none."""
    planned_calls = plan_calls(config, survey, cells, lambda call: False)
    return next((calls.examples[0] for calls in planned_calls if calls.examples), None)


def describe_unestimated_probes(config: AuditConfig) -> Iterator[str]:
    """Yield a notice for each configured probe that is not estimated, since it would otherwise look free."""
    for name in type(config.probes).model_fields:
        if getattr(config.probes, name) is not None and name not in ESTIMATED_PROBES:
            yield f"The probe '{name}' is not in this estimate."
    if config.probes.logic and config.probes.logic.items == "traces":
        yield "The probe 'logic' over traces is not in this estimate: it depends on the answers."


def _plan_direct_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the direct questions to each model; the examples have one sample per language of a cell.

    Samples are numbered language by language, `direct.samples` of each, so every `direct.samples`-th is another one.
    """
    calls = count_direct_calls(config, cells)
    for model in config.models:
        examples = [
            build_direct_call(config, survey, model, cell, sample)
            for cell in sample_evenly(cells)
            for sample in range(0, samples_per_cell(config, cell.country), config.direct.samples)
        ]
        yield PlannedCalls(model, Purpose.DIRECT, calls, examples, config.direct.max_words)


def _plan_logprob_calls(config: AuditConfig, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the calls for log-probabilities of each model.

    Which measure a model supports is only known after a call. The expected number of calls is that of the first
    measure it may support; low and high are the fewest and the most calls over all these measures.
    """
    probe = config.probes.logprob
    assert probe is not None
    for model in config.models:
        calls_by_measure = [
            [call for sentence_pair in build_sentence_pairs(model, cells[0], measure) for call in sentence_pair.calls]
            for measure in supported_measures(model, probe.method)
        ]
        counts = [len({call.key for call in calls}) * len(cells) for calls in calls_by_measure] or [0]
        yield PlannedCalls(
            model,
            Purpose.LOGPROB,
            ForecastRange.from_bounds(min(counts), counts[0], max(counts)),
            calls_by_measure[0] if calls_by_measure else [],
            0,
        )


def _plan_logic_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the pairwise comparisons of items by each comparing model; all models are asked the same questions."""
    from auditor.agents.logic.graph import comparing_models  # loads langgraph (2 s)

    probe = config.probes.logic
    assert probe is not None
    item_sets = build_item_sets(RunContext(config, survey, 0, cells, None, OfflineClient(), None), probe)  # type: ignore[arg-type]
    pairs = plan_pairs(item_sets, probe, config.seed)
    questions = [question for pair in pairs for question in questions_about(pair, probe)]
    sampled_questions = questions[:: max(1, len(questions) // MAX_EXAMPLES)][:MAX_EXAMPLES]
    for judge in comparing_models(config):
        examples = [
            build_comparison_call(config, probe, judge, item_sets[question.set_index], question)
            for question in sampled_questions
        ]
        words = probe.max_words if probe.cot else 0
        yield PlannedCalls(judge, Purpose.LOGIC, ForecastRange.from_bounds(len(questions)), examples, words)
