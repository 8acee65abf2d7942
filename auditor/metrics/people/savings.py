"""Fewer questions or samples: stopping rules, subsets of samples, and a replay with fewer questions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.correlation import pearson
from auditor.metrics.intervals.estimate import LOWER_QUANTILE, UPPER_QUANTILE, Estimate, Floats
from auditor.metrics.judges.panels import balanced_panels

FIRST_INTERIM_LOOK = 64
"""Number of cells at the first interim look."""


def is_settled(scores: ArrayLike, tolerance: float) -> bool:
    """Whether the standard error of a mean, s / sqrt(n), is at most `tolerance`; never for fewer than two scores.

    Args:
        scores: shape (n,), scores of the samples; nan is left out.
        tolerance: at least 0, on the scale of the scores.
    """
    values = np.asarray(scores, dtype=np.float64)
    present = values[~np.isnan(values)]
    return len(present) > 1 and bool(present.std(ddof=1) <= tolerance * np.sqrt(len(present)) + 1e-12)


def is_narrow(scores: Sequence[ArrayLike], truth: ArrayLike, width: float) -> bool:
    """Whether the 95% Fisher interval of every model's r with people has at most this width; False if one has none.

    Fisher's interval takes cells as independent. It is not the interval that a report prints, which is over countries
    and topics, and usually wider.

    Args:
        scores: for each model, shape (n,); nan where a cell has no score.
        truth: shape (n,).
        width: upper minus lower end.
    """
    correlations = [pearson(column, truth) for column in scores]
    return all(
        r.ci_low is not None and r.ci_high is not None and r.ci_high - r.ci_low <= width + 1e-12 for r in correlations
    ) and bool(correlations)


def next_interim_look(n_asked: int, n_cells: int) -> int:
    """Number of cells at the next interim look: a fifth more than now."""
    return min(n_cells, max(FIRST_INTERIM_LOOK, n_asked + -(-n_asked // 5)))


def stratified_order(strata: Sequence[Hashable], seed: int) -> NDArray[np.intp]:
    """An order in which every leading part contains each stratum in proportion, within one item.

    Items of a stratum are shuffled and placed at equal distances from a random start: systematic sampling (Cochran,
    Sampling Techniques, 3rd ed. 1977, ch. 8).

    Args:
        strata: of each item.
        seed: of the shuffles and starts. Equal items and seed give the same order.

    Returns:
        Shape (items,): positions in the input sequence.
    """
    rng = np.random.default_rng(seed)
    position: Floats = np.empty(len(strata))
    members: dict[Hashable, list[int]] = {}
    for i, stratum in enumerate(strata):
        members.setdefault(stratum, []).append(i)
    for items in members.values():
        position[rng.permutation(items)] = (np.arange(len(items)) + rng.random()) / len(items)
    return np.argsort(position, kind="stable")


MAX_DRAWN_VALUES = 2_000_000
"""Random numbers that are drawn together; bounds the memory."""


def draw_subset_means(sample_scores: Floats, n_samples: int, n_subsets: int, rng: np.random.Generator) -> Floats:
    """Means of samples drawn without replacement in each cell.

    Args:
        sample_scores: shape (cells, samples); nan where a sample is not usable.
        n_samples: number of samples drawn in each cell, at most those recorded.

    Returns:
        Shape (n_subsets, cells); nan where no drawn sample is usable.
    """
    n_per_block = max(1, MAX_DRAWN_VALUES // max(1, sample_scores.size))
    blocks = [
        _draw_means(sample_scores, n_samples, min(n_per_block, n_subsets - start), rng)
        for start in range(0, n_subsets, n_per_block)
    ]
    return np.concatenate(blocks)


def _draw_means(sample_scores: Floats, n_samples: int, n_subsets: int, rng: np.random.Generator) -> Floats:
    """Means of some subsets, shape (n_subsets, cells); drawn in the same order as one by one."""
    order = rng.random((n_subsets, *sample_scores.shape)).argsort(axis=2)[:, :, :n_samples]
    drawn_scores = np.take_along_axis(sample_scores[None], order, axis=2)
    n_usable = (~np.isnan(drawn_scores)).sum(axis=2)
    return np.where(n_usable > 0, np.nansum(drawn_scores, axis=2) / np.maximum(n_usable, 1), np.nan)


def estimate_over_subsets(
    figures: ArrayLike, n_cells: int, unused_share: float, bounds: tuple[float, float]
) -> Estimate:
    """Mean of a figure over subsets, with the 95% range expected for new answers; `n` counts cells.

    A subset of k of K samples has (1 - k / K) of the variance of k new samples, so that the range of the subsets'
    figures is divided by the root of that share.

    Args:
        figures: shape (subsets,), such as r or MAE of each subset; nan where undefined.
        unused_share: 1 - k / K.
        bounds: limits of the range.

    Returns:
        None with a reason without any figure; no range, with a reason, for a single subset.
    """
    subset_figures = np.asarray(figures, dtype=np.float64)
    known = subset_figures[~np.isnan(subset_figures)]
    if not len(known):
        return Estimate(None, n_cells, reason="too few cells, or no variation among them")
    if len(subset_figures) == 1:
        return Estimate(float(known[0]), n_cells, reason="all samples: there is only one subset, so no range")
    mean = float(known.mean())
    low, high = np.clip(
        mean + (np.quantile(known, (LOWER_QUANTILE, UPPER_QUANTILE)) - mean) / np.sqrt(unused_share), *bounds
    )
    return Estimate(mean, n_cells, float(low), float(high), resampled=("sample",))


def subset_standard_error(sample_scores: Floats, n_samples: int) -> float | None:
    """Standard error of a mean of `n_samples`, from the within-cell variance pooled over cells.

    Args:
        sample_scores: shape (cells, samples); nan where a sample is not usable.

    Returns:
        None where no cell has two usable samples.
    """
    n_usable = (~np.isnan(sample_scores)).sum(axis=1)
    has_several = n_usable > 1
    if not has_several.any():
        return None
    variance: Floats = np.nanvar(sample_scores[has_several], axis=1, ddof=1)
    return float(np.sqrt(variance.mean() / n_samples))


Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class CompleteAudit:
    """An audit in which every question was asked.

    Attributes:
        samples: scores, shape (models, cells, samples); nan where a sample has none.
        verdicts: shape (judges, models, cells, samples): 1 is VALID, 0 INVALID, nan none.
        may_judge: shape (models, judges), whether a judge may judge a model.
        truth: human scores, shape (cells,).
        strata: label of each cell, such as its region and topic.
    """

    samples: Floats
    verdicts: NDArray[np.float32]
    may_judge: Bools
    truth: Floats
    strata: Sequence[Hashable]


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """How the number of questions is reduced, named as in the configuration; the defaults ask everything."""

    name: str
    judges_per_trace: int | None = None
    adaptive: bool = False
    tolerance: float | None = None
    min_samples: int = 3
    target_width: float | None = None


@dataclass(frozen=True)
class ReplayedAudit:
    """What an audit with fewer questions would have found.

    Attributes:
        scores, variances, counts: of the samples of a cell, shape (models, cells); nan where there are none, or one.
        counted_verdicts: verdicts that rates are computed from, shape as `CompleteAudit.verdicts`; nan where not asked,
            or asked only to settle a dispute.
        winners: of each conflict of the complete audit, by the panel: 1 left, -1 right, 0 open; shape (conflicts,).
        direct, review: number of calls for scores, and for verdicts.
    """

    scores: Floats
    variances: Floats
    counts: Floats
    counted_verdicts: NDArray[np.float32]
    winners: NDArray[np.int8]
    direct: int
    review: int


def replay_audit(audit: CompleteAudit, plan: SamplingPlan, threshold: float, seed: int) -> ReplayedAudit:
    """Replay an audit with fewer samples, cells and judges.

    Failed samples count as asked, as they do in an audit. An adaptive panel's calls for conflicts are those up to the
    judge that settles one, in order: an upper bound, since existing verdicts may settle it earlier.

    Args:
        threshold: smallest difference of two scores that is a conflict.
        seed: of panels and orders.
    """
    is_sampled = _select_samples(audit, plan, seed)
    scores, variances, counts = _sample_moments(np.where(is_sampled, audit.samples, np.nan))
    assignments = _assign_judges(audit, plan, is_sampled, seed)
    counted_assignments = assignments if not plan.adaptive else _initial_assignments(assignments, seed)
    conflicts = _find_conflicts(audit, threshold)
    votes, may_vote = _judge_votes(np.where(assignments, audit.verdicts, np.nan), assignments, conflicts)
    asked_assignments = (
        assignments
        if not plan.adaptive
        else _escalated_assignments(audit, assignments, counted_assignments, conflicts, votes, may_vote, seed)
    )
    return ReplayedAudit(
        scores=scores,
        variances=variances,
        counts=counts,
        counted_verdicts=np.where(counted_assignments, audit.verdicts, np.nan).astype(np.float32),
        winners=_majority_winners(votes, may_vote),
        direct=int(is_sampled.sum()),
        review=int(asked_assignments.sum()),
    )


# --- samples and cells ------------------------------------------------------------------------------------------


def _select_samples(audit: CompleteAudit, plan: SamplingPlan, seed: int) -> Bools:
    """Which samples are asked, shape (models, cells, samples)."""
    n_samples = audit.samples.shape[2]
    is_sampled = np.ones(audit.samples.shape, dtype=np.bool_)
    if plan.tolerance is not None:
        for n_taken in range(plan.min_samples, n_samples):
            _, variance, count = _sample_moments(audit.samples[:, :, :n_taken])
            is_settled = (count > 1) & (np.sqrt(variance / np.maximum(count, 1)) <= plan.tolerance + 1e-12)
            is_sampled[:, :, n_taken:] &= ~is_settled[:, :, None]
    if plan.target_width is not None:
        is_sampled &= _select_cells(audit, is_sampled, plan.target_width, seed)[None, :, None]
    return is_sampled


def _select_cells(audit: CompleteAudit, sample_mask: Bools, width: float, seed: int) -> Bools:
    """Which cells are asked until every model's interval is narrow enough, shape (cells,)."""
    scores, _, _ = _sample_moments(np.where(sample_mask, audit.samples, np.nan))
    order = stratified_order(audit.strata, seed)
    n_asked = next_interim_look(0, len(order))
    while n_asked < len(order) and not is_narrow(list(scores[:, order[:n_asked]]), audit.truth[order[:n_asked]], width):
        n_asked = next_interim_look(n_asked, len(order))
    is_asked = np.zeros(len(order), dtype=np.bool_)
    is_asked[order[:n_asked]] = True
    return is_asked


def _sample_moments(samples: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, variance (divisor n - 1) and number of the scores of each cell, shape (models, cells) each."""
    count = (~np.isnan(samples)).sum(axis=2).astype(np.float64)
    total = np.nansum(samples, axis=2)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    sum_of_squares = np.nansum((samples - mean[:, :, None]) ** 2, axis=2)
    return mean, np.where(count > 1, sum_of_squares / np.maximum(count - 1, 1), np.nan), count


# --- judges -----------------------------------------------------------------------------------------------------


def _assign_judges(audit: CompleteAudit, plan: SamplingPlan, sample_mask: Bools, seed: int) -> Bools:
    """Which judges are assigned to which traces, shape (judges, models, cells, samples)."""
    n_models, n_cells, n_samples = audit.samples.shape
    is_reviewed = sample_mask & ~np.isnan(audit.samples)
    if plan.tolerance is not None:
        is_reviewed[:, :, plan.min_samples :] = False
    eligible = np.broadcast_to(audit.may_judge.T[:, :, None, None], audit.verdicts.shape)
    if plan.judges_per_trace is not None:
        panels = balanced_panels(audit.may_judge, n_cells * n_samples, plan.judges_per_trace, seed)
        eligible = panels.reshape(n_samples, n_cells, n_models, -1).transpose(3, 2, 1, 0)
    return eligible & is_reviewed[None]


def _draw_turns(assignments: Bools, seed: int) -> NDArray[np.intp]:
    """Each judge's turn (from 0) on each trace, in an order drawn for the trace; judges not assigned come last.

    The shape is that of `assignments`, (judges, models, cells, samples).
    """
    draws = np.random.default_rng(seed).random(assignments.shape, dtype=np.float32)
    turns: NDArray[np.intp] = np.where(assignments, draws, 2).argsort(axis=0).argsort(axis=0)
    return turns


def _initial_assignments(assignments: Bools, seed: int) -> Bools:
    """The assignments that an adaptive panel always asks: a bare majority of each trace's judges."""
    panel_sizes = assignments.sum(axis=0)
    initial: Bools = assignments & (_draw_turns(assignments, seed) < np.minimum(panel_sizes, panel_sizes // 2 + 1))
    return initial


def _escalated_assignments(
    audit: CompleteAudit,
    assignments: Bools,
    initial_assignments: Bools,
    conflicts: NDArray[np.intp],
    votes: NDArray[np.int8],
    may_vote: Bools,
    seed: int,
) -> Bools:
    """All assignments that an adaptive panel asks.

    It asks until no vote can change the majority on the trace, nor on any of its conflicts.

    Args:
        conflicts: shape (3, conflicts): left model, right model and cell.
        votes, may_vote: shape (judges, conflicts), see `_judge_votes`.
    """
    turns, panel_sizes = _draw_turns(assignments, seed), assignments.sum(axis=0)
    is_asked = initial_assignments.copy()
    for turn in range(int(panel_sizes.max(initial=0))):
        next_assignments = assignments & (turns == turn) & ~initial_assignments
        n_valid, n_invalid = ((is_asked & (audit.verdicts == value)).sum(axis=0) for value in (1, 0))
        n_leading, n_remaining = np.maximum(n_valid, n_invalid), panel_sizes - is_asked.sum(axis=0)
        is_asked |= (
            next_assignments & ((2 * n_leading <= panel_sizes) & (2 * (n_leading + n_remaining) > panel_sizes))[None]
        )
    needed = _votes_needed(votes, may_vote)
    left, right, cell = conflicts
    for side in (left, right):
        for judge in range(len(assignments)):
            decides = needed[judge]
            is_asked[judge, side[decides], cell[decides]] |= assignments[judge, side[decides], cell[decides]]
    return is_asked


def _votes_needed(votes: NDArray[np.int8], may_vote: Bools) -> Bools:
    """Whether a judge votes on a conflict, in order, before the conflict is settled; shape (judges, conflicts)."""
    n_voters = may_vote.sum(axis=0)
    n_voted_before: NDArray[np.intp] = np.cumsum(may_vote, axis=0) - may_vote
    votes_before = [np.cumsum(votes == side, axis=0) - (votes == side) for side in (1, -1)]
    n_leading = np.maximum(*votes_before)
    is_needed: Bools = may_vote & (2 * n_leading <= n_voters) & (2 * (n_leading + n_voters - n_voted_before) > n_voters)
    return is_needed


def _find_conflicts(audit: CompleteAudit, threshold: float) -> NDArray[np.intp]:
    """Conflicts of the complete audit: left model, right model and cell, shape (3, conflicts)."""
    scores, _, _ = _sample_moments(audit.samples)
    left, right = np.triu_indices(len(scores), 1)
    with np.errstate(invalid="ignore"):
        pair, cell = np.nonzero(np.abs(scores[left] - scores[right]) >= threshold - 1e-12)
    return np.stack([left[pair], right[pair], cell])


def _judge_votes(verdicts: Floats, assignments: Bools, conflicts: NDArray[np.intp]) -> tuple[NDArray[np.int8], Bools]:
    """Each judge's vote on each conflict (1 left, -1 right, 0 none), and whether it is assigned to both sides.

    Both of shape (judges, conflicts). A judge votes for the side with the larger share of VALID.
    """
    n_verdicts = (~np.isnan(verdicts)).sum(axis=3)
    valid_rate = np.where(n_verdicts > 0, np.nansum(verdicts, axis=3) / np.maximum(n_verdicts, 1), np.nan)
    is_assigned: Bools = np.asarray(assignments.any(axis=3))
    left, right, cell = conflicts
    with np.errstate(invalid="ignore"):
        difference = valid_rate[:, left, cell] - valid_rate[:, right, cell]
        votes = (difference > 1e-9).astype(np.int8) - (difference < -1e-9).astype(np.int8)
    return votes, is_assigned[:, left, cell] & is_assigned[:, right, cell]


def _majority_winners(votes: NDArray[np.int8], may_vote: Bools) -> NDArray[np.int8]:
    """Winner of each conflict by a strict majority of the judges that may vote: 1 left, -1 right, 0 open."""
    n_voters = may_vote.sum(axis=0)
    left_wins, right_wins = ((2 * ((votes == side) & may_vote).sum(axis=0) > n_voters) for side in (1, -1))
    winners: NDArray[np.int8] = left_wins.astype(np.int8) - right_wins.astype(np.int8)
    return winners


def peer_agreement_rates(verdicts: NDArray[np.float32]) -> Floats:
    """Share of VALID in the verdicts on each model, shape (models,); nan without any."""
    n_verdicts = (~np.isnan(verdicts)).sum(axis=(0, 2, 3))
    rates: Floats = np.where(n_verdicts > 0, np.nansum(verdicts, axis=(0, 2, 3)) / np.maximum(n_verdicts, 1), np.nan)
    return rates
