"""Intervals over other countries and topics for statistics of tables of cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from auditor.metrics.intervals.estimate import Estimate, Floats, complete_cases, is_constant
from auditor.metrics.intervals.jackknife_interval import (
    FISHER_Z,
    IDENTITY,
    LOG,
    MIN_UNITS,
    Transform,
    combine_variances,
    estimate_from_replicates,
    jackknife_interval,
    jackknife_variance,
    leave_one_out_sums,
    number_labels,
    recompute_without_units,
)
from auditor.metrics.intervals.paired import recover_difference, recover_difference_with_p_value
from auditor.metrics.intervals.special_functions import average_ranks
from auditor.metrics.people.alignment import (
    BIAS,
    CONCORDANCE,
    MAE,
    PEARSON,
    RMSE,
    VARIANCE_RATIO,
    Statistic,
    TwoWayEstimate,
)


@dataclass(frozen=True, slots=True, eq=False)
class UnitLabels:
    """Labels of the units that the cells belong to, with the name of that kind of unit.

    Functions of `auditor.metrics` take them in the place of countries. Plain labels are those of countries.

    Attributes:
        labels: shape (n,), of any kind.
        unit: a key of `intervals.estimate.PLURAL_BY_UNIT`: `country`, or `zone` for cultural zones of countries.
    """

    labels: NDArray[np.generic]
    unit: str = "country"

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[np.generic]:
        """The labels alone."""
        return np.asarray(self.labels, dtype=dtype)

    def __getitem__(self, selection: NDArray[np.bool_]) -> UnitLabels:
        """The labels of some of the cells."""
        return UnitLabels(self.labels[selection], self.unit)


def select_labels(labels: ArrayLike | UnitLabels, included: NDArray[np.bool_]) -> NDArray[np.generic] | UnitLabels:
    """The labels of the included cells.

    Raises:
        ValueError: there is not one label a cell.
    """
    values = labels if isinstance(labels, UnitLabels) else np.asarray(labels)
    if np.shape(values) != included.shape:
        raise ValueError(f"countries and topics must have the shape {included.shape}, as the scores have")
    return values[included]


@dataclass(frozen=True, slots=True)
class TwoWayTable:
    """Positions of the cells in a table of countries (rows) and topics (columns).

    Attributes:
        row_index, column_index: shape (n,), the country and the topic of each cell.
        row_unit: what the rows are: `country`, or `zone` where countries are clustered by cultural zone.
    """

    row_index: NDArray[np.intp]
    column_index: NDArray[np.intp]
    strata: tuple[NDArray[np.intp], ...]
    """Row numbers of the countries in each stratum (group of countries that are resampled among themselves).

    There is one array per stratum; every country is in one.
    """
    n_topics: int
    row_unit: str = "country"

    @property
    def n_countries(self) -> int:
        """Number of countries in all strata."""
        return sum(map(len, self.strata))

    def to_grid(self, moments: Floats) -> Floats:
        """Lay out the cells' moments, shape (n, k), as (countries, topics, k); cells that do not exist are 0.

        Moments are the k numbers per cell whose sums over cells determine a statistic (see `Statistic.moments`).
        """
        grid = np.zeros((self.n_countries, self.n_topics, moments.shape[1]))
        np.add.at(grid, (self.row_index, self.column_index), moments)
        return grid


def build_two_way_table(
    countries: ArrayLike | UnitLabels,
    topics: ArrayLike,
    included: NDArray[np.bool_],
    strata_masks: Sequence[NDArray[np.bool_]] = (),
) -> TwoWayTable:
    """Build the table of the included cells, with countries and topics numbered in sorted order.

    Args:
        countries, topics: shape (n,), labels of any kind; `UnitLabels` say what the rows are.
        included: shape (n,), the cells to use.
        strata_masks: one mask per group of countries, shape (n,), of its cells; together all included cells are in
            one. Without masks all countries are one stratum.

    Raises:
        ValueError: shapes differ, or a country is in two groups.
    """
    country_labels = np.asarray(select_labels(countries, included))
    country_index, topic_index = number_labels(country_labels), number_labels(select_labels(topics, included))
    n_countries, n_topics = (int(index.max(initial=-1)) + 1 for index in (country_index, topic_index))
    unit = countries.unit if isinstance(countries, UnitLabels) else "country"
    if not strata_masks:
        return TwoWayTable(country_index, topic_index, (np.arange(n_countries),), n_topics, unit)
    strata = tuple(np.unique(country_index[mask[included]]) for mask in strata_masks)
    members, n_strata = np.unique(np.concatenate(strata), return_counts=True)
    if (n_strata > 1).any():
        in_both = country_labels[country_index == members[n_strata > 1][0]][0]
        raise ValueError(f"a country must be in one group only, but {in_both} is in both")
    return TwoWayTable(country_index, topic_index, strata, n_topics, unit)


STATISTIC_TRANSFORMS: Mapping[Statistic, Transform] = {
    PEARSON: FISHER_Z,
    CONCORDANCE: FISHER_Z,
    MAE: LOG,
    RMSE: LOG,
    VARIANCE_RATIO: LOG,
}
"""Transforms for the interval of one statistic; others are used as they are."""
DIFFERENCE_TRANSFORMS: Mapping[Statistic, Transform] = {PEARSON: FISHER_Z, CONCORDANCE: FISHER_Z}
"""Scales on which two statistics are compared, unless a caller names one; others are compared as they are."""
STATISTIC_BOUNDS: Mapping[Statistic, tuple[float, float]] = {MAE: (0.0, 2.0), RMSE: (0.0, 2.0), BIAS: (-2.0, 2.0)}
"""Smallest and largest possible values, since scores are from -1 to +1; intervals end there."""
THESE_COUNTRIES = "other topics like these, for the same countries"
RANK_DECIMALS = 9
"""Values are rounded to this many decimals before they are ranked: a rounding error must not break a tie."""


def clip_to_bounds(estimate: TwoWayEstimate, statistic: Statistic, *, is_difference: bool = False) -> TwoWayEstimate:
    """The estimate of a statistic, or of a difference of two, with an interval within `STATISTIC_BOUNDS`."""
    if statistic not in STATISTIC_BOUNDS or estimate.ci_low is None or estimate.ci_high is None:
        return estimate
    low, high = STATISTIC_BOUNDS[statistic]
    if is_difference:
        low, high = low - high, high - low
    return replace(estimate, ci_low=max(low, estimate.ci_low), ci_high=min(high, estimate.ci_high))


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
    estimate = jackknife_sums(moments, statistic.value, country, topic, transform, has_p_value=transform is not LOG)
    return clip_to_bounds(estimate, statistic)


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
    sides = [statistic_replicates(statistic.value, grid, table) for grid in grids]
    return subtract_replicates(sides, table, DIFFERENCE_TRANSFORMS.get(statistic, IDENTITY))


def paired_jackknife(
    statistic: Statistic,
    first: ArrayLike,
    second: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike | UnitLabels,
    topics: ArrayLike,
    scale: Transform | None = None,
) -> TwoWayEstimate:
    """The statistic of one model minus that of another, over the cells that both have, with a two-sided p-value.

    Args:
        first, second: shape (n,), the scores of the two models. The others as for `crossed_jackknife`.
        scale: on which the two are compared; None: that of `DIFFERENCE_TRANSFORMS`. `LOG` for errors of very different
            size, whose standard errors differ as much.
    """
    (a, b, y), is_complete = complete_cases(first, second, truth)
    table = build_two_way_table(countries, topics, is_complete)
    grids = [table.to_grid(statistic.moments(model_scores, y)) for model_scores in (a, b)]
    sides = [statistic_replicates(statistic.value, grid, table) for grid in grids]
    difference = subtract_replicates(sides, table, scale or DIFFERENCE_TRANSFORMS.get(statistic, IDENTITY))
    return clip_to_bounds(difference, statistic, is_difference=True)


def statistic_replicates(
    value: Callable[[Floats], Floats], grid: Floats, table: TwoWayTable
) -> tuple[float, dict[str, list[Floats]]]:
    """A figure of a grid of sums, and its values without each country, topic and cell; countries and cells by stratum.

    The keys are `row_unit` of the table, `topic` and `cell`; zones have no cells.

    Args:
        value: from sums to the figure, as in `jackknife_sums`.
    """
    return replicate_statistics(lambda sums: [value(sums)], grid, table)[0]


def replicate_statistics(
    values: Callable[[Floats], Sequence[Floats]], grid: Floats, table: TwoWayTable
) -> list[tuple[float, dict[str, list[Floats]]]]:
    """What `statistic_replicates` returns, for each of several figures that are computed together."""
    total = grid.sum((0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        without_units = zip(
            *(
                values(total - left_out)
                for left_out in (grid.sum(1), grid.sum(0), grid[table.row_index, table.column_index])
            ),
            strict=True,
        )
        figures = [float(figure[0]) if len(table.row_index) else np.nan for figure in values(total[None])]
    return [
        (figure, _group_replicates(table, *replicates))
        for figure, replicates in zip(figures, without_units, strict=True)
    ]


def _group_replicates(
    table: TwoWayTable, by_country: Floats, by_topic: Floats, by_cell: Floats
) -> dict[str, list[Floats]]:
    """The values of a figure without each country, topic and cell, by kind of unit; see `statistic_replicates`."""
    replicates = {table.row_unit: [by_country[members] for members in table.strata], "topic": [by_topic]}
    if table.row_unit == "country":
        replicates["cell"] = (
            [by_cell]
            if len(table.strata) == 1
            else [by_cell[np.isin(table.row_index, members)] for members in table.strata]
        )
    return replicates


def subtract_replicates(
    sides: Sequence[tuple[float, dict[str, list[Floats]]]], table: TwoWayTable, scale: Transform = FISHER_Z
) -> TwoWayEstimate:
    """The first of two figures minus the second, from `statistic_replicates`.

    Args:
        scale: on which they are compared; as they are where one of them has no value on it, such as a correlation of 1.
    """
    (first, first_replicates), (second, second_replicates) = sides
    with np.errstate(divide="ignore", invalid="ignore"):
        if not np.isfinite(scale.forward(np.array([first, second]))).all():
            scale = IDENTITY
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


MAX_INFLUENCE = 0.8
"""Share of the jackknife variance of its kind above which a unit is named."""


class LeaveOutValue(NamedTuple):
    """A statistic without the cells of one group."""

    value: float
    group: str


class Influence(NamedTuple):
    """A unit on which nearly all variance of a statistic rests: its share, and the statistic without it."""

    unit: str
    share: float
    value_without: float


def leave_out_range(
    statistic: Statistic, scores: ArrayLike, truth: ArrayLike, groups: ArrayLike
) -> tuple[LeaveOutValue, LeaveOutValue] | None:
    """Find the smallest and the largest value of a statistic without one of several groups of cells.

    Args:
        statistic: PEARSON, MAE, BIAS or a similar one.
        scores, truth: shape (n,); cells with a nan on either side are left out.
        groups: shape (n,), the label of the cell's group.

    Returns:
        The two values with their groups; None for fewer than two groups, or where no value is defined.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    labels = np.asarray(groups, dtype=np.str_)[is_complete]
    names = np.unique(labels)
    if len(names) < 2:
        return None
    without = statistic.value(leave_one_out_sums(statistic.moments(x, y), labels))
    values = [
        LeaveOutValue(float(value), str(name)) for value, name in zip(without, names, strict=True) if np.isfinite(value)
    ]
    return (min(values), max(values)) if values else None


def find_influential_unit(
    statistic: Statistic, scores: ArrayLike, truth: ArrayLike, units: ArrayLike
) -> Influence | None:
    """The unit on which nearly all of a statistic's jackknife variance over one kind of unit rests, if there is one.

    The variance over n units is a sum of squared deviations, one for each unit. A unit with a share of that sum above
    0.8 is very different from all others: the interval then says little about units like the others. Two such units
    share the sum, and are not found.

    Args:
        statistic, scores, truth: as for `leave_out_range`.
        units: shape (n,), such as the country of each cell.

    Returns:
        None if no share is above 0.8, or for fewer than 5 units.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    labels = np.asarray(units, dtype=np.str_)[is_complete]
    names = np.unique(labels)
    if len(names) < MIN_UNITS:
        return None
    without = statistic.value(leave_one_out_sums(statistic.moments(x, y), labels))
    squares = (without - without.mean()) ** 2
    if not np.isfinite(squares).all() or squares.sum() <= 1e-24:
        return None
    shares = squares / squares.sum()
    largest = int(shares.argmax())
    if shares[largest] <= MAX_INFLUENCE:
        return None
    return Influence(str(names[largest]), float(shares[largest]), float(without[largest]))
