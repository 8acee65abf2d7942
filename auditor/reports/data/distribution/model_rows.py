"""Rows of models and baselines: distances from people's shares, skill, diversity and effects of the order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from auditor.domain.opinions import OpinionMode
from auditor.metrics import (
    ROOT_MEAN_DISTANCE,
    SKILL,
    VARIANCE_RATIO,
    BaselineShares,
    country_baseline,
    equal_answers,
    jensen_shannon,
    mean_sampling_floor,
    nearest_country_baseline,
    order_effect,
    share_variance,
    squared_distance,
    total_variation,
    uniform_baseline,
    wasserstein,
    world_baseline,
)
from auditor.metrics import CellShares as PeopleCells
from auditor.metrics.estimate import Estimate
from auditor.metrics.unit_means import mean_over_units
from auditor.reports.data.distribution.schema import DistributionBaselineRow, DistributionModelRow
from auditor.reports.data.distribution.series import FloatArray, Series, two_way_estimate

UNORDERED_REASON = "the answers are choices without an order"
NO_SIZES_REASON = "the survey has no sample sizes"


def build_model_row(
    model: str, mode: OpinionMode, series: Series | None, unusable: int, points: FloatArray, *, is_ordered: bool
) -> DistributionModelRow:
    """Build the row of one model and mode.

    Args:
        series: None without a cell that people and the model have.
        points: shape (K,), scores of the answers.
    """
    if series is None:
        reason = Estimate(None, 0, reason="no cell has shares of people and of the model")
        names = ("w1", "w1_floor", "distance", "skill", "variance_ratio", "collapse", "order_effect")
        missing = dict.fromkeys((*names, "total_variation", "jensen_shannon"), reason)
        return DistributionModelRow(model=model, mode=mode, n_cells=0, unusable=unusable, **missing)
    ordered = _ordered_figures(series, points) if is_ordered else _unordered_figures(series)
    return DistributionModelRow(
        model=model,
        mode=mode,
        n_cells=len(series.people),
        unusable=unusable,
        **ordered,
        collapse=_estimate_collapse(series, mode),
        total_variation=_mean(total_variation(series.people, series.model), series),
        jensen_shannon=_mean(jensen_shannon(series.people, series.model), series),
    )


def build_baseline_rows(series: Series, points: FloatArray) -> Iterator[DistributionBaselineRow]:
    """Yield the distances of guesses from people's shares, over the cells for which there is a guess."""
    for name, guess in _list_baselines(series, points):
        present = ~np.isnan(guess.shares).any(axis=1)
        squared = _squared_distances(series, guess.shares, guess.cut_variances, points)[present]
        distances = wasserstein(series.people[present], guess.shares[present], points)
        yield DistributionBaselineRow(
            name=name,
            n_cells=int(present.sum()),
            w1=float(distances.mean()) if present.any() else None,
            distance=float(max(0.0, squared.mean()) ** 0.5) if present.any() else None,
        )


def squared_distances(series: Series, points: FloatArray) -> FloatArray:
    """Squared distances of the model from people, corrected for sampling error, shape (cells,)."""
    return _squared_distances(series, series.model, series.model_cut_variances, points)


def _ordered_figures(series: Series, points: FloatArray) -> dict[str, Estimate]:
    """The figures that need an order of the answers."""
    squared = squared_distances(series, points)
    guess = world_baseline(_people_cells(series))
    baseline = _squared_distances(series, guess.shares, guess.cut_variances, points)
    people_variances = share_variance(series.people, points, np.maximum(series.sizes, 1.0))
    return {
        "w1": _mean(wasserstein(series.people, series.model, points), series),
        "w1_floor": _estimate_floor(series, points),
        "distance": two_way_estimate(ROOT_MEAN_DISTANCE, squared, np.zeros_like(squared), series),
        "skill": two_way_estimate(SKILL, squared, baseline, series),
        "variance_ratio": two_way_estimate(VARIANCE_RATIO, series.model_variances, people_variances, series),
        "order_effect": _estimate_order_effect(series, points),
    }


def _unordered_figures(series: Series) -> dict[str, Estimate]:
    """The same figures for choices, which have none of them."""
    reason = Estimate(None, len(series.people), reason=UNORDERED_REASON)
    return dict.fromkeys(("w1", "w1_floor", "distance", "skill", "variance_ratio", "order_effect"), reason)


def _estimate_floor(series: Series, points: FloatArray) -> Estimate:
    """The distance of a model that samples people perfectly, with as many answers as this one has on average."""
    if np.isinf(series.sizes).all():
        return Estimate(None, len(series.people), reason=NO_SIZES_REASON)
    sizes = np.array([cell.n for cell in series.model_cells])
    m = float(np.round(1 / np.mean(1 / sizes))) if np.isfinite(sizes).all() else np.inf
    return mean_sampling_floor(series.people, points, series.sizes, m, series.countries)


def _estimate_collapse(series: Series, mode: OpinionMode) -> Estimate:
    """Share of cells in which all sampled answers are the same."""
    if mode is not OpinionMode.SAMPLED:
        return Estimate(None, len(series.people), reason="only sampled answers can be the same")
    return _mean(equal_answers(series.model), series)


def _estimate_order_effect(series: Series, points: FloatArray) -> Estimate:
    """Mean shift towards the end that is shown first."""
    shifts = [
        float(order_effect(*cell.orders, points).shift) if cell.orders is not None else np.nan
        for cell in series.model_cells
    ]
    reason = "no cell was asked with the scale in both orders"
    return mean_over_units(shifts, series.units, (-1.0, 1.0), empty_reason=reason)


def _list_baselines(series: Series, points: FloatArray) -> Sequence[tuple[str, BaselineShares]]:
    """The guesses, from the simplest to the hardest to beat."""
    cells = _people_cells(series)
    return (
        ("equal shares", uniform_baseline(cells)),
        ("the country’s other topics", country_baseline(cells)),
        ("other countries on the same topic", world_baseline(cells)),
        ("the nearest country", nearest_country_baseline(cells, points)),
    )


def _people_cells(series: Series) -> PeopleCells:
    return PeopleCells(series.people, series.people_cut_variances, series.countries, series.topics)


def _squared_distances(series: Series, shares: FloatArray, cut_variances: FloatArray, points: FloatArray) -> FloatArray:
    """Squared distances of some shares from people's, shape (cells,); nan where a share is."""
    return squared_distance(series.people, shares, points, series.people_cut_variances, cut_variances)


def _mean(values: ArrayLike, series: Series) -> Estimate:
    """The mean over cells of figures in [0, 1]."""
    return mean_over_units(values, series.units, (0.0, 1.0))
