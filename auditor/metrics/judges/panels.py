"""Panels of judges: how many judges that err independently they are worth, and balanced panels by lot.

The effective number of judges is that of judges with independent errors whose equal votes are worth as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import Estimate, Floats
from auditor.metrics.intervals.jackknife_interval import (
    LOG,
    Labels,
    estimate_from_replicates,
    leave_one_out_sums,
    replicate_over_units,
)
from auditor.metrics.intervals.paired import widen_for_choice
from auditor.metrics.judges.copying import MIN_ERRORS, MIN_LABELS, N_SUMS, judge_pairs, pooled_phi, sum_pairs


class EffectiveJudges(NamedTuple):
    """The effective number of judges.

    Attributes:
        number: from 1 to the number of counted judges; n counts labelled traces.
        counted: positions of the judges that it is about: those with at least 10 errors and 10 right verdicts.
    """

    number: Estimate
    counted: list[int]


def effective_number(correlations: ArrayLike) -> Floats:
    """n² / 1ᵀR1: the precision of the mean of n correlated votes, in judges that err independently.

    It is the variance of one judge divided by that of the mean with equal weights, as votes are counted (Kish's
    effective sample size; Survey Sampling, 1965, section 8.1). The number of judges if they are uncorrelated; 1 if all
    are copies; seven copies and two other judges are worth 1.6.

    Args:
        correlations: shape (..., judges, judges).

    Returns:
        Shape (...), from 1 to n², above n where correlations are negative; nan where a correlation is nan.
    """
    matrices = np.asarray(correlations, dtype=np.float64)
    numbers: Floats = matrices.shape[-1] ** 2 / np.maximum(matrices.sum(axis=(-2, -1)), 1.0)
    return numbers


def effective_judges(verdicts: ArrayLike, truth: ArrayLike, units: Labels) -> EffectiveJudges:
    """Estimate the effective number of judges from their errors on labelled traces.

    Errors are compared within the truth (VALID or INVALID), over all topics: topics that are hard for all judges make
    them count for less. The interval is over countries and topics, or items, on the logarithmic scale.

    Args:
        verdicts, truth, units: as for `judge_copying.compare_errors`.
    """
    table, labels = np.asarray(verdicts, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    is_labelled = ~np.isnan(labels) & (~np.isnan(table)).any(axis=0)
    errors = np.where(np.isnan(table[:, is_labelled]), np.nan, table[:, is_labelled] != labels[is_labelled])
    n, n_errors = (~np.isnan(errors)).sum(axis=1), np.nansum(errors, axis=1)
    counted = [int(i) for i in np.flatnonzero(np.minimum(n_errors, n - n_errors) >= MIN_ERRORS)]
    n_traces = int(is_labelled.sum())
    reason = _undefined_reason(n_traces, len(counted))
    if reason is not None:
        return EffectiveJudges(Estimate(None, n_traces, reason=reason), counted)
    return EffectiveJudges(_estimate_number(errors[counted], labels[is_labelled], units, is_labelled), counted)


def _estimate_number(errors: Floats, labels: Floats, units: Labels, is_labelled: NDArray[np.bool_]) -> Estimate:
    """Estimate the number from the errors on the labelled traces, shape (judges, traces)."""
    unit_labels = {unit: np.asarray(values)[is_labelled] for unit, values in units.items()}
    codes = np.stack([np.unique(values, return_inverse=True)[1].ravel() for values in unit_labels.values()])
    cell_codes, cell = np.unique(codes, axis=1, return_inverse=True)
    stratum = np.unique(labels, return_inverse=True)[1].ravel()
    sums = sum_pairs(errors, cell.ravel(), stratum)
    n_judges, n_strata, n_pairs = len(errors), int(stratum.max()) + 1, len(judge_pairs(len(errors)))
    moments = np.zeros((len(sums.sums), n_strata, n_pairs, N_SUMS))
    moments[np.arange(len(moments)), sums.stratum] = sums.sums
    flat = moments.reshape(len(moments), -1)

    def number(flat_sums: Floats) -> Floats:
        """The effective number from sums, shape (replicates, strata * pairs * 4)."""
        phi = pooled_phi(flat_sums.reshape(-1, n_strata, n_pairs, N_SUMS))
        return effective_number(_to_matrices(phi, judge_pairs(n_judges), n_judges))

    group_units = {unit: cell_codes[row][sums.cell] for row, unit in enumerate(unit_labels)}
    replicates = replicate_over_units(flat, number, group_units)
    [value] = number(flat.sum(axis=0)[None])
    if np.isnan(value):
        return Estimate(None, errors.shape[1], reason="two judges have no labelled trace in common")
    estimate = estimate_from_replicates(
        float(value), errors.shape[1], replicates.units, LOG, (1.0, n_judges), replicates.cells
    )
    if estimate.value is None or estimate.value <= n_judges:
        return estimate
    return Estimate(float(n_judges), estimate.n, estimate.ci_low, estimate.ci_high, estimate.reason, estimate.resampled)


def _to_matrices(values: Floats, pairs: Sequence[tuple[int, int]], n_judges: int) -> Floats:
    """Arrange values of pairs, shape (..., pairs), in symmetric matrices with ones on the diagonal."""
    matrices = np.broadcast_to(np.eye(n_judges), (*values.shape[:-1], n_judges, n_judges)).copy()
    for k, (i, j) in enumerate(pairs):
        matrices[..., i, j] = matrices[..., j, i] = values[..., k]
    return matrices


def _undefined_reason(n_traces: int, n_counted: int) -> str | None:
    """Why the number is not estimated; None where it is."""
    if n_traces < MIN_LABELS:
        return f"{MIN_LABELS} labelled traces are needed, but there are {n_traces}"
    if n_counted < 2:
        return f"two judges with at least {MIN_ERRORS} errors and {MIN_ERRORS} right verdicts are needed"
    return None


class PanelAccuracy(NamedTuple):
    """How often a panel's majority is right, beside its judges; intervals are over cells, such as countries × topics.

    Attributes:
        best: position of the judge with the highest accuracy.
    """

    majority: Estimate
    """Accuracy of the strict majority of a trace's verdicts; `n` counts labelled traces with one."""
    best: int
    gain: Estimate
    """The majority's accuracy minus that of the best judge, on the traces that both decide; `n` counts these. The best
    judge is chosen by the same labels, so its accuracy is too high, and the gain too low, where judges are alike: the
    interval is widened for the choice (Bonferroni)."""
    independent: Estimate
    """Accuracy of a majority of judges with the same sensitivity and specificity whose errors are independent."""
    loss: Estimate
    """The majority's accuracy minus `independent`: what errors that the judges share cost."""


def panel_accuracy(
    verdicts: ArrayLike,
    labels: ArrayLike,
    units: Labels,
    weights: ArrayLike,
    *,
    valid_shares: ArrayLike | None = None,
    panels: ArrayLike | None = None,
) -> PanelAccuracy | None:
    """Compare the majority of a panel with its best judge, and with independent judges of the same accuracy.

    Args:
        verdicts: shape (judges, traces): 1 VALID, 0 INVALID, nan without a verdict. Those that were asked for because
            others disagreed are left out.
        labels: shape (traces,), people's, in [0, 1]; nan without a label. They are a random sample.
        units: for each of one or two kinds of units, such as `country`, the unit of each trace, shape (traces,).
        weights: shape (traces,), of the labelled traces, such as 1 / inclusion probability.
        valid_shares: shape (traces,), share of VALID among all verdicts, which decides; by default of `verdicts`.
        panels: shape (judges, traces), whether each judge is on the panel; by default those with one of `verdicts`.

    Returns:
        None with fewer than two judges with labels of both kinds, or without a majority.
    """
    table, truth = np.asarray(verdicts, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    is_labelled = ~np.isnan(truth) & (~np.isnan(table)).any(axis=0)
    table, truth, weight = table[:, is_labelled], truth[is_labelled], np.asarray(weights, dtype=np.float64)[is_labelled]
    share = np.nanmean(table, axis=0) if valid_shares is None else np.asarray(valid_shares)[is_labelled]
    majority = np.where(share == 0.5, np.nan, (share > 0.5).astype(np.float64))
    moments = _sum_hits(np.vstack([table, majority]), truth, weight)
    totals = moments.sum(axis=0)
    labelled = totals[[0, 2]]  # labels VALID, and INVALID, of each judge and of the majority
    usable = np.flatnonzero((labelled[:, :-1] > 0).all(axis=0))
    if len(usable) < 2 or not (labelled[:, -1] > 0).all():
        return None
    best = int(usable[np.argmax((totals[1] + totals[3])[usable] / (totals[0] + totals[2])[usable])])
    both = np.where(np.isnan(table[best] + majority), np.nan, [table[best], majority])
    n, n_both = int((~np.isnan(majority)).sum()), int((~np.isnan(both[0])).sum())
    is_member = ~np.isnan(table) if panels is None else np.asarray(panels, dtype=np.bool_)[:, is_labelled]
    members, panel_of = np.unique(is_member[usable], axis=1, return_inverse=True)
    in_panel = np.eye(members.shape[1])[panel_of.ravel()] * weight[:, None]
    columns = np.dstack([moments[:, :, [*usable, len(table)]], _sum_hits(both, truth, weight)])
    flat = np.hstack([columns.reshape(len(truth), -1), in_panel * truth[:, None], in_panel * (1 - truth)[:, None]])

    [value] = _compute_accuracies(flat.sum(axis=0)[None], members)
    codes = [np.unique(np.asarray(names)[is_labelled], return_inverse=True)[1].ravel() for names in units.values()]
    cells = np.unique(np.stack(codes), axis=1, return_inverse=True)[1].ravel()
    replicates = _compute_accuracies(leave_one_out_sums(flat, cells), members)
    unit = "cell" if len(units) > 1 else next(iter(units))
    of_majority, of_best, of_majority_with_best, of_independent = range(4)

    def estimate(plus: int, minus: int | None = None, n: int = n) -> Estimate:
        """The estimate of one column, or of a difference of two."""
        figures = [column[..., plus] - (0 if minus is None else column[..., minus]) for column in (value, replicates)]
        bounds = (0.0 if minus is None else -1.0, 1.0)
        return estimate_from_replicates(float(figures[0]), n, {unit: figures[1]}, bounds=bounds)

    return PanelAccuracy(
        estimate(of_majority),
        best,
        widen_for_choice(estimate(of_majority_with_best, of_best, n_both), len(usable))
        if n_both
        else Estimate(None, 0, reason="the best judge and the majority decide no trace together"),
        estimate(of_independent),
        estimate(of_majority, of_independent),
    )


def _compute_accuracies(sums: Floats, members: NDArray[np.bool_]) -> Floats:
    """Accuracies of the majority; of the best judge and the majority where both decide; and of independent judges.

    Args:
        sums: shape (replicates, 4 * (judges + 3) + 2 * panels): `_sum_hits` of each judge, the majority, and the best
            judge and the majority where both decide; then the labels VALID, and those INVALID, of each panel.
        members: shape (judges, panels), whether each judge is on the panel.

    Returns:
        Shape (replicates, 4).
    """
    n_hits = 4 * (len(members) + 3)
    hits = sums[:, :n_hits].reshape(len(sums), 4, -1)
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = ((hits[:, 1] + hits[:, 3]) / (hits[:, 0] + hits[:, 2]))[:, -3:]
        rates = hits[:, [1, 3], :-3] / hits[:, [0, 2], :-3]
    right, decided = np.zeros(len(sums)), np.zeros(len(sums))
    for number, judges in enumerate(members.T):
        for side, n_labels in enumerate(np.split(sums[:, n_hits:], 2, axis=1)):
            of_panel = _majority_probabilities(rates[:, side, judges])
            right += n_labels[:, number] * of_panel[0]
            decided += n_labels[:, number] * of_panel.sum(axis=0)
    return np.column_stack([accuracy, right / decided])


def _sum_hits(rows: Floats, truth: Floats, weight: Floats) -> Floats:
    """Weighted labels VALID, those of them found VALID, labels INVALID, and those found INVALID.

    Args:
        rows: shape (rows, traces), verdicts of judges and of a majority.

    Returns:
        Shape (traces, 4, rows).
    """
    has_verdict, is_valid = ~np.isnan(rows), np.nan_to_num(rows)
    positive, negative = has_verdict * truth * weight, has_verdict * (1 - truth) * weight
    moments: Floats = np.stack([positive, positive * is_valid, negative, negative * (1 - is_valid)])
    return moments.transpose(2, 0, 1)


def _majority_probabilities(rates: Floats) -> Floats:
    """Probabilities that more than half of independent judges are right, and that more than half are wrong.

    Args:
        rates: shape (replicates, judges), of being right.

    Returns:
        Shape (2, replicates); a tie is neither.
    """
    n_judges = rates.shape[1]
    n_right = np.zeros((len(rates), n_judges + 1))  # the distribution of the number of judges that are right
    n_right[:, 0] = 1
    for judge in range(n_judges):
        rate = rates[:, judge, None]
        n_right[:, 1:] = n_right[:, 1:] * (1 - rate) + n_right[:, :-1] * rate
        n_right[:, 0] *= 1 - rate[:, 0]
    counts = np.arange(n_judges + 1)
    probabilities: Floats = np.stack(
        [n_right[:, 2 * counts > n_judges].sum(axis=1), n_right[:, 2 * counts < n_judges].sum(axis=1)]
    )
    return probabilities


def balanced_panels(eligible: ArrayLike, items: int, per_item: int, seed: int) -> NDArray[np.bool_]:
    """Assign raters to items such that rates over raters stay unbiased.

    An incomplete block design (Cochran and Cox, Experimental Designs, 2nd ed. 1957, ch. 9), assigned item by item: of
    the raters eligible for an author, those with the fewest of its items so far are taken, ties in an order that is
    drawn for each item and is the same for all authors. So after every item, the numbers of an author's items that its
    raters have differ by at most one. Raters of one author's item mostly rate the other authors' items of the same
    number, too, so comparisons between authors are mostly within raters.

    Args:
        eligible: shape (authors, raters), whether a rater may rate an author.
        items: number of items of each author.
        per_item: raters of an item; an author with fewer eligible raters gets all of them.
        seed: of the order of ties.

    Returns:
        Shape (items, authors, raters), whether the rater rates that item of the author. A design with fewer items
        equals the beginning of one with more.

    Raises:
        ValueError: not a table, a negative number of items, or per_item below 1.
    """
    is_eligible = np.asarray(eligible, dtype=np.bool_)
    if is_eligible.ndim != 2 or items < 0 or per_item < 1:
        raise ValueError(f"panels need a table (authors, raters), {items} items and {per_item} raters an item")
    n_authors, n_raters = is_eligible.shape
    if per_item >= is_eligible.sum(axis=1, initial=0).max(initial=0):
        return np.broadcast_to(is_eligible, (items, n_authors, n_raters)).copy()
    rng = np.random.default_rng(seed)
    panels = np.zeros((items, n_authors, n_raters), dtype=np.bool_)
    load = np.where(is_eligible, 0.0, np.inf)  # number of the author's items that each rater has so far
    author_rows = np.arange(n_authors)[:, None]
    for panel in panels:
        least_loaded = np.argpartition(load + rng.random(n_raters), per_item - 1, axis=1)[:, :per_item]
        panel[author_rows, least_loaded] = True
        panel &= is_eligible
        load += panel
    return panels
