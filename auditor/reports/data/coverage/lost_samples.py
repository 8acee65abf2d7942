"""Planned samples without a usable score: how many of each model and cell, why, and bounds of figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Method
from auditor.metrics.intervals.estimate import BoundedEstimate, Estimate
from auditor.metrics.intervals.missing_bounds import (
    ScoreRanges,
    bounded_statistic,
    extreme_scores,
    planned_score_ranges,
)
from auditor.metrics.people.alignment import BIAS, MAE, PEARSON, Statistic
from auditor.prompts.language_data import load_sentence_pairs
from auditor.reports.data.coverage.counts import (
    OK,
    CoverageUnit,
    StageCoverage,
    UnitOutcomeCount,
    UnitRepeatCount,
)
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import FloatArray, ReportSource, has_rescaled_scores
from auditor.reports.document import Column, CountShare
from auditor.storage.count_queries import RepeatCount


def measure_score_coverage(source: ReportSource) -> list[StageCoverage]:
    """Measure the coverage of scores, one entry per method."""
    methods = dict.fromkeys(method for method, _ in source.columns)
    is_imported_task = source.config is None and source.survey.task is not None and bool(source.trace_counts)
    if is_imported_task or (source.config and source.config.probes.direct):
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
    max_planned = _planned_samples(source, Method.DIRECT, guaranteed_only=False) or None
    repeats = list(map(_to_unit_repeats, source.trace_repeats))
    return StageCoverage.of_first_outcomes("direct", Method.DIRECT.value, planned, outcome_counts, repeats, max_planned)


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


def _planned_samples(source: ReportSource, method: str, *, guaranteed_only: bool = True) -> dict[CoverageUnit, int]:
    """Planned items of each model and cell with a survey score: samples in each language, or all sentence pairs.

    Samples that depend on earlier answers are counted only without `guaranteed_only`.
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
    samples_by_cell = source.config.samples_by_cell(source.survey, guaranteed_only=guaranteed_only)
    if source.config.direct.target_width is not None:  # cells that no model was asked about were skipped by design
        asked_cells = set(source.cells)
        samples_by_cell = {cell: n_samples for cell, n_samples in samples_by_cell.items() if cell in asked_cells}
    return {
        CoverageUnit(model.name, *cell): n_samples
        for model in source.config.models
        for cell, n_samples in samples_by_cell.items()
    }


MAX_LOST_SHARE = 0.05
"""Share of lost samples above which figures have worst-case bounds."""
MAX_LOSS_GAP = 0.05
"""Difference between two groups' shares of lost samples above which their difference has worst-case bounds."""
NO_RANGE_REASON = "a lost comparison of log-probabilities may have any value"
UNKNOWN_SIGN_REASON = "sign not known because of lost samples"


class LostSamples(ReportModel):
    """Planned samples without a usable score, of the cells with a score of people. Refusals and failures inside a cell
    count as well as cells without any score."""

    planned: int
    """Planned samples; comparisons, for log-probabilities."""
    lost: int
    share: float | None
    """Share lost / planned; null where none is planned."""

    @property
    def as_count(self) -> CountShare:
        """The number of lost samples out of the planned ones."""
        return CountShare(self.lost, self.planned)


class WorstCaseFigures(ReportModel):
    """Figures over all planned samples, between the bounds that hold whatever the lost samples would have scored."""

    pearson_r: BoundedEstimate
    mae: BoundedEstimate
    bias: BoundedEstimate


class WorstCaseDifferences(ReportModel):
    """Differences between two regions or series over all planned samples, between the bounds that hold whatever the
    lost samples would have scored."""

    pearson_r: BoundedEstimate
    mae: BoundedEstimate


LostSamplesShown = Annotated[LostSamples, Column("Samples lost", part="as_count", key="lost_samples")]
"""Lost samples whose share is a column of the row's table."""


@dataclass(frozen=True)
class SampleCounts:
    """Samples of one series of scores on each cell, shape (cells,); 0 where people have no score.

    Attributes:
        usable: samples with a usable score.
        planned: planned samples, at least as many as the usable ones.
        has_languages: whether the cell was asked in several languages, whose means have equal weights.
    """

    usable: FloatArray
    planned: FloatArray
    has_languages: NDArray[np.bool_]

    def count_lost(self, in_scope: NDArray[np.bool_] | None = None) -> LostSamples:
        """Count the planned and the lost samples of the cells in scope; of all cells by default."""
        scope = np.ones(len(self.planned), dtype=np.bool_) if in_scope is None else in_scope
        planned = int(self.planned[scope].sum())
        lost = planned - int(self.usable[scope].sum())
        return LostSamples(planned=planned, lost=lost, share=lost / planned if planned else None)

    def score_ranges(self, scores: FloatArray) -> ScoreRanges:
        """The range of each cell's mean over all planned samples, given its mean over the usable ones."""
        return planned_score_ranges(scores, self.usable, self.planned, has_groups=self.has_languages)


def bound_mae(ranges: ScoreRanges, truth: FloatArray, in_scope: NDArray[np.bool_]) -> tuple[float, float] | None:
    """The smallest and largest MAE over all planned samples of the cells in scope; None if none is planned.

    Args:
        ranges: `SampleCounts.score_ranges` of the model.
        truth: of people, shape (cells,).
    """
    extremes = extreme_scores(MAE, ScoreRanges(ranges.low[in_scope], ranges.high[in_scope]), truth[in_scope])
    if extremes is None:
        return None
    low, high = (float(np.nanmean(np.abs(extreme - truth[in_scope]))) for extreme in extremes)
    return low, high


def count_samples(source: ReportSource) -> list[SampleCounts]:
    """Count the samples of each series of scores, in the order of `source.columns`."""
    has_truth = ~np.isnan(source.survey_scores)
    has_languages = _find_multilingual_cells(source)
    planned_by_method, usable_by_method = {}, {}
    for stage in measure_score_coverage(source):
        planned_by_method[stage.method] = stage.planned_totals
        usable_by_method[stage.method] = stage.usable
    counts = []
    for column, (method, model) in enumerate(source.columns):
        usable, planned = (
            _align(source, model, by_unit.get(method, {})) for by_unit in (usable_by_method, planned_by_method)
        )
        usable = np.maximum(usable, ~np.isnan(source.score_matrix[column]))  # a score has at least one sample
        # A stopping rule may have asked for more samples than are certain.
        planned = np.maximum(planned, np.nan_to_num(source.column_values("n_planned", column)))
        counts.append(
            SampleCounts(
                np.where(has_truth, usable, 0.0), np.where(has_truth, np.maximum(planned, usable), 0.0), has_languages
            )
        )
    return counts


def _align(source: ReportSource, model: str, n_by_unit: Mapping[CoverageUnit, int]) -> FloatArray:
    """One model's counts in the order of the cells, shape (cells,)."""
    return np.array([n_by_unit.get(CoverageUnit(model, *cell), 0) for cell in source.cells], dtype=np.float64)


def _find_multilingual_cells(source: ReportSource) -> NDArray[np.bool_]:
    """Whether each cell's question was asked in several languages, shape (cells,)."""
    if source.config is None:
        return np.zeros(len(source.cells), dtype=np.bool_)
    multilingual = {
        country
        for country in source.countries
        if len(source.config.languages_in(source.survey.native.get(country, ()))) > 1
    }
    return np.array([cell.country in multilingual for cell in source.cells], dtype=np.bool_)


def has_large_loss(lost: LostSamples) -> bool:
    """Whether so many samples are lost that figures need worst-case bounds."""
    return (lost.share or 0.0) > MAX_LOST_SHARE


def loss_differs(first: LostSamples, second: LostSamples) -> bool:
    """Whether two groups, or models, have lost such different shares that their difference needs bounds."""
    return abs((first.share or 0.0) - (second.share or 0.0)) > MAX_LOSS_GAP


def has_unknown_sign(difference: BoundedEstimate) -> bool:
    """Whether lost samples leave open which of two sides is larger: the bounds include 0, or there are none.

    A difference without a value has no sign that could be doubted.
    """
    low, high = difference.bound_low, difference.bound_high
    return difference.value is not None and (low is None or high is None or low <= 0 <= high)


def bound_figures(
    source: ReportSource,
    column: int,
    counts: SampleCounts,
    in_scope: NDArray[np.bool_],
    values: Mapping[Statistic, float | None],
) -> WorstCaseFigures:
    """Bound r, MAE and bias of one series over the cells in scope, shape (cells,).

    Args:
        values: the figures over the cells with a score.
    """
    r, mae, bias = (
        _bound_figure(statistic, values[statistic], source, column, counts, in_scope)
        for statistic in (PEARSON, MAE, BIAS)
    )
    return WorstCaseFigures(pearson_r=r, mae=mae, bias=bias)


def _bound_figure(
    statistic: Statistic,
    value: float | None,
    source: ReportSource,
    column: int,
    counts: SampleCounts,
    in_scope: NDArray[np.bool_],
) -> BoundedEstimate:
    """Bound one figure; the arguments are those of `bound_figures`."""
    if has_rescaled_scores(source.columns[column][0]):  # a column is (method, model)
        return BoundedEstimate(value, int(in_scope.sum()), reason=NO_RANGE_REASON)
    ranges = counts.score_ranges(source.score_matrix[column])
    return bounded_statistic(
        statistic,
        value,
        ScoreRanges(ranges.low[in_scope], ranges.high[in_scope]),
        source.survey_scores[in_scope],
        source.cluster_countries(np.where(in_scope, source.survey_scores, np.nan), ranges.low)[in_scope],
        source.topic_index[in_scope],
    )


AnyEstimate = TypeVar("AnyEstimate", bound=Estimate)

CONSTANT_SERIES_REASONS = {
    "x constant": "the model gives every cell the same score",
    "y constant": "people’s score is the same in every cell",
    "x and y constant": "the scores of the model and of people are the same in every cell",
}
"""Plain text of a metric's `reason`, where x is the model and y the survey."""


def missing_score_reason(source: ReportSource, column: int) -> str | None:
    """Return the reason why a series has no score on any cell with a survey score; None where it has one.

    Args:
        column: index into `source.columns`, a pair of method and model.
    """
    method, model = source.columns[column]
    has_truth = ~np.isnan(source.survey_scores)
    if not has_truth.any():
        return "people were asked about none of the cells"
    if (~np.isnan(source.score_matrix[column]) & has_truth).any():
        return None
    if method == Method.LOGPROB:
        model_scores = [
            score for score in source.scores if (score.method, score.model) == (Method.LOGPROB.value, model)
        ]
        n_complete_cells = sum(score.raw is not None for score in model_scores)
        if n_complete_cells > 1:
            return "its log-probabilities differ equally on every cell, so they cannot be scaled to [-1, 1]"
        if n_complete_cells == 1:
            return "only one cell has all its comparisons, so it cannot be scaled to [-1, 1]"
        if not any(score.measure for score in model_scores):
            return "the model's log-probabilities cannot be measured"
        return "no cell has all its comparisons"
    if method == Method.DIRECT and source.config is not None:
        has_samples = any(count.model == model for count in source.trace_counts)
        return "no sample has a usable score" if has_samples else "no sample has been taken"
    return "no score is recorded"


def missing_r_reason(correlation: Estimate, score_reason: str | None = None) -> str | None:
    """Return the reason why a correlation with people, or its interval, is missing; None where both exist.

    Args:
        score_reason: why the model has no scores at all, from `missing_score_reason`.
    """
    if score_reason is not None and correlation.value is None:
        return score_reason
    return None if correlation.reason is None else CONSTANT_SERIES_REASONS.get(correlation.reason, correlation.reason)


def with_missing_reason(estimate: AnyEstimate, missing_reason: str | None) -> AnyEstimate:
    """Replace the reason of an estimate without a value, where a more specific reason is known."""
    return (
        estimate if missing_reason is None or estimate.value is not None else replace(estimate, reason=missing_reason)
    )


def replace_reason(estimate: AnyEstimate, labels: Mapping[str, str]) -> AnyEstimate:
    """The estimate with its reason in the words of `labels`, by the metric's reason; unchanged if it has no label."""
    return replace(estimate, reason=labels.get(estimate.reason or "", estimate.reason))
