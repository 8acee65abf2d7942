"""The calls that each probe of an audit plans, with examples, without sending any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from auditor.agents.call_builders import build_direct_call
from auditor.agents.localization import first_samples
from auditor.agents.probe_questions import build_probe_call, load_question
from auditor.agents.sentence_pairs import build_sentence_pairs
from auditor.config import AuditConfig, ModelSection
from auditor.config.installed_probes import load_probe
from auditor.config.probe_section import BuiltInProbe
from auditor.cost_estimation.call_counts import count_direct_calls
from auditor.cost_estimation.planned_calls import PlannedCalls, sample_evenly
from auditor.cost_estimation.preflight_calls import plan_preflight_calls
from auditor.cost_estimation.review_calls import plan_review_calls
from auditor.domain import Call, Cell, LogprobMeasure, Outcome, Purpose, Survey, Trace
from auditor.models.logprobs import supported_measures
from auditor.probe_interface import ProbeAudit, Unit
from auditor.prompts.preflight import load_stand_in_trace
from auditor.reports.data.cost.forecast import ForecastRange

EXPECTED_WORDS = 30
"""Words of an answer to a question of another package's probe, as long as none is recorded."""
MAX_LOGPROB_CELLS = 5
"""Cells whose calls for log-probabilities are built."""


def plan_calls(
    config: AuditConfig, survey: Survey, cells: Sequence[Cell], needs_discovery: Callable[[Call], bool]
) -> Iterator[PlannedCalls]:
    """Yield the planned calls of all configured probes that can be estimated, one entry per model and stage."""
    if config.probes.direct and cells:
        yield from _plan_direct_calls(config, survey, cells)
        yield from plan_preflight_calls(config, survey, cells[0], needs_discovery)
        yield from plan_review_calls(config, survey, cells)
    if config.probes.logprob and cells:
        yield from _plan_logprob_calls(config, cells)
    for name in config.probes.with_stage:
        yield from plan_probe_calls(config, survey, name, cells)


def plan_probe_calls(
    config: AuditConfig, survey: Survey, name: str, cells: Sequence[Cell] = ()
) -> Iterator[PlannedCalls]:
    """Yield the calls of a probe with a stage of its own, of each model or judge that it asks.

    For a probe below the public interface, each planned answer to a direct question has the text of a stand-in.

    Args:
        cells: what a built-in probe with a plan of its own is asked about.
    """
    probe = load_probe(name)
    if isinstance(probe.probe, BuiltInProbe):
        settings = config.probes.stages[name]
        if settings.unestimated_reason is None:
            yield from probe.probe.plan_calls(ProbeAudit(settings, config, survey), cells)
        return
    samples = config.samples_by_cell(survey)
    stand_in = load_stand_in_trace().text

    def list_traces(model: str, cells: Iterable[Unit] | None = None) -> list[Trace]:
        """The planned answers of a model."""
        chosen = samples.keys() if cells is None else set(cells)
        return [
            Trace(model, cell, sample, Outcome.OK, 0.0, stand_in)
            for cell, n in samples.items()
            if cell in chosen
            for sample in range(n)
        ]

    audit = ProbeAudit(
        config.probes.plugins[name], config, survey, list_traces, load_question=partial(load_question, config, survey)
    )
    units = probe.plan(audit)
    for respondent in probe.respondents(audit):
        model = config.model(respondent)
        questions = probe.ask(audit, respondent, units)
        low, high = probe.count_calls(audit, respondent)
        examples = [build_probe_call(config, probe, model, question) for question in sample_evenly(questions)]
        yield PlannedCalls(model, probe.purpose, ForecastRange.from_bounds(low, high, high), examples, EXPECTED_WORDS)


def find_first_call(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Call | None:
    """A call that a run would send first, as far as it does not depend on answers; None if it plans none."""
    planned_calls = plan_calls(config, survey, cells, lambda call: False)
    return next((calls.examples[0] for calls in planned_calls if calls.examples), None)


def describe_unestimated_probes(config: AuditConfig) -> Iterator[str]:
    """Yield a notice for each configured probe that is not estimated, since it would otherwise look free."""
    for name, probe in config.probes.stages.items():
        if probe.unestimated_reason is not None:
            yield f"The probe '{name}' {probe.unestimated_reason}."


def _plan_direct_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the direct questions to each model; the examples have one sample per language of a cell."""
    calls = count_direct_calls(config, cells)
    for model in config.models:
        examples = [
            build_direct_call(config, survey, model, cell, sample)
            for cell in sample_evenly(cells)
            for sample in first_samples(config, cell.country)
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
        measures = list(supported_measures(model, probe.method))
        calls_by_measure = [_list_logprob_calls(model, cells[:1], measure) for measure in measures]
        counts = [len({call.key for call in calls}) * len(cells) for calls in calls_by_measure] or [0]
        yield PlannedCalls(
            model,
            Purpose.LOGPROB,
            ForecastRange.from_bounds(min(counts), counts[0], max(counts)),
            _list_logprob_calls(model, sample_evenly(cells, MAX_LOGPROB_CELLS), measures[0]) if measures else [],
            0,
        )


def _list_logprob_calls(model: ModelSection, cells: Sequence[Cell], measure: LogprobMeasure) -> list[Call]:
    """The calls for the log-probabilities of a model on cells."""
    return [call for cell in cells for pair in build_sentence_pairs(model, cell, measure) for call in pair.calls]
