"""Rows of models, groups, dimensions and cells: distances from people's shares, skill, gaps and steering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from auditor.domain import Cell
from auditor.metrics import (
    PEARSON,
    ROOT_MEAN_DISTANCE,
    SKILL,
    VARIANCE_RATIO,
    BaselineShares,
    CellShares as PeopleCells,
    coherence_distance,
    country_baseline,
    crossed_jackknife,
    equal_answers,
    gap_slope,
    group_variances,
    jensen_shannon,
    mean_sampling_floor,
    nearest_country_baseline,
    order_effect,
    region_baseline,
    share_variance,
    specificity,
    squared_distance,
    steering_gain,
    total_variation,
    uniform_baseline,
    wasserstein,
    world_baseline,
)
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.unit_means import mean_over_units
from auditor.probes.distribution.figures.schema import (
    DistributionBaselineRow,
    DistributionCellRow,
    DistributionDimensionRow,
    DistributionGroupRow,
    DistributionModelRow,
    DistributionStep,
)
from auditor.probes.distribution.figures.series import (
    FloatArray,
    ModelCell,
    ScaleGrid,
    Series,
    align_cells,
    two_way_estimate,
)
from auditor.probes.distribution.opinions import PLACEBO, Opinion, OpinionMode
from auditor.surveys import SurveyDistributions
from auditor.surveys.distributions import CellShares

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
    asked: AskedPeople,
    points: FloatArray,
    regions: Mapping[str, str],
    *,
    is_ordered: bool,
) -> DistributionModelRow:
    """Build the row of one model and mode.

    Args:
        ordered_answers: those to topics whose answers are ordered.
        asked: people's shares, of which guesses are made.
        points: shape (K,), scores of the answers.
        regions: region by country.
    """
    series = answers.series
    if series is None:
        reason = Estimate(None, 0, reason="no cell has shares of people and of the model")
        names = (*ORDERED_FIGURES, "collapse", "total_variation", "jensen_shannon")
        figures = dict.fromkeys(names, reason)
        return DistributionModelRow(**_count_answers(answers), n_cells=0, exact_mean_skill=None, **figures)
    in_order = ordered_answers.series if is_ordered else None
    figures = (
        _unordered_figures(series)
        if in_order is None
        else _ordered_figures(ordered_answers, in_order, asked, points, regions)
    )
    return DistributionModelRow(
        **_count_answers(answers),
        n_cells=len(series.people),
        **figures,
        exact_mean_skill=None if figures["skill"].value is None else asked.exact_mean_skill(in_order or series),
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
    series: Series, asked: AskedPeople, grid: ScaleGrid, regions: Mapping[str, str]
) -> Iterator[DistributionBaselineRow]:
    """Yield the distances of guesses from people's shares, over the cells for which there is a guess."""
    points = grid.points
    for name, guess in _list_baselines(series, asked, grid, regions):
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
    answers: ModelAnswers, series: Series, asked: AskedPeople, points: FloatArray, regions: Mapping[str, str]
) -> dict[str, Estimate]:
    """The figures that need an order of the answers."""
    squared = squared_distances(series, points)
    world, region = (asked.guess(series, baseline) for baseline in (world_baseline, _by_region(regions)))
    people_variances = share_variance(series.people, points, np.maximum(series.sizes, 1.0))
    distances = wasserstein(series.people, series.model, points)
    shifts = [
        float(order_effect(*cell.orders, points).shift) if cell.orders is not None else np.nan
        for cell in series.model_cells
    ]
    reason = "no cell was asked with the scale in both orders"
    return {
        "w1": _mean(distances, series),
        "w1_near": _mean(distances < NEAR_W1, series),
        "w1_floor": _estimate_floor(series, points),
        "distance": two_way_estimate(ROOT_MEAN_DISTANCE, squared, np.zeros_like(squared), series),
        "skill": _estimate_skill(squared, world, series, points),
        "skill_region": _estimate_skill(squared, region, series, points),
        "variance_ratio": two_way_estimate(VARIANCE_RATIO, series.model_variances, people_variances, series),
        "order_effect": mean_over_units(shifts, series.units, (-1.0, 1.0), empty_reason=reason),
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


def _list_baselines(
    series: Series, asked: AskedPeople, grid: ScaleGrid, regions: Mapping[str, str]
) -> Sequence[tuple[str, BaselineShares]]:
    """The guesses, from the simplest to the hardest to beat."""
    uniform = asked.guess(series, uniform_baseline)._replace(shares=grid.uniform_shares(series.topics.tolist()))
    return (
        ("equal shares", uniform),
        ("the country’s other topics", asked.guess(series, country_baseline)),
        ("other countries on the same topic", asked.guess(series, world_baseline)),
        ("other countries of the region on the same topic", asked.guess(series, _by_region(regions))),
        ("the nearest country", asked.guess(series, lambda cells: nearest_country_baseline(cells, grid.points))),
    )


def _by_region(regions: Mapping[str, str]) -> Callable[[PeopleCells], BaselineShares]:
    """The guess from the other countries of the region; a country in none is alone."""
    return lambda cells: region_baseline(cells, [regions.get(name, name) for name in cells.countries.tolist()])


class AskedPeople:
    """People's shares in all cells that an audit asked about, from which guesses are made.

    Those of the cells that one model answered would be worse guesses, the fewer it answered, and its skill larger.
    """

    def __init__(self, people: Mapping[Cell, CellShares]) -> None:
        self._positions = {cell: i for i, cell in enumerate(people)}
        self._cells = PeopleCells(
            np.array([row.shares for row in people.values()]),
            np.array([row.cut_variances or (0.0,) * (len(row.shares) - 1) for row in people.values()]),
            np.array([cell.country for cell in people]),
            np.array([cell.topic for cell in people]),
        )

    def exact_mean_skill(self, series: Series) -> float:
        """The skill of the exact mean of all countries on each topic, against the mean of the others.

        Where shares of n countries vary by s², the squared distance of the exact mean is s², and that of the mean of
        n - 1 others s² n / (n - 1): the skill is 1 / n, here averaged over the cells of a series.
        """
        n_countries = Counter(self._cells.topics.tolist())
        return float(np.mean([1 / n_countries[topic] for topic in series.topics.tolist()]))

    def guess(self, series: Series, baseline: Callable[[PeopleCells], BaselineShares]) -> BaselineShares:
        """The guesses of the cells of a series."""
        guessed, index = baseline(self._cells), [self._positions[cell] for cell in series.cells]
        return BaselineShares(guessed.shares[index], guessed.cut_variances[index])


def _squared_distances(series: Series, shares: FloatArray, cut_variances: FloatArray, points: FloatArray) -> FloatArray:
    """Squared distances of some shares from people's, shape (cells,); nan where a share is."""
    return squared_distance(series.people, shares, points, series.people_cut_variances, cut_variances)


def _mean(values: ArrayLike, series: Series) -> Estimate:
    """The mean over cells of figures in [0, 1]."""
    return mean_over_units(values, series.units, (0.0, 1.0))


N_EXAMPLES = 4
"""Cells of each rank."""
DECIMALS = 4


def build_cell_rows(answers: ModelAnswers, grid: ScaleGrid) -> Iterator[DistributionCellRow]:
    """Yield the examples of one model and mode, from the closest to the furthest; each cell at most once."""
    series = answers.series
    if series is None:
        return
    distances = wasserstein(series.people, series.model, grid.points)
    order = np.argsort(distances, kind="stable").tolist()
    n = min(N_EXAMPLES, len(order) // 3)
    start = (len(order) - n) // 2
    positions: dict[Literal["closest", "middle", "furthest"], list[int]] = {
        "closest": order[:n],
        "middle": order[start : start + n],
        "furthest": order[len(order) - n :],
    }
    cells = series.cells
    for rank, chosen in positions.items():
        for i in chosen:
            yield DistributionCellRow(
                model=answers.model,
                mode=answers.mode,
                rank=rank,
                country=cells[i].country,
                topic=cells[i].topic,
                w1=round(float(distances[i]), DECIMALS),
                people=_round(grid.own_shares(cells[i].topic, series.people[i])),
                answers=_round(grid.own_shares(cells[i].topic, series.model[i])),
            )


def _round(shares: FloatArray) -> list[float]:
    return [round(float(share), DECIMALS) for share in shares]


GroupAnswers = Mapping[tuple[str, str], Mapping[Cell, ModelCell]]
"""A model's answers by dimension and group, then by cell; both names are empty for everyone."""


class GroupPeople:
    """People's shares by group, of the cells in which a group is large enough; groups of unknown size are kept."""

    def __init__(self, distributions: SurveyDistributions, min_respondents: int) -> None:
        """Index the shares.

        Args:
            min_respondents: fewest respondents of a group in a cell; half of that effectively.
        """
        self.groups = distributions.groups
        self.everyone = distributions.by_cell()
        self._by_group: dict[tuple[str, str], dict[Cell, CellShares]] = {}
        for row in distributions.cells:
            if row.is_large_enough(min_respondents):
                self._by_group.setdefault((row.dimension, row.group), {})[Cell(row.country, row.topic)] = row

    def by_cell(self, dimension: str, group: str) -> dict[Cell, CellShares]:
        """A group's shares by cell."""
        return self._by_group.get((dimension, group), {})


def build_group_rows(answers: ModelAnswers, people: GroupPeople, points: FloatArray) -> Iterator[DistributionGroupRow]:
    """Yield a row for each two groups of a dimension that the model answered for."""
    for dimension, words in people.groups.items():
        answered = [group for group in words if (dimension, group) in answers.by_group]
        for first, second in combinations(answered, 2):
            pair = [
                align_cells(people.by_cell(dimension, group), answers.by_group[dimension, group])
                for group in (first, second)
            ]
            if pair[0] is None or pair[1] is None:
                continue
            both = _keep_common(pair[0], pair[1])
            if len(both[0].people):
                yield _build_row(answers, (dimension, first, second), both, points, people)


def _build_row(
    answers: ModelAnswers,
    names: tuple[str, str, str],
    pair: tuple[Series, Series],
    points: FloatArray,
    all_people: GroupPeople,
) -> DistributionGroupRow:
    """The row of two groups over the cells that have both."""
    first, second = pair
    unit_points = (points - points[0]) / (points[-1] - points[0])
    people, of_model = (
        (second_shares - first_shares) @ unit_points
        for first_shares, second_shares in ((first.people, second.people), (first.model, second.model))
    )
    noise = sum((share_variance(part.people, points, part.sizes) / part.sizes for part in pair), np.zeros(len(people)))
    specific = specificity((first.people, first.model), (second.people, second.model), points)
    return DistributionGroupRow(
        model=answers.model,
        mode=answers.mode,
        dimension=names[0],
        first=names[1],
        second=names[2],
        n=len(people),
        slope=gap_slope(people, of_model, noise, first.units),
        intercept_slope=gap_slope(people, of_model, noise, first.units, intercept=True),
        r=two_way_estimate(PEARSON, of_model, people, first),
        specificity=mean_over_units(specific, first.units, (-1.0, 1.0)),
        steering_gain=_estimate_gain(pair, points, answers.by_group, all_people.everyone),
        people_gaps=[round(float(gap), 4) for gap in people],
        model_gaps=[round(float(gap), 4) for gap in of_model],
        steps=[
            _describe_step(group, series, answers.by_group.get(("", ""), {}), unit_points)
            for group, series in zip(names[1:], pair, strict=True)
        ],
    )


def _describe_step(
    group: str, series: Series, everyone: Mapping[Cell, ModelCell], unit_points: FloatArray
) -> DistributionStep:
    """Mean answers before and after a group is named, over the cells with both."""
    rows = [i for i, cell in enumerate(series.cells) if cell in everyone]
    before = [float(everyone[series.cells[i]].shares @ unit_points) for i in rows]
    return DistributionStep(
        group=group,
        before=float(np.mean(before)) if rows else None,
        after=float((series.model[rows] @ unit_points).mean()) if rows else None,
        people=float((series.people[rows] @ unit_points).mean()) if rows else None,
    )


def _estimate_gain(
    pair: tuple[Series, Series], points: FloatArray, answers: GroupAnswers, people: Mapping[Cell, CellShares]
) -> Estimate:
    """Mean steering gain of both groups, over the cells with answers for everyone and for an irrelevant attribute."""
    everyone = answers.get(("", ""), {})
    placebo = next((cells for (dimension, _), cells in answers.items() if dimension == PLACEBO), {})
    if not everyone or not placebo:
        missing = "the country without a group" if not everyone else "an irrelevant attribute"
        return Estimate(None, len(pair[0].people), reason=f"the model was not asked about {missing}")
    gains = np.full(len(pair[0].people), np.nan)
    for i, cell in enumerate(pair[0].cells):
        if cell not in everyone or cell not in placebo or cell not in people:
            continue
        to_all = [_distance_to(people[cell], answer, points) for answer in (everyone[cell], placebo[cell])]
        by_group = []
        for series in pair:
            before = squared_distance(
                series.people[i], everyone[cell].shares, points, series.people_cut_variances[i],
                everyone[cell].cut_variances,
            )  # fmt: skip
            after = squared_distance(
                series.people[i], series.model[i], points, series.people_cut_variances[i],
                series.model_cut_variances[i],
            )  # fmt: skip
            by_group.append(steering_gain(before, after, *to_all))
        gains[i] = float(np.mean(by_group))
    return mean_over_units(gains, pair[0].units, empty_reason="no cell has all four answers")


def _distance_to(people: CellShares, answer: ModelCell, points: FloatArray) -> FloatArray:
    """Squared distance of an answer from all people of a cell."""
    return squared_distance(people.shares, answer.shares, points, people.cut_variances or 0.0, answer.cut_variances)


def _keep_common(first: Series, second: Series) -> tuple[Series, Series]:
    """Both series in the cells that both have, in the order of the first."""
    positions = {key: i for i, key in enumerate(zip(second.countries, second.topics, strict=True))}
    matches = [
        (i, positions[key]) for i, key in enumerate(zip(first.countries, first.topics, strict=True)) if key in positions
    ]
    return first.take([i for i, _ in matches]), second.take([j for _, j in matches])


GroupCell = tuple[CellShares, ModelCell]
"""A group of a cell: people's shares and the model's."""


def build_dimension_rows(
    answers: ModelAnswers, people: GroupPeople, points: FloatArray
) -> Iterator[DistributionDimensionRow]:
    """Yield a row for each dimension of which the model answered for at least two groups."""
    for dimension, words in people.groups.items():
        groups_by_cell: dict[Cell, list[GroupCell]] = {}
        for group in words:
            of_model = answers.by_group.get((dimension, group), {})
            for cell, shares in people.by_cell(dimension, group).items():
                if cell in of_model:
                    groups_by_cell.setdefault(cell, []).append((shares, of_model[cell]))
        cells = {cell: groups for cell, groups in groups_by_cell.items() if len(groups) > 1}
        if not cells:
            continue
        units = {"country": [cell.country for cell in cells], "topic": [cell.topic for cell in cells]}
        variances = np.array([_measure_variances(groups, points) for groups in cells.values()])
        ratio = crossed_jackknife(VARIANCE_RATIO, variances[:, 0], variances[:, 1], *map(np.array, units.values()))
        yield DistributionDimensionRow(
            model=answers.model,
            mode=answers.mode,
            dimension=dimension,
            n=len(cells),
            coherence=_estimate_coherence(answers, cells, points),
            within_variance_ratio=Estimate(
                ratio.value, ratio.n, ratio.ci_low, ratio.ci_high, ratio.reason, ratio.resampled
            ),
        )


def _weights(groups: list[GroupCell]) -> list[float]:
    """Numbers of respondents; groups of unknown size weigh alike."""
    sizes = [shares.n for shares, _ in groups]
    return [1.0] * len(sizes) if None in sizes else [float(size or 0) for size in sizes]


def _estimate_coherence(answers: ModelAnswers, cells: Mapping[Cell, list[GroupCell]], points: FloatArray) -> Estimate:
    """Mean distance of the groups' stated answers together from those for the country."""
    if answers.mode is OpinionMode.SAMPLED:
        return Estimate(None, len(cells), reason="the distance between samples is above 0 by chance alone")
    everyone = answers.by_group.get(("", ""), {})
    asked = {cell: groups for cell, groups in cells.items() if cell in everyone}
    distances = [
        float(
            coherence_distance(
                [of_model.shares for _, of_model in groups], _weights(groups), everyone[cell].shares, points
            )
        )
        for cell, groups in asked.items()
    ]
    units = {"country": [cell.country for cell in asked], "topic": [cell.topic for cell in asked]}
    reason = "the model was not asked about the country without a group"
    return mean_over_units(distances, units, (0.0, 1.0), empty_reason=reason)


def _measure_variances(groups: list[GroupCell], points: FloatArray) -> tuple[float, float]:
    """Mean variance within groups, of the model and of people."""
    weights = np.array(_weights(groups)) / sum(_weights(groups))
    of_model = float(weights @ [answer.variance for _, answer in groups])
    sizes = [shares.n_effective or np.inf for shares, _ in groups]
    within, _ = group_variances([shares.shares for shares, _ in groups], weights, points, sizes)
    return of_model, float(within)
