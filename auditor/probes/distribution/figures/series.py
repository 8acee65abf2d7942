"""Shares of people and of models as arrays over cells, on one grid of points for topics with different scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Cell
from auditor.metrics import (
    ROOT_MEAN_DISTANCE,
    crossed_jackknife,
    cut_variance,
    mean_of_orders,
    share_variance,
    variance_of_orders,
)
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.jackknife_interval import BOUNDARY_REASON
from auditor.metrics.people.alignment import Statistic
from auditor.probes.distribution.opinions import Opinion, OpinionMode, ScaleOrder
from auditor.surveys import SurveyDistributions
from auditor.surveys.distributions import AnswerPoint, AnswerScale, CellShares

FloatArray = NDArray[np.float64]
MIN_USABLE_SHARE = 0.5
"""Least share of a cell's answers that can be used, for a figure."""
MIN_PER_ORDER = 2
"""Fewest sampled answers in each order, and fewest of a cell where the order is unknown."""


class ModelCell(NamedTuple):
    """A model's answers about one cell or group.

    Attributes:
        shares: shape (K,), over both orders.
        cut_variances: shape (K - 1,), sampling variance of the cumulative shares; 0 for stated shares.
        variance: unbiased variance of the answers on the unit scale.
        n: number of answers; inf for stated shares.
        orders: shares of shape (K,) with the scale upwards and downwards; None unless both were asked.
    """

    shares: FloatArray
    cut_variances: FloatArray
    variance: float
    n: float
    orders: tuple[FloatArray, FloatArray] | None


@dataclass(frozen=True)
class Series:
    """Shares in the cells that people and the model have, shape (cells, …).

    Attributes:
        sizes: people's effective sample sizes; inf where unknown.
        people_cut_variances: 0 where unknown.
    """

    countries: NDArray[np.str_]
    topics: NDArray[np.str_]
    people: FloatArray
    sizes: FloatArray
    people_cut_variances: FloatArray
    model: FloatArray
    model_cut_variances: FloatArray
    model_variances: FloatArray
    model_cells: tuple[ModelCell, ...]

    @property
    def units(self) -> dict[str, NDArray[np.str_]]:
        """The units that are resampled."""
        return {"country": self.countries, "topic": self.topics}

    @property
    def cells(self) -> list[Cell]:
        """The cells, in order."""
        return list(map(Cell, self.countries.tolist(), self.topics.tolist()))

    def take(self, positions: Sequence[int]) -> Series:
        """The cells at these positions."""
        index = np.asarray(positions, dtype=np.intp)
        return Series(
            self.countries[index],
            self.topics[index],
            self.people[index],
            self.sizes[index],
            self.people_cut_variances[index],
            self.model[index],
            self.model_cut_variances[index],
            self.model_variances[index],
            tuple(self.model_cells[i] for i in positions),
        )


def combine_answers(opinions: Sequence[Opinion], points: FloatArray) -> ModelCell | None:
    """Combine the answers of one model, mode and cell.

    None where fewer than half of the answers can be used, or where one of two orders of the scale has none: answers
    lean to the end that is shown first, so those of one order are no substitute for both.
    """
    usable = [opinion for opinion in opinions if opinion.shares is not None]
    by_order = {order: [o for o in usable if o.scale_order is order] for order in ScaleOrder}
    up, down = by_order[ScaleOrder.UP], by_order[ScaleOrder.DOWN]
    is_one_sided = bool(up) != bool(down) and {ScaleOrder.UP, ScaleOrder.DOWN} <= {o.scale_order for o in opinions}
    if not usable or is_one_sided or len(usable) < MIN_USABLE_SHARE * len(opinions):
        return None
    if usable[0].mode is not OpinionMode.SAMPLED:
        return _combine_stated(up, down, usable, points)
    counts = {order: _sum_counts(part, len(points)) for order, part in by_order.items()}
    n = float(sum(part.sum() for part in counts.values()))
    if up and down:
        both = counts[ScaleOrder.UP], counts[ScaleOrder.DOWN]
        if min(part.sum() for part in both) < MIN_PER_ORDER:
            return None
        shares, variances = mean_of_orders(*both)
        spread = float(variance_of_orders(*both, points))
        return ModelCell(shares, variances, spread, n, (both[0] / both[0].sum(), both[1] / both[1].sum()))
    if n < MIN_PER_ORDER:
        return None
    pooled = sum(counts.values(), np.zeros(len(points)))
    return ModelCell(pooled / n, cut_variance(pooled, n), float(share_variance(pooled, points, n)), n, None)


def _combine_stated(
    up: Sequence[Opinion], down: Sequence[Opinion], usable: Sequence[Opinion], points: FloatArray
) -> ModelCell:
    """The mean of stated shares, in which both orders weigh alike."""
    if up and down:
        first, second = _mean_shares(up), _mean_shares(down)
        shares, orders = (first + second) / 2, (first, second)
    else:
        shares, orders = _mean_shares(usable), None
    return ModelCell(shares, np.zeros(len(points) - 1), float(share_variance(shares, points)), np.inf, orders)


def _mean_shares(opinions: Sequence[Opinion]) -> FloatArray:
    """Mean of the shares of several answers, shape (points,)."""
    rows = np.array([opinion.shares for opinion in opinions], dtype=np.float64)
    return np.asarray(rows.mean(axis=0))


def align_cells(people: Mapping[Cell, CellShares], model: Mapping[Cell, ModelCell]) -> Series | None:
    """Put together the cells that both have; None if there are none."""
    cells = [cell for cell in people if cell in model]
    if not cells:
        return None
    rows, answers = [people[cell] for cell in cells], tuple(model[cell] for cell in cells)
    n_cuts = len(rows[0].shares) - 1
    return Series(
        countries=np.array([cell.country for cell in cells]),
        topics=np.array([cell.topic for cell in cells]),
        people=np.array([row.shares for row in rows]),
        sizes=np.array([row.n_effective or np.inf for row in rows]),
        people_cut_variances=np.array([row.cut_variances or (0.0,) * n_cuts for row in rows]),
        model=np.stack([answer.shares for answer in answers]),
        model_cut_variances=np.stack([answer.cut_variances for answer in answers]),
        model_variances=np.array([answer.variance for answer in answers]),
        model_cells=answers,
    )


def _sum_counts(opinions: list[Opinion], n_points: int) -> FloatArray:
    """Counts of sampled answers, shape (points,)."""
    counts = [np.asarray(opinion.shares, dtype=np.float64) * (opinion.n or 1) for opinion in opinions]
    return np.sum(counts, axis=0) if counts else np.zeros(n_points)


def two_way_estimate(statistic: Statistic, first: FloatArray, second: FloatArray, series: Series) -> Estimate:
    """A statistic of two columns over cells, with its interval over countries and topics, without its test."""
    estimate = crossed_jackknife(statistic, first, second, series.countries, series.topics)
    # A root of 0 stays 0 whatever is left out, since a mean below 0 counts as 0.
    is_at_end = statistic is ROOT_MEAN_DISTANCE and estimate.value == 0
    reason = BOUNDARY_REASON if is_at_end and estimate.ci_low is None else estimate.reason
    return Estimate(estimate.value, estimate.n, estimate.ci_low, estimate.ci_high, reason, estimate.resampled)


DECIMALS = 9
"""Decimals of scores that are compared."""


@dataclass(frozen=True)
class ScaleGrid:
    """The grid that has the answers of all topics, and the survey's shares on it.

    An answer that a topic does not have has the share 0 there. Distances, variances and shifts are the same as on the
    topic's own scale, as a share of its range.

    Attributes:
        points: shape (K,), scores of the grid.
        distributions: shares on the grid.
        positions: for each topic the positions of its answers on the grid.
        unordered_topics: topics whose answers are choices without an order.
    """

    points: FloatArray
    distributions: SurveyDistributions
    positions: Mapping[str, Sequence[int]]
    unordered_topics: frozenset[str]

    def place(self, opinion: Opinion) -> Opinion:
        """The opinion with its shares on the grid."""
        if opinion.shares is None or len(opinion.shares) == len(self.points):
            return opinion
        shares = np.zeros(len(self.points))
        shares[list(self.positions[opinion.cell.topic])] = opinion.shares
        return replace(opinion, shares=tuple(shares.tolist()))

    def own_shares(self, topic: str, shares: FloatArray) -> FloatArray:
        """The shares of a topic's own answers."""
        return shares[list(self.positions[topic])]

    def uniform_shares(self, topics: Sequence[str]) -> FloatArray:
        """Equal shares of the own answers of each topic, shape (topics, K)."""
        shares = np.zeros((len(topics), len(self.points)))
        for row, topic in zip(shares, topics, strict=True):
            row[list(self.positions[topic])] = 1 / len(self.positions[topic])
        return shares


def build_scale_grid(distributions: SurveyDistributions) -> ScaleGrid:
    """Build the grid of a survey; that of one scale has its points, that of several has each rescaled to [-1, 1]."""
    topics = dict.fromkeys(cell.topic for cell in distributions.cells)
    unordered = frozenset(topic for topic in topics if not distributions.scale_of(topic).is_ordered)
    if not distributions.scales:
        points = np.array([point.score for point in distributions.points])
        return ScaleGrid(points, distributions, dict.fromkeys(topics, range(len(points))), unordered)
    scores = {topic: _rescale(distributions.scale_of(topic)) for topic in topics}
    grid = sorted({score for of_topic in scores.values() for score in of_topic})
    positions = {topic: [grid.index(score) for score in of_topic] for topic, of_topic in scores.items()}
    cells = []
    for cell in distributions.cells:
        shares = np.zeros(len(grid))
        shares[positions[cell.topic]] = cell.shares
        variances = cell.cut_variances and _spread_cut_variances(cell.cut_variances, positions[cell.topic], len(grid))
        cells.append(cell.model_copy(update={"shares": tuple(shares.tolist()), "cut_variances": variances}))
    on_grid = SurveyDistributions(
        points=tuple(AnswerPoint(name=f"{score:g}", score=score) for score in grid),
        is_ordered=distributions.is_ordered,
        groups=distributions.groups,
        without_group=distributions.without_group,
        cells=tuple(cells),
    )
    return ScaleGrid(np.array(grid), on_grid, positions, unordered)


def _rescale(scale: AnswerScale) -> list[float]:
    """Scores of the answers, with the lowest at -1 and the highest at +1."""
    scores = [point.score for point in scale.points]
    return [round(2 * (score - scores[0]) / (scores[-1] - scores[0]) - 1, DECIMALS) for score in scores]


def _spread_cut_variances(variances: Sequence[float], positions: Sequence[int], n_points: int) -> tuple[float, ...]:
    """Variances of the cumulative shares at each cut of a grid: those of the topic's cut around it."""
    own_cuts = np.searchsorted(positions, np.arange(n_points - 1), side="right") - 1
    return tuple(0.0 if not 0 <= cut < len(variances) else float(variances[cut]) for cut in own_cuts)
