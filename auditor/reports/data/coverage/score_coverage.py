"""Coverage of scores: planned and recorded samples of each model and cell, by method."""

from __future__ import annotations

from collections import Counter

from auditor.domain import Method
from auditor.prompts.sentence_pairs import load_sentence_pairs
from auditor.reports.data.coverage.stage_coverage import (
    OK,
    CoverageUnit,
    StageCoverage,
    UnitOutcomeCount,
    UnitRepeatCount,
)
from auditor.reports.data.report_source import ReportSource
from auditor.storage.count_queries import RepeatCount


def measure_score_coverage(source: ReportSource) -> list[StageCoverage]:
    """Measure the coverage of scores, one entry per method."""
    methods = dict.fromkeys(method for method, _ in source.columns)
    if source.config and source.config.probes.direct:
        methods = {Method.DIRECT.value: None} | methods
    if source.config and source.config.probes.logprob:
        methods |= {Method.LOGPROB.value: None}
    return [_score_coverage(source, method) for method in methods]


def _score_coverage(source: ReportSource, method: str) -> StageCoverage:
    """Measure the coverage of one method: from traces, from comparisons of sentence pairs, or from imported scores."""
    if method == Method.DIRECT and source.trace_counts:
        return _trace_coverage(source)
    if method == Method.LOGPROB and source.sentence_pair_counts:
        outcome_counts = [
            UnitOutcomeCount(CoverageUnit(count.model, count.country, count.topic), count.outcome, count.n)
            for count in source.sentence_pair_counts
        ]
        planned = _planned_samples(source, method)
        repeats = list(map(_to_unit_repeats, source.sentence_pair_repeats))
        return StageCoverage.of_first_outcomes("direct", method, planned, outcome_counts, repeats)
    return _imported_score_coverage(source, method)


def _trace_coverage(source: ReportSource) -> StageCoverage:
    """Measure the coverage of direct samples; without a configuration, the recorded ones were planned and no others."""
    outcome_counts = [
        UnitOutcomeCount(CoverageUnit(count.model, count.country, count.topic), count.outcome, count.n)
        for count in source.trace_counts
    ]
    n_recorded = Counter[CoverageUnit]()
    for count in outcome_counts:
        n_recorded[count.unit] += count.n
    planned = _planned_samples(source, Method.DIRECT) or dict(n_recorded)
    repeats = list(map(_to_unit_repeats, source.trace_repeats))
    return StageCoverage.of_first_outcomes("direct", Method.DIRECT.value, planned, outcome_counts, repeats)


def _to_unit_repeats(count: RepeatCount) -> UnitRepeatCount:
    """Convert a count of a cell's questions that were asked again."""
    unit = CoverageUnit(count.model, count.country, count.topic)
    return UnitRepeatCount(unit, count.first_outcome, count.n, count.answered)


def _imported_score_coverage(source: ReportSource, method: str) -> StageCoverage:
    """Coverage of imported scores: each row of the file was planned, and one with an empty score was lost.

    What the file does not mention was not planned: an import of some of the survey's cells is an audit of these cells.
    """
    unit_scores = [(CoverageUnit(score.model, *score.cell), score) for score in source.scores if score.method == method]
    planned = _planned_samples(source, method) if method in tuple(Method) else {}
    return StageCoverage(
        stage="direct",
        method=method,
        planned=planned or {unit: score.n_planned for unit, score in unit_scores},
        recorded=[UnitOutcomeCount(unit, OK, score.n_ok) for unit, score in unit_scores],
    )


def _planned_samples(source: ReportSource, method: str) -> dict[CoverageUnit, int]:
    """Planned items of each model and cell with a survey score: samples in each language, or all sentence pairs.

    Samples that depend on earlier answers count as planned only once they are asked for.
    """
    if source.config is None:
        return {}
    if method == Method.LOGPROB:
        n_samples = load_sentence_pairs().pairs_per_cell
        return {
            CoverageUnit(model.name, *cell): n_samples
            for model in source.config.models
            for cell in source.survey.asked_cells
        }
    samples_by_cell = source.config.samples_by_cell(source.survey, guaranteed_only=True)
    if source.config.direct.target_width is not None:  # cells that no model was asked about were skipped by design
        asked_cells = set(source.cells)
        samples_by_cell = {cell: n_samples for cell, n_samples in samples_by_cell.items() if cell in asked_cells}
    return {
        CoverageUnit(model.name, *cell): n_samples
        for model in source.config.models
        for cell, n_samples in samples_by_cell.items()
    }
