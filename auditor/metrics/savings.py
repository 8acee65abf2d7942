"""Replaying an audit of which everything was asked as if less had been: what would be found, for how many calls."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics.panel_design import balanced_panels
from auditor.metrics.stopping import is_narrow, next_interim_look, stratified_order

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class CompleteAudit:
    """An audit of which everything was asked.

    Attributes:
        samples: scores, shape (models, cells, samples); nan where a sample has none.
        said: verdicts, shape (judges, models, cells, samples): 1 is VALID, 0 INVALID, nan none.
        may: shape (models, judges), whether a judge may judge a model.
        truth: what people say, shape (cells,).
        strata: of each cell, such as its region and topic.
    """

    samples: Floats
    verdicts: NDArray[np.float32]
    may_judge: Bools
    truth: Floats
    strata: Sequence[Hashable]


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """How less is asked, as the configuration names it; the defaults ask everything."""

    name: str
    judges_per_trace: int | None = None
    adaptive: bool = False
    tolerance: float | None = None
    min_samples: int = 3
    target_width: float | None = None


@dataclass(frozen=True)
class ReplayedAudit:
    """What would have been asked.

    Attributes:
        scores, variances, counts: of the samples of a cell, shape (models, cells); nan where there are none, or one.
        heard: verdicts that rates rest on, as `FullData.said`, nan where not asked or asked only in dispute.
        winners: of each conflict of the full audit, by the panel: 1 left, -1 right, 0 open; shape (conflicts,).
        direct, review: calls.
    """

    scores: Floats
    variances: Floats
    counts: Floats
    counted_verdicts: NDArray[np.float32]
    winners: NDArray[np.int8]
    direct: int
    review: int


def replay_audit(audit: CompleteAudit, plan: SamplingPlan, threshold: float, seed: int) -> ReplayedAudit:
    """What an audit would have asked and found with some of its answers.

    Failed samples count as taken, as they do in an audit. An adaptive panel's calls for conflicts are those up to the
    judge that settles one, in order: an upper bound, since verdicts that are there already may settle it earlier.

    Args:
        threshold: least difference of two scores that is a conflict.
        seed: of panels and orders.
    """
    taken = _select_samples(audit, plan, seed)
    scores, variances, counts = _sample_moments(np.where(taken, audit.samples, np.nan))
    seats = _assign_judges(audit, plan, taken, seed)
    heard = seats if not plan.adaptive else _initial_assignments(seats, seed)
    conflicts = _find_conflicts(audit, threshold)
    votes, cast = _judge_votes(np.where(seats, audit.verdicts, np.nan), seats, conflicts)
    asked = seats if not plan.adaptive else _escalated_assignments(audit, seats, heard, conflicts, votes, cast, seed)
    return ReplayedAudit(
        scores=scores,
        variances=variances,
        counts=counts,
        counted_verdicts=np.where(heard, audit.verdicts, np.nan).astype(np.float32),
        winners=_majority_winners(votes, cast),
        direct=int(taken.sum()),
        review=int(asked.sum()),
    )


# --- samples and cells ------------------------------------------------------------------------------------------


def _select_samples(audit: CompleteAudit, plan: SamplingPlan, seed: int) -> Bools:
    """Which samples are taken, shape (models, cells, samples)."""
    k = audit.samples.shape[2]
    taken = np.ones(audit.samples.shape, dtype=np.bool_)
    if plan.tolerance is not None:
        for n in range(plan.min_samples, k):
            _, variance, count = _sample_moments(audit.samples[:, :, :n])
            settled = (count > 1) & (np.sqrt(variance / np.maximum(count, 1)) <= plan.tolerance + 1e-12)
            taken[:, :, n:] &= ~settled[:, :, None]
    if plan.target_width is not None:
        taken &= _select_cells(audit, taken, plan.target_width, seed)[None, :, None]
    return taken


def _select_cells(audit: CompleteAudit, sample_mask: Bools, width: float, seed: int) -> Bools:
    """Which cells are asked before every model's interval is narrow, shape (cells,)."""
    scores, _, _ = _sample_moments(np.where(sample_mask, audit.samples, np.nan))
    order = stratified_order(audit.strata, seed)
    n = next_interim_look(0, len(order))
    while n < len(order) and not is_narrow(list(scores[:, order[:n]]), audit.truth[order[:n]], width):
        n = next_interim_look(n, len(order))
    reached = np.zeros(len(order), dtype=np.bool_)
    reached[order[:n]] = True
    return reached


def _sample_moments(samples: Floats) -> tuple[Floats, Floats, Floats]:
    count = (~np.isnan(samples)).sum(axis=2).astype(np.float64)
    total = np.nansum(samples, axis=2)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    squares = np.nansum((samples - mean[:, :, None]) ** 2, axis=2)
    return mean, np.where(count > 1, squares / np.maximum(count - 1, 1), np.nan), count


# --- judges -----------------------------------------------------------------------------------------------------


def _assign_judges(audit: CompleteAudit, plan: SamplingPlan, sample_mask: Bools, seed: int) -> Bools:
    """Which judges are given which traces, shape as `said`."""
    models, cells, k = audit.samples.shape
    reviewed = sample_mask & ~np.isnan(audit.samples)
    if plan.tolerance is not None:
        reviewed[:, :, plan.min_samples :] = False
    seats = np.broadcast_to(audit.may_judge.T[:, :, None, None], audit.verdicts.shape)
    if plan.judges_per_trace is not None:
        dealt = balanced_panels(audit.may_judge, cells * k, plan.judges_per_trace, seed)
        seats = dealt.reshape(k, cells, models, -1).transpose(3, 2, 1, 0)
    return seats & reviewed[None]


def _draw_turns(assignments: Bools, seed: int) -> NDArray[np.intp]:
    """Each judge's turn on a trace, in an order drawn for it; those without a seat come last."""
    order = np.random.default_rng(seed).random(assignments.shape, dtype=np.float32)
    turns: NDArray[np.intp] = np.where(assignments, order, 2).argsort(axis=0).argsort(axis=0)
    return turns


def _initial_assignments(assignments: Bools, seed: int) -> Bools:
    """The seats that an adaptive panel asks whatever they say."""
    sizes = assignments.sum(axis=0)
    first: Bools = assignments & (_draw_turns(assignments, seed) < np.minimum(sizes, sizes // 2 + 1))
    return first


def _escalated_assignments(
    audit: CompleteAudit,
    assignments: Bools,
    initial_assignments: Bools,
    conflicts: NDArray[np.intp],
    votes: NDArray[np.int8],
    may_vote: Bools,
    seed: int,
) -> Bools:
    """All seats that an adaptive panel asks: until no vote on the trace, nor on any of its conflicts, can change it."""
    turns, sizes = _draw_turns(assignments, seed), assignments.sum(axis=0)
    asked = initial_assignments.copy()
    for turn in range(int(sizes.max(initial=0))):
        now = assignments & (turns == turn) & ~initial_assignments
        valid, refused = ((asked & (audit.verdicts == value)).sum(axis=0) for value in (1, 0))
        most, rest = np.maximum(valid, refused), sizes - asked.sum(axis=0)
        asked |= now & ((2 * most <= sizes) & (2 * (most + rest) > sizes))[None]
    needed = _votes_needed(votes, may_vote)
    left, right, cell = conflicts
    for side in (left, right):
        for judge in range(len(assignments)):
            at = needed[judge]
            asked[judge, side[at], cell[at]] |= assignments[judge, side[at], cell[at]]
    return asked


def _votes_needed(votes: NDArray[np.int8], may_vote: Bools) -> Bools:
    """Whether a judge's vote on a conflict is heard, in order, before it is settled; shapes (judges, conflicts)."""
    seats = may_vote.sum(axis=0)
    before: NDArray[np.intp] = np.cumsum(may_vote, axis=0) - may_vote
    ahead = [np.cumsum(votes == side, axis=0) - (votes == side) for side in (1, -1)]
    most = np.maximum(*ahead)
    needed: Bools = may_vote & (2 * most <= seats) & (2 * (most + seats - before) > seats)
    return needed


def _find_conflicts(audit: CompleteAudit, threshold: float) -> NDArray[np.intp]:
    """Conflicts of the full audit: left model, right model and cell, shape (3, conflicts)."""
    scores, _, _ = _sample_moments(audit.samples)
    left, right = np.triu_indices(len(scores), 1)
    with np.errstate(invalid="ignore"):
        pair, cell = np.nonzero(np.abs(scores[left] - scores[right]) >= threshold - 1e-12)
    return np.stack([left[pair], right[pair], cell])


def _judge_votes(verdicts: Floats, assignments: Bools, conflicts: NDArray[np.intp]) -> tuple[NDArray[np.int8], Bools]:
    """Each judge's vote on each conflict (1 left, -1 right, 0 none), and whether it has a seat in it."""
    given = (~np.isnan(verdicts)).sum(axis=3)
    rate = np.where(given > 0, np.nansum(verdicts, axis=3) / np.maximum(given, 1), np.nan)
    seated: Bools = np.asarray(assignments.any(axis=3))
    left, right, cell = conflicts
    with np.errstate(invalid="ignore"):
        difference = rate[:, left, cell] - rate[:, right, cell]
        votes = (difference > 1e-9).astype(np.int8) - (difference < -1e-9).astype(np.int8)
    return votes, seated[:, left, cell] & seated[:, right, cell]


def _majority_winners(votes: NDArray[np.int8], may_vote: Bools) -> NDArray[np.int8]:
    seats = may_vote.sum(axis=0)
    left, right = ((2 * ((votes == side) & may_vote).sum(axis=0) > seats) for side in (1, -1))
    won: NDArray[np.int8] = left.astype(np.int8) - right.astype(np.int8)
    return won


def peer_agreement_rates(verdicts: NDArray[np.float32]) -> Floats:
    """Share of VALID in the verdicts on each model, shape (models,); nan without any."""
    given = (~np.isnan(verdicts)).sum(axis=(0, 2, 3))
    rates: Floats = np.where(given > 0, np.nansum(verdicts, axis=(0, 2, 3)) / np.maximum(given, 1), np.nan)
    return rates
