"""Rows of models and baselines: distances from people's shares, skill, diversity and effects of the order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from auditor.domain import Cell
from auditor.metrics import (
    ROOT_MEAN_DISTANCE,
    SKILL,
    VARIANCE_RATIO,
    BaselineShares,
    CellShares as PeopleCells,
    country_baseline,
    equal_answers,
    jensen_shannon,
    mean_sampling_floor,
    nearest_country_baseline,
    order_effect,
    region_baseline,
    share_variance,
    squared_distance,
    total_variation,
    uniform_baseline,
    wasserstein,
    world_baseline,
)
from auditor.metrics.estimate import Estimate
from auditor.metrics.unit_means import mean_over_units
from auditor.probes.distribution.figures.scales import ScaleGrid
from auditor.probes.distribution.figures.schema import DistributionBaselineRow, DistributionModelRow
from auditor.probes.distribution.figures.series import FloatArray, ModelCell, Series, two_way_estimate
from auditor.probes.distribution.opinions import Opinion, OpinionMode

ORDERED_FIGURES = (
    "w1",
    "w1_floor",
    "w1_near",
    "distance",
    "skill",
    "skill_region",
    "variance_ratio",
    "order_effect",
    "country_gain",
)
"""Figures of a row that need an order of the answers."""
NEAR_W1 = 0.2
"""Wasserstein distance below which a cell counts as near people."""
UNORDERED_REASON = "the answers are choices without an order"
NO_SIZES_REASON = "the survey has no sample sizes"


@dataclass(frozen=True)
class ModelAnswers:
    """What one model answered in one mode.

    Attributes:
        opinions: its answers one by one.
        by_group: by dimension and group, then by cell; both names are empty for everyone.
        series: the cells that people and the model have, of everyone; None without one.
        n_incomplete: cells of people that were asked about, with too few usable answers.
        without_country: answers to questions without a country, by topic.
    """

    model: str
    mode: OpinionMode
    opinions: Sequence[Opinion]
    by_group: Mapping[tuple[str, str], Mapping[Cell, ModelCell]]
    series: Series | None
    n_incomplete: int
    without_country: Mapping[str, ModelCell]


def build_model_row(
    answers: ModelAnswers,
    ordered_answers: ModelAnswers,
    points: FloatArray,
    regions: Mapping[str, str],
    *,
    is_ordered: bool,
) -> DistributionModelRow:
    """Build the row of one model and mode.

    Args:
        ordered_answers: those to topics whose answers are ordered.
        points: shape (K,), scores of the answers.
        regions: region by country.
    """
    series = answers.series
    if series is None:
        reason = Estimate(None, 0, reason="no cell has shares of people and of the model")
        names = (*ORDERED_FIGURES, "collapse", "total_variation", "jensen_shannon")
        return DistributionModelRow(**_count_answers(answers), n_cells=0, **dict.fromkeys(names, reason))
    in_order = ordered_answers.series if is_ordered else None
    figures = (
        _unordered_figures(series) if in_order is None else _ordered_figures(ordered_answers, in_order, points, regions)
    )
    return DistributionModelRow(
        **_count_answers(answers),
        n_cells=len(series.people),
        **figures,
        collapse=_estimate_collapse(series, answers.mode),
        total_variation=_mean(total_variation(series.people, series.model), series),
        jensen_shannon=_mean(jensen_shannon(series.people, series.model), series),
    )


def _count_answers(answers: ModelAnswers) -> dict[str, Any]:
    """The columns that identify the row, and count answers."""
    opinions = answers.opinions
    losses = Counter(opinion.outcome.value for opinion in opinions if opinion.shares is None)
    masses = [opinion.mass for opinion in opinions if opinion.mass is not None]
    is_tokens = answers.mode is OpinionMode.TOKENS
    return {
        "model": answers.model,
        "mode": answers.mode,
        "incomplete": answers.n_incomplete,
        "answers": len(opinions),
        "unusable": losses.total(),
        "losses": dict(sorted(losses.items())),
        "rescaled": sum(opinion.is_rescaled for opinion in opinions),
        "unlisted": sum(0.0 in (opinion.shares or ()) for opinion in opinions) if is_tokens else 0,
        "mass": float(np.mean(masses)) if masses else None,
    }


def build_baseline_rows(
    series: Series, grid: ScaleGrid, regions: Mapping[str, str]
) -> Iterator[DistributionBaselineRow]:
    """Yield the distances of guesses from people's shares, over the cells for which there is a guess."""
    points = grid.points
    for name, guess in _list_baselines(series, grid, regions):
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


def _ordered_figures(
    answers: ModelAnswers, series: Series, points: FloatArray, regions: Mapping[str, str]
) -> dict[str, Estimate]:
    """The figures that need an order of the answers."""
    squared = squared_distances(series, points)
    people, region_names = _people_cells(series), _region_names(series, regions)
    people_variances = share_variance(series.people, points, np.maximum(series.sizes, 1.0))
    distances = wasserstein(series.people, series.model, points)
    return {
        "w1": _mean(distances, series),
        "w1_near": _mean(distances < NEAR_W1, series),
        "w1_floor": _estimate_floor(series, points),
        "distance": two_way_estimate(ROOT_MEAN_DISTANCE, squared, np.zeros_like(squared), series),
        "skill": _estimate_skill(squared, world_baseline(people), series, points),
        "skill_region": _estimate_skill(squared, region_baseline(people, region_names), series, points),
        "variance_ratio": two_way_estimate(VARIANCE_RATIO, series.model_variances, people_variances, series),
        "order_effect": _estimate_order_effect(series, points),
        "country_gain": _estimate_country_gain(answers, series, squared, points),
    }


def _estimate_skill(squared: FloatArray, guess: BaselineShares, series: Series, points: FloatArray) -> Estimate:
    """Skill against a guess, over the cells for which there is one."""
    baseline = _squared_distances(series, guess.shares, guess.cut_variances, points)
    if np.isnan(baseline).all():
        return Estimate(None, 0, reason="no other country to guess from")
    return two_way_estimate(SKILL, squared, baseline, series)


def _estimate_country_gain(answers: ModelAnswers, series: Series, squared: FloatArray, points: FloatArray) -> Estimate:
    """By how much the answer to the question without a country is further from people than that with it."""
    gains = np.full(len(squared), np.nan)
    for i, topic in enumerate(series.topics.tolist()):
        if (answer := answers.without_country.get(topic)) is not None:
            people_variances = series.people_cut_variances[i]
            gains[i] = (
                squared_distance(series.people[i], answer.shares, points, people_variances, answer.cut_variances)
                - squared[i]
            )
    return mean_over_units(gains, series.units, empty_reason="the model was not asked without a country")


def _unordered_figures(series: Series) -> dict[str, Estimate]:
    """The same figures for choices, which have none of them."""
    reason = Estimate(None, len(series.people), reason=UNORDERED_REASON)
    return dict.fromkeys(ORDERED_FIGURES, reason)


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


def _list_baselines(
    series: Series, grid: ScaleGrid, regions: Mapping[str, str]
) -> Sequence[tuple[str, BaselineShares]]:
    """The guesses, from the simplest to the hardest to beat."""
    cells = _people_cells(series)
    uniform = uniform_baseline(cells)._replace(shares=grid.uniform_shares(series.topics.tolist()))
    return (
        ("equal shares", uniform),
        ("the country’s other topics", country_baseline(cells)),
        ("other countries on the same topic", world_baseline(cells)),
        ("other countries of the region on the same topic", region_baseline(cells, _region_names(series, regions))),
        ("the nearest country", nearest_country_baseline(cells, grid.points)),
    )


def _region_names(series: Series, regions: Mapping[str, str]) -> list[str]:
    """The region of each cell's country; a country in none is alone."""
    return [regions.get(country, country) for country in series.countries.tolist()]


def _people_cells(series: Series) -> PeopleCells:
    return PeopleCells(series.people, series.people_cut_variances, series.countries, series.topics)


def _squared_distances(series: Series, shares: FloatArray, cut_variances: FloatArray, points: FloatArray) -> FloatArray:
    """Squared distances of some shares from people's, shape (cells,); nan where a share is."""
    return squared_distance(series.people, shares, points, series.people_cut_variances, cut_variances)


def _mean(values: ArrayLike, series: Series) -> Estimate:
    """The mean over cells of figures in [0, 1]."""
    return mean_over_units(values, series.units, (0.0, 1.0))
