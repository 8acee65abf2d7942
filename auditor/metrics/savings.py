"""Replaying an audit of which everything was asked as if less had been: what would be found, for how many calls."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics.panel_design import balanced_panels
from auditor.metrics.stopping import is_narrow, next_look, spread_order

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class FullData:
    """An audit of which everything was asked.

    Attributes:
        samples: scores, shape (models, cells, samples); nan where a sample has none.
        said: verdicts, shape (judges, models, cells, samples): 1 is VALID, 0 INVALID, nan none.
        may: shape (models, judges), whether a judge may judge a model.
        truth: what people say, shape (cells,).
        strata: of each cell, such as its region and topic.
    """

    samples: Floats
    said: NDArray[np.float32]
    may: Bools
    truth: Floats
    strata: Sequence[Hashable]


@dataclass(frozen=True, slots=True)
class Thrift:
    """How less is asked, as the configuration names it; the defaults ask everything."""

    name: str
    judges_per_trace: int | None = None
    adaptive: bool = False
    tolerance: float | None = None
    min_samples: int = 3
    target_width: float | None = None


@dataclass(frozen=True)
class Replayed:
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
    heard: NDArray[np.float32]
    winners: NDArray[np.int8]
    direct: int
    review: int


def replay(data: FullData, thrift: Thrift, threshold: float, seed: int) -> Replayed:
    """What an audit would have asked and found with some of its answers.

    Failed samples count as taken, as they do in an audit. An adaptive panel's calls for conflicts are those up to the
    judge that settles one, in order: an upper bound, since verdicts that are there already may settle it earlier.

    Args:
        threshold: least difference of two scores that is a conflict.
        seed: of panels and orders.
    """
    taken = _taken(data, thrift, seed)
    scores, variances, counts = _means(np.where(taken, data.samples, np.nan))
    seats = _seats(data, thrift, taken, seed)
    heard = seats if not thrift.adaptive else _first(seats, seed)
    conflicts = _conflicts(data, threshold)
    votes, cast = _votes(np.where(seats, data.said, np.nan), seats, conflicts)
    asked = seats if not thrift.adaptive else _disputed(data, seats, heard, conflicts, votes, cast, seed)
    return Replayed(
        scores=scores,
        variances=variances,
        counts=counts,
        heard=np.where(heard, data.said, np.nan).astype(np.float32),
        winners=_winners(votes, cast),
        direct=int(taken.sum()),
        review=int(asked.sum()),
    )


# --- samples and cells ------------------------------------------------------------------------------------------


def _taken(data: FullData, thrift: Thrift, seed: int) -> Bools:
    """Which samples are taken, shape (models, cells, samples)."""
    k = data.samples.shape[2]
    taken = np.ones(data.samples.shape, dtype=np.bool_)
    if thrift.tolerance is not None:
        for n in range(thrift.min_samples, k):
            _, variance, count = _means(data.samples[:, :, :n])
            settled = (count > 1) & (np.sqrt(variance / np.maximum(count, 1)) <= thrift.tolerance + 1e-12)
            taken[:, :, n:] &= ~settled[:, :, None]
    if thrift.target_width is not None:
        taken &= _reached(data, taken, thrift.target_width, seed)[None, :, None]
    return taken


def _reached(data: FullData, taken: Bools, width: float, seed: int) -> Bools:
    """Which cells are asked before every model's interval is narrow, shape (cells,)."""
    scores, _, _ = _means(np.where(taken, data.samples, np.nan))
    order = spread_order(data.strata, seed)
    n = next_look(0, len(order))
    while n < len(order) and not is_narrow(list(scores[:, order[:n]]), data.truth[order[:n]], width):
        n = next_look(n, len(order))
    reached = np.zeros(len(order), dtype=np.bool_)
    reached[order[:n]] = True
    return reached


def _means(samples: Floats) -> tuple[Floats, Floats, Floats]:
    count = (~np.isnan(samples)).sum(axis=2).astype(np.float64)
    total = np.nansum(samples, axis=2)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    squares = np.nansum((samples - mean[:, :, None]) ** 2, axis=2)
    return mean, np.where(count > 1, squares / np.maximum(count - 1, 1), np.nan), count


# --- judges -----------------------------------------------------------------------------------------------------


def _seats(data: FullData, thrift: Thrift, taken: Bools, seed: int) -> Bools:
    """Which judges are given which traces, shape as `said`."""
    models, cells, k = data.samples.shape
    reviewed = taken & ~np.isnan(data.samples)
    if thrift.tolerance is not None:
        reviewed[:, :, thrift.min_samples :] = False
    seats = np.broadcast_to(data.may.T[:, :, None, None], data.said.shape)
    if thrift.judges_per_trace is not None:
        dealt = balanced_panels(data.may, cells * k, thrift.judges_per_trace, seed)
        seats = dealt.reshape(k, cells, models, -1).transpose(3, 2, 1, 0)
    return seats & reviewed[None]


def _turns(seats: Bools, seed: int) -> NDArray[np.intp]:
    """Each judge's turn on a trace, in an order drawn for it; those without a seat come last."""
    order = np.random.default_rng(seed).random(seats.shape, dtype=np.float32)
    turns: NDArray[np.intp] = np.where(seats, order, 2).argsort(axis=0).argsort(axis=0)
    return turns


def _first(seats: Bools, seed: int) -> Bools:
    """The seats that an adaptive panel asks whatever they say."""
    sizes = seats.sum(axis=0)
    first: Bools = seats & (_turns(seats, seed) < np.minimum(sizes, sizes // 2 + 1))
    return first


def _disputed(
    data: FullData,
    seats: Bools,
    first: Bools,
    conflicts: NDArray[np.intp],
    votes: NDArray[np.int8],
    cast: Bools,
    seed: int,
) -> Bools:
    """All seats that an adaptive panel asks: until no vote on the trace, nor on any of its conflicts, can change it."""
    turns, sizes = _turns(seats, seed), seats.sum(axis=0)
    asked = first.copy()
    for turn in range(int(sizes.max(initial=0))):
        now = seats & (turns == turn) & ~first
        valid, refused = ((asked & (data.said == value)).sum(axis=0) for value in (1, 0))
        most, rest = np.maximum(valid, refused), sizes - asked.sum(axis=0)
        asked |= now & ((2 * most <= sizes) & (2 * (most + rest) > sizes))[None]
    needed = _needed(votes, cast)
    left, right, cell = conflicts
    for side in (left, right):
        for judge in range(len(seats)):
            at = needed[judge]
            asked[judge, side[at], cell[at]] |= seats[judge, side[at], cell[at]]
    return asked


def _needed(votes: NDArray[np.int8], cast: Bools) -> Bools:
    """Whether a judge's vote on a conflict is heard, in order, before it is settled; shapes (judges, conflicts)."""
    seats = cast.sum(axis=0)
    before: NDArray[np.intp] = np.cumsum(cast, axis=0) - cast
    ahead = [np.cumsum(votes == side, axis=0) - (votes == side) for side in (1, -1)]
    most = np.maximum(*ahead)
    needed: Bools = cast & (2 * most <= seats) & (2 * (most + seats - before) > seats)
    return needed


def _conflicts(data: FullData, threshold: float) -> NDArray[np.intp]:
    """Conflicts of the full audit: left model, right model and cell, shape (3, conflicts)."""
    scores, _, _ = _means(data.samples)
    left, right = np.triu_indices(len(scores), 1)
    with np.errstate(invalid="ignore"):
        pair, cell = np.nonzero(np.abs(scores[left] - scores[right]) >= threshold - 1e-12)
    return np.stack([left[pair], right[pair], cell])


def _votes(said: Floats, seats: Bools, conflicts: NDArray[np.intp]) -> tuple[NDArray[np.int8], Bools]:
    """Each judge's vote on each conflict (1 left, -1 right, 0 none), and whether it has a seat in it."""
    given = (~np.isnan(said)).sum(axis=3)
    rate = np.where(given > 0, np.nansum(said, axis=3) / np.maximum(given, 1), np.nan)
    seated: Bools = np.asarray(seats.any(axis=3))
    left, right, cell = conflicts
    with np.errstate(invalid="ignore"):
        difference = rate[:, left, cell] - rate[:, right, cell]
        votes = (difference > 1e-9).astype(np.int8) - (difference < -1e-9).astype(np.int8)
    return votes, seated[:, left, cell] & seated[:, right, cell]


def _winners(votes: NDArray[np.int8], cast: Bools) -> NDArray[np.int8]:
    seats = cast.sum(axis=0)
    left, right = ((2 * ((votes == side) & cast).sum(axis=0) > seats) for side in (1, -1))
    won: NDArray[np.int8] = left.astype(np.int8) - right.astype(np.int8)
    return won


def peer_rates(heard: NDArray[np.float32]) -> Floats:
    """Share of VALID in the verdicts on each model, shape (models,); nan without any."""
    given = (~np.isnan(heard)).sum(axis=(0, 2, 3))
    rates: Floats = np.where(given > 0, np.nansum(heard, axis=(0, 2, 3)) / np.maximum(given, 1), np.nan)
    return rates
