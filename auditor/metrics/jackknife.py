"""Intervals over other countries and topics for statistics of cells: the intervals that reports give.

A country, a topic and a cell are left out in turn; `auditor.metrics.jackknife_interval` makes the interval. Where the
labels of countries are `UnitLabels` of cultural zones, all countries of a zone are left out together, and no variance
of cells is subtracted: over few zones of unequal size it is too uncertain.
Correlations are on Fisher's z, MAE and RMSE on the logarithm. The schemes were chosen by simulation (docs/coverage.md).
The sampling error of the survey is included: it is part of the variation from cell to cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats, complete_cases, is_constant
from auditor.metrics._ranks import average_ranks
from auditor.metrics._two_way_table import TwoWayTable, UnitLabels as UnitLabels, build_two_way_table, select_labels
from auditor.metrics.cell_statistics import (
    BIAS,
    CONCORDANCE,
    MAE,
    PEARSON,
    RMSE,
    VARIANCE_RATIO,
    Statistic,
    TwoWayEstimate,
)
from auditor.metrics.difference_interval import recover_difference, recover_difference_with_p_value
from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife_interval import (
    FISHER_Z,
    IDENTITY,
    LOG,
    Transform,
    combine_variances,
    estimate_from_replicates,
    jackknife_interval,
    jackknife_variance,
)
from auditor.metrics.unit_replicates import leave_one_out_sums, recompute_without_units

STATISTIC_TRANSFORMS: Mapping[Statistic, Transform] = {
    PEARSON: FISHER_Z,
    CONCORDANCE: FISHER_Z,
    MAE: LOG,
    RMSE: LOG,
    VARIANCE_RATIO: LOG,
}
"""Transforms for the interval of one statistic; others are used as they are."""
THESE_COUNTRIES = "other topics like these, for the same countries"
RANK_DECIMALS = 9
"""Values are rounded to this many decimals before they are ranked: a rounding error must not break a tie."""


def crossed_jackknife(
    statistic: Statistic, scores: ArrayLike, truth: ArrayLike, countries: ArrayLike | UnitLabels, topics: ArrayLike
) -> TwoWayEstimate:
    """A statistic of one model's scores against human scores, with its 95% interval over other countries and topics.

    Args:
        statistic: PEARSON, MAE, RMSE, BIAS or a similar one.
        scores, truth: shape (n,), one value per cell; cells with a nan on either side are left out.
        countries, topics: shape (n,), labels of any kind; `UnitLabels` for zones of countries.

    Returns:
        The estimate, with the p-value of a true value of 0 for statistics other than MAE and RMSE. No interval, with a
        reason, for fewer than 5 countries or topics, or where the statistic is undefined with one of them left out.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    country, topic = (select_labels(labels, is_complete) for labels in (countries, topics))
    transform, moments = STATISTIC_TRANSFORMS.get(statistic, IDENTITY), statistic.moments(x, y)
    return jackknife_sums(moments, statistic.value, country, topic, transform, has_p_value=transform is not LOG)


def bias_of_these_countries(scores: ArrayLike, truth: ArrayLike, topics: ArrayLike) -> Estimate:
    """The mean of scores minus human scores, with its 95% interval over other topics, for the same countries.

    Args, Raises: as `crossed_jackknife`. No interval for fewer than 5 topics.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    if not len(x):
        return Estimate(None, 0, reason="no cell has all its values")
    moments = BIAS.moments(x, y)
    without_topic = BIAS.value(leave_one_out_sums(moments, select_labels(topics, is_complete)))
    estimate = estimate_from_replicates(float((x - y).mean()), len(x), {"topic": without_topic})
    return estimate if estimate.ci_low is None else replace(estimate, generalizes_to=THESE_COUNTRIES)


def jackknife_sums(
    moments: Floats,
    value: Callable[[Floats], Floats],
    countries: ArrayLike | UnitLabels,
    topics: ArrayLike,
    transform: Transform = IDENTITY,
    *,
    has_p_value: bool = False,
) -> TwoWayEstimate:
    """A figure that is a function of sums over cells, with its 95% interval over other countries and topics.

    Args:
        moments: shape (n, k), what is summed over cells; none of them nan.
        value: from sums, shape (replicates, k), to the figure, shape (replicates,), nan where undefined.
        countries, topics: shape (n,), labels of any kind.
        transform: the scale on which the interval is symmetric.
        has_p_value: whether a true value of 0 is tested.
    """
    table = build_two_way_table(countries, topics, np.ones(len(moments), dtype=np.bool_))
    figure, replicates = statistic_replicates(value, table.to_grid(moments), table)
    return two_way_estimate(figure, replicates, table, transform, has_p_value=has_p_value)


def spearman_jackknife(
    scores: ArrayLike, truth: ArrayLike, countries: ArrayLike | UnitLabels, topics: ArrayLike
) -> TwoWayEstimate:
    """Spearman's rank correlation with its interval over other countries and topics, on Fisher's z.

    Values are rounded to 9 decimals before they are ranked. Cells are not left out, since ranking anew for each takes
    long; that makes the interval wider, not shorter. Args, Returns, Raises: as `crossed_jackknife`.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    table = build_two_way_table(countries, topics, is_complete)
    x, y = np.round(x, RANK_DECIMALS), np.round(y, RANK_DECIMALS)
    replicates = {
        table.row_unit: _rank_correlations_without(x, y, table.row_index),
        "topic": _rank_correlations_without(x, y, table.column_index),
    }
    return two_way_estimate(_rank_correlation(x, y), replicates, table, FISHER_Z, has_p_value=True)


def gap_jackknife(
    statistic: Statistic,
    scores: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike | UnitLabels,
    topics: ArrayLike,
    group: ArrayLike,
) -> TwoWayEstimate:
    """The statistic over one group of countries minus that over the other, as `crossed_jackknife`.

    Countries are left out within their group; the degrees of freedom are those of the smaller group.

    Args:
        group: shape (n,), whether the cell's country is in the first group. The others as for `crossed_jackknife`.

    Raises:
        ValueError: as `crossed_jackknife`, or a country is in both groups.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    in_first_group = np.asarray(group, dtype=np.bool_)
    if in_first_group.shape != is_complete.shape:
        raise ValueError(f"group must have the shape {is_complete.shape}, but has {in_first_group.shape}")
    table = build_two_way_table(countries, topics, is_complete, (in_first_group, ~in_first_group))
    grid = table.to_grid(statistic.moments(x, y))
    # One grid per group of countries, with the other group's cells set to 0.
    grids = [np.zeros_like(grid) for _ in table.strata]
    for group_grid, members in zip(grids, table.strata, strict=True):
        group_grid[members] = grid[members]
    return subtract_replicates([statistic_replicates(statistic.value, grid, table) for grid in grids], table, statistic)


def paired_jackknife(
    statistic: Statistic,
    first: ArrayLike,
    second: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike | UnitLabels,
    topics: ArrayLike,
) -> TwoWayEstimate:
    """The statistic of one model minus that of another, over the cells that both have, with a two-sided p-value.

    Args:
        first, second: shape (n,), the scores of the two models. The others as for `crossed_jackknife`.
    """
    (a, b, y), is_complete = complete_cases(first, second, truth)
    table = build_two_way_table(countries, topics, is_complete)
    grids = [table.to_grid(statistic.moments(model_scores, y)) for model_scores in (a, b)]
    return subtract_replicates([statistic_replicates(statistic.value, grid, table) for grid in grids], table, statistic)


def statistic_replicates(
    value: Callable[[Floats], Floats], grid: Floats, table: TwoWayTable
) -> tuple[float, dict[str, list[Floats]]]:
    """A figure of a grid of sums, and its values without each country, topic and cell; countries and cells by stratum.

    The keys are `row_unit` of the table, `topic` and `cell`; zones have no cells.

    Args:
        value: from sums to the figure, as in `jackknife_sums`.
    """
    total = grid.sum((0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        by_country, by_topic, by_cell = (
            value(total - left_out)
            for left_out in (grid.sum(1), grid.sum(0), grid[table.row_index, table.column_index])
        )
        figure = float(value(total[None])[0]) if len(table.row_index) else np.nan
    replicates = {table.row_unit: [by_country[members] for members in table.strata], "topic": [by_topic]}
    if table.row_unit == "country":
        replicates["cell"] = [by_cell[np.isin(table.row_index, members)] for members in table.strata]
    return figure, replicates


def subtract_replicates(
    sides: Sequence[tuple[float, dict[str, list[Floats]]]], table: TwoWayTable, statistic: Statistic = PEARSON
) -> TwoWayEstimate:
    """The first of two figures minus the second, from `statistic_replicates`; correlations are compared on Fisher's z.

    Args:
        statistic: what both figures are, which says the scale on which they are compared.
    """
    (first, first_replicates), (second, second_replicates) = sides
    is_on_z = STATISTIC_TRANSFORMS.get(statistic) is FISHER_Z and abs(first) < 1 and abs(second) < 1
    scale = FISHER_Z if is_on_z else IDENTITY
    with np.errstate(divide="ignore", invalid="ignore"):
        transformed = [
            {unit: [scale.forward(array) for array in arrays] for unit, arrays in replicates.items()}
            for replicates in (first_replicates, second_replicates)
        ]
        values = [float(scale.forward(np.array([value]))[0]) for value in (first, second)]
        differences = {
            unit: [a - b for a, b in zip(arrays, transformed[1][unit], strict=True)]
            for unit, arrays in transformed[0].items()
        }
    estimate = two_way_estimate(first - second, differences, table, IDENTITY, values[0] - values[1], has_p_value=True)
    interval = estimate.interval
    if scale is IDENTITY or interval is None or interval.std_error is None:
        return estimate
    variances = [
        float(
            combine_variances(
                [jackknife_variance(replicates[unit]) for unit in (table.row_unit, "topic")],
                jackknife_variance(replicates.get("cell", ())),
            )
        )
        for replicates in transformed
    ]
    covariance = (variances[0] + variances[1] - interval.std_error**2) / 2
    std_errors = (variances[0] ** 0.5, variances[1] ** 0.5)
    low, high, p_value = recover_difference_with_p_value(
        scale, (values[0], values[1]), std_errors, covariance, interval.df
    )

    def compute_ends(quantile: float) -> tuple[float, float]:
        ends = recover_difference(scale, values[0], values[1], std_errors, covariance, quantile)
        return float(ends[0]), float(ends[1])

    interval = replace(interval, ends_at=compute_ends)
    return replace(estimate, ci_low=low, ci_high=high, p_value=p_value, interval=interval)


def two_way_estimate(
    value: float,
    replicates: Mapping[str, Sequence[Floats] | Floats],
    table: TwoWayTable,
    transform: Transform,
    jackknifed_value: float | None = None,
    *,
    has_p_value: bool,
) -> TwoWayEstimate:
    """The estimate with its interval, or the reason for none.

    Args:
        replicates: the statistic, or the difference, without each country, each topic and, optionally, each cell.
        jackknifed_value: the figure over all cells on the scale of the replicates, where that is not `value`.
    """
    n = len(table.row_index)
    if not n:
        return TwoWayEstimate(None, 0, reason="no cell has all its values")
    if np.isnan(value):
        return TwoWayEstimate(None, n, reason="too few cells, or no variation among them")
    interval = jackknife_interval(
        value if jackknifed_value is None else jackknifed_value,
        {unit: replicates[unit] for unit in (table.row_unit, "topic")},
        transform,
        cells=replicates.get("cell"),
    )
    p_value = interval.p_value if has_p_value else None
    resampled = () if interval.low is None else (table.row_unit, "topic")
    return TwoWayEstimate(
        value, n, interval.low, interval.high, interval.reason, resampled, p_value=p_value, interval=interval
    )


def _rank_correlation(x: Floats, y: Floats) -> float:
    """Spearman's rank correlation; nan for fewer than 3 values or a constant side."""
    if len(x) < 3 or is_constant(x) or is_constant(y):
        return float("nan")
    return float(np.clip(np.corrcoef(average_ranks(x), average_ranks(y))[0, 1], -1.0, 1.0))


def _rank_correlations_without(x: Floats, y: Floats, unit_index: NDArray[np.intp]) -> Floats:
    """Spearman's rank correlation without each unit, shape (units,)."""
    return recompute_without_units(lambda included: _rank_correlation(x[included], y[included]), unit_index)
