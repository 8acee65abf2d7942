"""Planned samples without a usable score: how many there are, and the worst-case bounds of figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.cell_statistics import BIAS, MAE, PEARSON, Statistic
from auditor.metrics.estimate import BoundedEstimate
from auditor.metrics.missing_bounds import ScoreRanges, bounded_statistic, extreme_scores, planned_score_ranges
from auditor.reports.data.coverage.score_coverage import measure_score_coverage
from auditor.reports.data.coverage.stage_coverage import CoverageUnit
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.rescaled_scores import has_rescaled_scores
from auditor.reports.document import Column, CountShare

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

    def bound_mae_below(self, scores: FloatArray, truth: FloatArray, in_scope: NDArray[np.bool_]) -> float | None:
        """The smallest MAE over all planned samples of the cells in scope; None if none of them is planned.

        Args:
            scores, truth: of the model and of people, shape (cells,).
        """
        ranges = self.score_ranges(scores)
        extremes = extreme_scores(MAE, ScoreRanges(ranges.low[in_scope], ranges.high[in_scope]), truth[in_scope])
        return None if extremes is None else float(np.nanmean(np.abs(extremes[0] - truth[in_scope])))


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
