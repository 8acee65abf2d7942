"""Agreement with people by topic and country, and whether a model is further from people there than elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from auditor.metrics._complete_cases import complete_cases
from auditor.metrics.cell_statistics import BIAS, MAE, PEARSON, Statistic
from auditor.metrics.confidence import bonferroni_level
from auditor.metrics.correlation import pearson
from auditor.metrics.estimate import Estimate, Tested
from auditor.metrics.jackknife import STATISTIC_TRANSFORMS, UnitLabels
from auditor.metrics.jackknife_interval import IDENTITY, estimate_from_replicates
from auditor.metrics.place_errors import compare_place_errors
from auditor.metrics.unit_replicates import leave_one_out_sums
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.coverage.lost_samples import SampleCounts, count_samples
from auditor.reports.data.coverage.missing_scores import missing_r_reason, missing_score_reason, with_missing_reason
from auditor.reports.data.measurement_schema import (
    GroupErrorRow,
)
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.rescaled_scores import RESCALED_SCORES_REASON, has_rescaled_scores

NO_RATIO = Tested(None, 0, reason="there is no mean absolute error")


def compute_topic_errors(source: ReportSource) -> list[GroupErrorRow]:
    """Compute MAE and bias of each model on each topic, over countries."""
    rows = _build_place_rows(source, source.topics, source.topic_index, "country")
    return adjust_rows(rows, "mae_ratio", "errors on topics compared with a model’s other topics")


def compute_country_errors(source: ReportSource) -> list[GroupErrorRow]:
    """Compute MAE and bias of each model in each country, over topics."""
    rows = _build_place_rows(source, source.countries, source.country_index, "topic")
    return adjust_rows(rows, "mae_ratio", "errors in countries compared with a model’s other countries")


def _build_place_rows(
    source: ReportSource, place_names: Sequence[str], place_index: NDArray[np.intp], unit: str
) -> list[GroupErrorRow]:
    """Build one row per place and series.

    Places are countries or topics; `place_index` holds the position in `place_names` of each cell, shape (cells,).
    `unit` names the other side, over which tests are; intervals over countries cluster them by zone.
    """
    if not source.columns:  # a task
        return []
    samples = count_samples(source)
    has_cell = ~np.isnan(source.score_matrix) & ~np.isnan(source.survey_scores)  # shape (series, cells)
    n_compared = [len(np.unique(place_index[mask])) for mask in has_cell]
    unit_index = source.topic_index if unit == "topic" else source.country_index
    ratios = [
        {}
        if has_rescaled_scores(method)
        else compare_place_errors(source.score_matrix[column], source.survey_scores, place_index, unit_index, unit)
        for column, (method, _) in enumerate(source.columns)
    ]
    return [
        _build_place_row(
            source,
            column,
            samples[column],
            name,
            place_index == place,
            n_compared[column],
            ratios[column].get(place, NO_RATIO),
        )
        for place, name in enumerate(place_names)
        for column in range(len(source.columns))
    ]


def _build_place_row(
    source: ReportSource,
    column: int,
    samples: SampleCounts,
    name: str,
    in_place: NDArray[np.bool_],
    n_compared: int,
    mae_ratio: Tested,
) -> GroupErrorRow:
    """Compute MAE, bias and r of one series over the cells of one country or topic.

    Args:
        samples: numbers of samples of the series.
        in_place: whether each cell is in the place, shape (cells,).
        n_compared: number of places for which the simultaneous interval holds.
        mae_ratio: of the error to those of other places.
    """
    method, model = source.columns[column]
    scores, truth = source.score_matrix[column, in_place], source.survey_scores[in_place]
    (x, y), is_complete = complete_cases(scores, truth)
    missing_reason = missing_score_reason(source, column)
    clusters = UnitLabels(source.topic_index[in_place][is_complete], "topic")
    if len(np.unique(source.topic_index[in_place])) == 1:  # one topic, over countries
        by_cell = source.cluster_countries(
            np.where(in_place, source.score_matrix[column], np.nan), source.survey_scores
        )
        clusters = by_cell[in_place][is_complete]

    r = pearson(x, y)

    def estimate_error(statistic: Statistic, n_comparisons: int = 1) -> Estimate:
        if has_rescaled_scores(method):
            error = Estimate(None, len(x), reason=RESCALED_SCORES_REASON)
        else:
            error = estimate_over_cells(statistic, x, y, clusters, n_comparisons)
        return with_missing_reason(error, missing_reason)

    return GroupErrorRow(
        name=name,
        model=model,
        method=method,
        n=len(x),
        n_dropped=len(scores) - len(x),
        mae=estimate_error(MAE),
        mae_simultaneous=estimate_error(MAE, max(1, n_compared)),
        mae_ratio=mae_ratio,
        bias=estimate_error(BIAS),
        pearson_r=with_missing_reason(
            replace(estimate_over_cells(PEARSON, x, y, clusters), value=r.value), missing_r_reason(r, missing_reason)
        ),
        lost_samples=samples.count_lost(in_place),
        mae_bound_low=samples.bound_mae_below(source.score_matrix[column], source.survey_scores, in_place)
        if not has_rescaled_scores(method)
        else None,
    )


def estimate_over_cells(
    statistic: Statistic, scores: FloatArray, truth: FloatArray, clusters: UnitLabels | str, n_comparisons: int = 1
) -> Estimate:
    """A statistic over the cells of one place.

    Args:
        clusters: the unit of each cell, such as its topic or cultural zone; or the name of such a unit, if each cell
            has one of its own.
        n_comparisons: number of estimates for which the intervals hold together (Bonferroni).
    """
    if not len(scores):
        return Estimate(None, 0, reason="no pairs")
    units = UnitLabels(np.arange(len(scores)), clusters) if isinstance(clusters, str) else clusters
    moments = statistic.moments(scores, truth)
    total = moments.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic.value(total[None])[0])
        without_each = statistic.value(leave_one_out_sums(moments, units))
    if np.isnan(value):
        return Estimate(None, len(scores), reason="too few cells, or no variation among them")
    transform = STATISTIC_TRANSFORMS.get(statistic, IDENTITY)
    return estimate_from_replicates(
        value, len(scores), {units.unit: without_each}, transform, confidence_level=bonferroni_level(n_comparisons)
    )
