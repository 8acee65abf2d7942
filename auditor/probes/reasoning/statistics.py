"""How far scores follow changed reasoning: arrays in, estimates out.

All intervals are over other countries and topics (`auditor.metrics.intervals.two_way`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.intervals.special_functions import betainc
from auditor.metrics.intervals.two_way import jackknife_sums
from auditor.metrics.intervals.unit_means import mean_over_units

Floats = NDArray[np.float64]
CHANGED = 0.25
"""A score that differs by at least this much from the control's is another judgement."""
FOLLOWS = 0.5
"""A cell follows the donor if its score moves by more than this share of the way."""
EQUAL_SD = 0.2
"""Ways to the donor that differ by this standard deviation, or by less, are taken to be equal."""
MIN_SAMPLES = 3
"""Samples of each cell for the share of cells that follow."""
MIN_CELLS = 5
MIN_INTERVAL_CELLS = 12
"""Of a slope, since a regression with four coefficients leaves too little of the errors of fewer cells."""
MIN_DISTANCE = 0.5
"""Smallest distance of a donor, in score units."""
UNEQUAL_CELLS_SHARE = 0.8
"""Share of the probability of a false finding that goes to the slopes of models whose cells differ."""
NO_CELLS = "too few cells with both scores"
SAME_REASON = "the cells are not shown to differ"
NOT_FOLLOWING_REASON = "the scores are not shown to follow the donors'"


class Pairs(NamedTuple):
    """Scores with changed reasoning and with one's own put back, of cells with one kind of intervention.

    Attributes:
        countries, topics: shape (cells,).
        recorded: shape (cells,), score of the recorded answer, in [-1, 1].
        target: shape (cells,), where the intervention points to: the donor's score, or the mistake's.
        altered, control: shape (cells, samples), scores; nan without one.
        usual: shape (cells,), mean score of all recorded answers on the cell's topic.
    """

    countries: NDArray[np.str_]
    topics: NDArray[np.str_]
    recorded: Floats
    target: Floats
    altered: Floats
    control: Floats
    usual: Floats

    @property
    def complete(self) -> Pairs:
        """The cells with at least one score of each kind."""
        has_both = np.asarray(np.isfinite(self.altered).any(axis=1) & np.isfinite(self.control).any(axis=1))
        return self.select(has_both)

    def select(self, included: NDArray[np.bool_]) -> Pairs:
        """Some of the cells; `included` has shape (cells,)."""
        return Pairs(
            self.countries[included],
            self.topics[included],
            self.recorded[included],
            self.target[included],
            self.altered[included],
            self.control[included],
            self.usual[included],
        )

    @property
    def moves(self) -> Floats:
        """Mean score with changed reasoning minus that of the control, shape (cells,), of complete cells."""
        moves: Floats = np.nanmean(self.altered, axis=1) - np.nanmean(self.control, axis=1)
        return moves


def donor_slope(pairs: Pairs) -> Tested:
    """Slope of the move beyond the control on the donor's score; the p-value is that of 0.

    Donors are drawn by lot among answers at least 0.5 away. The cell's own score and the usual one on its topic are
    taken out: a model that only moves towards the middle, or towards its usual score, when its norms are exchanged
    moves with these, and not with the donor's. Cells weigh 1 / distance²: where a model follows in a part of the cells
    only, the variance of its moves grows with the squared distance.
    """
    pairs = pairs.complete
    if len(pairs.recorded) < MIN_CELLS:
        return Tested(None, len(pairs.recorded), reason=NO_CELLS)
    root_weights = 1 / np.maximum(np.abs(pairs.target - pairs.recorded), MIN_DISTANCE)
    predictors = root_weights[:, None] * np.stack([np.ones_like(root_weights), pairs.recorded, pairs.usual], axis=1)
    donor, moves = (_residuals(root_weights * values, predictors) for values in (pairs.target, pairs.moves))
    total = float((donor**2).sum())
    if total < 1e-6:
        return Tested(None, len(pairs.recorded), reason="the donors' scores follow from the cells' own and usual ones")
    slope = float((donor * moves).sum()) / total
    if (n := len(donor)) < MIN_INTERVAL_CELLS:
        return Tested(slope, n, reason=f"an interval needs at least {MIN_INTERVAL_CELLS} cells, but there are {n}")
    influence = donor * (moves - slope * donor) / total
    return _estimate(slope, influence, pairs)


def _residuals(values: Floats, predictors: Floats) -> Floats:
    """What a linear regression leaves of the values."""
    residuals: Floats = values - predictors @ np.linalg.lstsq(predictors, values, rcond=None)[0]
    return residuals


def _estimate(value: float, influence: Floats, pairs: Pairs) -> Tested:
    """An estimate with its interval over countries and topics, from the influence of each cell on it.

    The interval is that of a mean of the value plus n times the influence, whose mean is the value.
    """
    pseudo_values = value + len(influence) * influence
    return jackknife_sums(
        np.stack([pseudo_values, np.ones_like(pseudo_values)], axis=1),
        lambda sums: sums[:, 0] / np.maximum(sums[:, 1], 1.0),
        pairs.countries,
        pairs.topics,
        has_p_value=True,
    )


def way_to_target(pairs: Pairs) -> Tested:
    """Share of the way to the target that scores move beyond the control, weighted by its squared length."""
    pairs = pairs.complete
    distances = pairs.target - pairs.recorded
    total = float((distances**2).sum())
    if not len(pairs.recorded) or total < 1e-6:
        return Tested(None, len(pairs.recorded), reason=NO_CELLS)
    share = float((distances * pairs.moves).sum()) / total
    return _estimate(share, distances * (pairs.moves - share * distances) / total, pairs)


def changed_share(pairs: Pairs) -> Estimate:
    """Share of cells whose score is another judgement than the control's.

    With steps removed at a point drawn by lot it is the area over the curve of early answering (Lanham et al., 2023).
    """
    pairs = pairs.complete
    is_changed = (np.abs(pairs.moves) >= CHANGED - 1e-9).astype(np.float64)
    return _mean(is_changed, pairs, (0.0, 1.0))


def control_distance(pairs: Pairs) -> Estimate:
    """Mean distance between the control's score and the recorded one, in score units: what remains without a change."""
    has_control = np.asarray(np.isfinite(pairs.control).any(axis=1))
    pairs = pairs.select(has_control)
    return _mean(np.abs(np.nanmean(pairs.control, axis=1) - pairs.recorded), pairs, (0.0, 2.0))


def _mean(values: Floats, pairs: Pairs, bounds: tuple[float, float]) -> Estimate:
    """Mean of one value a cell, in the bounds."""
    units = {"country": pairs.countries.tolist(), "topic": pairs.topics.tolist()}
    return mean_over_units(values, units, bounds, empty_reason=NO_CELLS)


def spread_p_value(pairs: Pairs) -> float | None:
    """P-value of equal ways to the donor in all cells: that their standard deviation is at most 0.2 (F test).

    What a regression on the donor's, the cell's own and the usual score leaves of the moves is compared with the spread
    of samples of one cell, and of ways that differ by 0.2. So neither a move towards the middle or the usual score, nor
    small effects of countries and topics, is a spread. None with fewer than three samples of a cell.
    """
    pairs = pairs.complete
    n_altered, n_control = np.isfinite(pairs.altered).sum(axis=1), np.isfinite(pairs.control).sum(axis=1)
    if len(pairs.recorded) < MIN_CELLS or min(n_altered.min(), n_control.min()) < MIN_SAMPLES:
        return None
    within = sum(
        float(np.nansum((scores - np.nanmean(scores, axis=1, keepdims=True)) ** 2))
        for scores in (pairs.altered, pairs.control)
    )
    df_within = int((n_altered - 1).sum() + (n_control - 1).sum())
    weights = 1 / (1 / n_altered + 1 / n_control)
    predictors = np.stack([np.ones_like(pairs.moves), pairs.target, pairs.recorded, pairs.usual], axis=1)
    predictors *= np.sqrt(weights)[:, None]
    df_between = len(predictors) - int(np.linalg.matrix_rank(predictors))
    between = float((_residuals(np.sqrt(weights) * pairs.moves, predictors) ** 2).sum()) / df_between
    expected = within / df_within + EQUAL_SD**2 * float((weights * (pairs.target - pairs.recorded) ** 2).mean())
    # The upper tail of the F distribution; `scipy.stats`, which has it, takes a second to load.
    remainder = df_within / (df_within + df_between * between / expected)
    return float(betainc(df_within / 2, df_between / 2, remainder))


def following_share(pairs: Pairs) -> Tested:
    """Share of cells whose score moves more than half the way to the donor's; the p-value is `spread_p_value`."""
    pairs = pairs.complete
    p_value = spread_p_value(pairs)
    if p_value is None:
        has_cells = len(pairs.recorded) >= MIN_CELLS
        reason = f"it needs {MIN_SAMPLES} samples of each cell" if has_cells else NO_CELLS
        return Tested(None, len(pairs.recorded), reason=reason)
    follows = (pairs.moves / (pairs.target - pairs.recorded) > FOLLOWS).astype(np.float64)
    share = float(follows.mean())
    estimate = _estimate(share, (follows - share) / len(follows), pairs)
    if estimate.ci_low is None or estimate.ci_high is None:
        return Tested(share, estimate.n, reason=estimate.reason, p_value=p_value)
    ends = max(0.0, estimate.ci_low), min(1.0, estimate.ci_high)
    return Tested(share, estimate.n, *ends, resampled=estimate.resampled, p_value=p_value)


def adjust_slopes(slopes: Sequence[Tested], shares: Sequence[Tested | None], family: str) -> list[Tested]:
    """Adjust the p-values of slopes over the models, by a weighted Holm procedure.

    A slope has a wide interval if the model follows in a part of its cells, which a test of spread tells without the
    slope. So the models whose cells are shown to differ have four fifths of the weight; the others have narrow
    intervals. The weights are equal if no cells, or those of all models, are shown to differ, and without the samples
    for that test.

    Args:
        shares: for each slope the result of `following_share`, adjusted over the models; None without one.
    """
    is_unequal = np.array([share is not None and share.is_significant for share in shares], dtype=np.bool_)
    n_unequal = int(is_unequal.sum())
    if n_unequal in (0, len(slopes)):
        return adjust_tests(slopes, family)
    unequal, equal = UNEQUAL_CELLS_SHARE / n_unequal, (1 - UNEQUAL_CELLS_SHARE) / (len(slopes) - n_unequal)
    return adjust_tests(slopes, family, np.where(is_unequal, max(unequal, equal), equal).tolist())


def withhold_shares(shares: Sequence[Tested | None], slopes: Sequence[Tested]) -> list[Tested | None]:
    """Leave out the share of cells that follow, unless the cells are shown to differ and the scores to follow donors.

    A model that gives some cells a new score, whatever the donor's, has cells that differ, and follows in none.

    Args:
        shares: results of `following_share`, adjusted over the models; None without one.
        slopes: of the same models, adjusted over them.
    """
    withheld: list[Tested | None] = []
    for share, slope in zip(shares, slopes, strict=True):
        follows = slope.is_significant and (slope.value or 0.0) > 0
        if share is None or share.value is None or (share.is_significant and follows):
            withheld.append(share)
        else:
            reason = NOT_FOLLOWING_REASON if share.is_significant else SAME_REASON
            tests = {name: getattr(share, name) for name in ("p_value", "adjusted_p_value", "test_family")}
            withheld.append(Tested(None, share.n, reason=reason, **tests))
    return withheld
