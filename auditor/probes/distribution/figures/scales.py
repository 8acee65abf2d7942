"""Topics with different scales on one grid of points, so that figures on the scale from -1 to +1 pool over topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from auditor.probes.distribution.figures.series import FloatArray
from auditor.probes.distribution.opinions import Opinion
from auditor.surveys import SurveyDistributions
from auditor.surveys.distributions import AnswerPoint, AnswerScale

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
