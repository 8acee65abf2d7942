"""How logical a judge is over several sets of items: the figures of `auditor.metrics.preference` with intervals.

With at least `MIN_SETS` sets, intervals are over other sets, each with all the wordings it was asked in
(`auditor.metrics.resampling.ratio_interval`). With fewer, those of shares are Wilson's, which takes pairs for
independent, and those of transitivity are over other items: the jackknife of a graph's nodes, which errs to the wide
side (Lin, Lunde and Sarkar, ICML 2020). The wordings of one set are then taken for one answer, since a judge that is
illogical on some items is so in other words, too. Where every set, or every subset, says the same, there is no spread
to see: then Wilson's interval over independent units (sets, or subsets without a common item) is taken. `over` names
what an interval is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.metrics._complete_cases import Z_95
from auditor.metrics.preference import (
    acyclic_mask,
    choose_subsets,
    commutativity,
    human_agreement,
    negation_invariance,
    pair_probabilities,
    self_agreement,
)
from auditor.metrics.proportion import proportion
from auditor.metrics.resampling import ratio_interval
from auditor.metrics.share import Share, mean_share

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MIN_SETS = 5
"""With fewer sets too little is seen of how they differ."""
_TIE_TOLERANCE = 1e-9


class JudgeAnswers(NamedTuple):
    """One judge's answers on one set of N items (see `auditor.metrics.preference`).

    Attributes:
        preferences, negated: shape (N, N).
        asked: shape (2, N, N): whether the standard, and the negated, question was put.
        samples: shape (questions, repeats).
        people: shape (N, N), what people say of a pair; nan where unknown.
        of: names the set; answers on one set in several wordings have one name. Empty for a set of its own.
    """

    preferences: Floats
    negated: Floats
    asked: Bools
    samples: Floats
    human_preferences: Floats
    set_name: str = ""


@dataclass(frozen=True, slots=True)
class LogicShare:
    """A share over `n` cases in `sets` sets; `lost` cases were asked about but not answered.

    `over` says what the interval is over; `reason` why there is no value, or no interval.
    """

    value: float | None
    n: int
    ci_low: float | None
    ci_high: float | None
    lost: int
    sets: int
    over: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TransitivityShare(LogicShare):
    """As `Figure`; cases are subsets of `k` items of which every pair has an answer; `lost` counts pairs without one.

    `margin` is half the width of the 95% interval for having looked at drawn subsets only, 0 where all were looked at.
    `decided` counts pairs with a preference: the rest is ties, which can close no cycle, and failures.
    """

    k: int = 0
    margin: float = 0.0
    decided: int = 0


def pooled_transitivity(
    sets: Sequence[JudgeAnswers], k: int, max_subsets: int = 1000, seed: int = 0, calibrated: bool = False
) -> TransitivityShare:
    """Share of the K-item subsets of all sets that have no cycle (s_tran(K) of Aligning with Logic).

    A subset with a pair that has no answer is left out: what is missing closes no cycle, so that the fewer a judge
    answered, the more transitive it would seem.

    Uncalibrated, a pair counts as answered in one of its orders, drawn; calibrated, by the mean of both.

    Raises:
        ValueError: as `auditor.metrics.preference.transitivity`.
    """
    if k < 3 or max_subsets < 1:
        raise ValueError(f"k must be at least 3 and max_subsets at least 1, but got {k!r} and {max_subsets!r}")
    parts = [
        (_check_subsets(one, k, max_subsets, seed, calibrated), name)
        for one, name in zip(sets, _set_names(sets), strict=True)
    ]
    lost = sum(part.lost for part, _ in parts)
    looked = [part for part, _ in parts if len(part.is_acyclic)]
    groups = _group_by_name([name for part, name in parts if len(part.is_acyclic)])
    if not looked:
        reason = f"no set has {k} items with an answer to every pair, and a pair that is decided"
        return TransitivityShare(None, 0, None, None, lost, 0, "nothing", reason, k)
    hits = np.array([part.is_acyclic.sum() for part in looked], dtype=float)
    totals = np.array([len(part.is_acyclic) for part in looked], dtype=float)
    n, m = int(hits.sum()), int(totals.sum())
    decided = sum(part.n_decided for part in looked)
    share = proportion(n, m)
    sampled = any(not part.exhaustive for part in looked)
    margin = ((share.ci_high or 0.0) - (share.ci_low or 0.0)) / 2 if sampled else 0.0
    if len(groups) >= MIN_SETS:
        low, high = ratio_interval(_sum_by_group(hits, groups), _sum_by_group(totals, groups), seed=seed)
        over = f"{len(groups)} sets"
        return TransitivityShare(share.value, m, low, high, lost, len(groups), over, None, k, margin, decided)
    ends = _item_jackknife_interval(looked, groups, k, n / m, totals)
    why = None if ends else f"a set has {k} items only: no interval"
    ci_low, ci_high = ends or (None, None)
    over = "other items (jackknife)"
    return TransitivityShare(share.value, m, ci_low, ci_high, lost, len(groups), over, why, k, margin, decided)


class _CheckedSubsets(NamedTuple):
    """Subsets (m, k) of one set of n items, which of them have no cycle, and how many pairs are decided."""

    subsets: NDArray[np.intp]
    is_acyclic: Bools
    n_items: int
    exhaustive: bool
    lost: int
    n_decided: int


def _check_subsets(
    answers_on_set: JudgeAnswers, k: int, max_subsets: int, seed: int, calibrated: bool
) -> _CheckedSubsets:
    preferences = answers_on_set.preferences if calibrated else _draw_one_order(answers_on_set.preferences, seed)
    answers = pair_probabilities(preferences, calibrated)
    n, graph = len(answers), answers > 0.5 + _TIE_TOLERANCE
    asked = answers_on_set.asked[0] | answers_on_set.asked[0].T
    lost = int((asked & np.isnan(answers)).sum()) // 2
    if n < k or not graph.any():
        return _CheckedSubsets(np.empty((0, k), dtype=np.intp), np.empty(0, dtype=bool), n, True, lost, 0)
    subsets, exhaustive = choose_subsets(n, k, max_subsets, seed)
    subsets = subsets[_fully_answered(~np.isnan(answers), subsets)]
    return _CheckedSubsets(subsets, acyclic_mask(graph, subsets), n, exhaustive, lost, int(graph.sum()))


def _fully_answered(answered: Bools, subsets: NDArray[np.intp]) -> Bools:
    """Which subsets (m, k) have an answer to each pair, by the matrix of pairs answered, shape (n, n)."""
    i, j = np.triu_indices(subsets.shape[1], 1)
    return np.asarray(answered[subsets[:, i], subsets[:, j]].all(axis=1))


def _draw_one_order(preferences: Floats, seed: int) -> Floats:
    """Of each pair answered in both orders one order, drawn.

    If it always were the order of the items, a judge that names whatever is shown first would seem of one mind.
    """
    values = np.array(preferences, dtype=float)
    upper = np.triu(np.random.default_rng(seed).random(values.shape) < 0.5, 1)
    dropped = upper | np.tril(~upper.T, -1)
    return np.where(dropped & ~np.isnan(values.T), np.nan, values)


def _item_jackknife_interval(
    checked_sets: Sequence[_CheckedSubsets], groups: Sequence[Sequence[int]], k: int, estimate: float, totals: Floats
) -> tuple[float, float] | None:
    """The interval over other items; None where no item can be left out.

    Wordings of one set have the same items, so their spreads add up as if they went up and down together.
    """
    if estimate in (0.0, 1.0):
        units = sum(max(checked_sets[i].n_items for i in group) // k for group in groups)
        share = proportion(round(estimate * units), units)
        return (share.ci_low or 0.0, 1.0 if share.ci_high is None else share.ci_high)
    if any(part.n_items <= k for part in checked_sets):
        return None
    weights = totals / totals.sum()
    spread = [float(w) * _jackknife_variance(part) ** 0.5 for w, part in zip(weights, checked_sets, strict=True)]
    variance = sum(sum(spread[i] for i in group) ** 2 for group in groups)
    half = Z_95 * variance**0.5
    return max(0.0, estimate - half), min(1.0, estimate + half)


def _jackknife_variance(checked: _CheckedSubsets) -> float:
    """Variance of the share by leaving out one item, and with it its subsets, after the other."""
    item = checked.subsets.ravel()
    with_item = np.bincount(item, minlength=checked.n_items)
    good = np.bincount(item, np.repeat(checked.is_acyclic, checked.subsets.shape[1]), minlength=checked.n_items)
    rest = len(checked.is_acyclic) - with_item
    kept = rest > 0
    without = (checked.is_acyclic.sum() - good)[kept] / rest[kept]
    n = len(without)
    return float((n - 1) / n * ((without - without.mean()) ** 2).sum()) if n else 0.0


# --- shares -----------------------------------------------------------------------------------------------------


def pooled_commutativity(sets: Sequence[JudgeAnswers], seed: int = 0) -> LogicShare:
    """Share of unordered pairs whose decision stays when the order shown is swapped; of those shown in both orders."""
    parts = []
    for one in sets:
        asked = one.asked[0] & one.asked[0].T
        parts.append(_set_counts(commutativity(np.where(asked, one.preferences, np.nan)), int(np.triu(asked, 1).sum())))
    return _pool_sets(parts, _set_names(sets), seed, "pairs")


def pooled_negation_invariance(sets: Sequence[JudgeAnswers], seed: int = 0, calibrated: bool = False) -> LogicShare:
    """Share of questions for which the negated form is answered with the other item; calibrated, of unordered pairs."""
    parts = []
    for one in sets:
        both = one.asked[0] & one.asked[1]
        asked = int(np.triu(both | both.T, 1).sum()) if calibrated else int(both.sum())
        parts.append(_set_counts(negation_invariance(one.preferences, one.negated, calibrated), asked))
    return _pool_sets(parts, _set_names(sets), seed, "questions")


def pooled_self_agreement(sets: Sequence[JudgeAnswers], seed: int = 0) -> LogicShare:
    """Mean share of repeats that agree with the most frequent answer."""
    sets = [one for one in sets if one.samples.size]
    parts = [_set_counts(self_agreement(one.samples), len(one.samples)) for one in sets]
    return _pool_sets(parts, _set_names(sets), seed, "questions")


def pooled_human_agreement(sets: Sequence[JudgeAnswers], seed: int = 0, calibrated: bool = False) -> LogicShare:
    """Share of the questions about pairs that people decide which the judge answers as they do; a tie is no agreement.

    Calibrated, each pair counts once, by the mean of both orders.
    """
    if calibrated:
        parts = []
        for one in sets:
            known = one.asked[0] | one.asked[0].T
            found = human_agreement(one.preferences, np.where(known, one.human_preferences, np.nan), calibrated)
            parts.append(_set_counts(found, found.n + found.lost))
        return _pool_sets(parts, _set_names(sets), seed, "pairs")
    return _pool_sets([_count_human_agreement(one) for one in sets], _set_names(sets), seed, "questions")


def _count_human_agreement(answers_on_set: JudgeAnswers) -> _SetCounts:
    judge, truth = answers_on_set.preferences, pair_probabilities(answers_on_set.human_preferences, calibrated=True)
    decided = answers_on_set.asked[0] & (np.abs(truth - 0.5) > _TIE_TOLERANCE)
    np.fill_diagonal(decided, False)
    measured = decided & ~np.isnan(judge)
    same = (judge - 0.5) * (truth - 0.5) > _TIE_TOLERANCE
    n = int(measured.sum())
    return _SetCounts(float((measured & same).sum()), n, int(decided.sum()) - n)


class _SetCounts(NamedTuple):
    hits: float
    n: int
    lost: int


def _set_counts(share: Share, asked: int) -> _SetCounts:
    return _SetCounts((share.value or 0.0) * share.n, share.n, max(0, asked - share.n))


def _pool_sets(counts_by_set: Sequence[_SetCounts], set_names: Sequence[str], seed: int, case_name: str) -> LogicShare:
    lost = sum(part.lost for part in counts_by_set)
    used = [(part, name) for part, name in zip(counts_by_set, set_names, strict=True) if part.n]
    hits, totals = np.array([p.hits for p, _ in used]), np.array([p.n for p, _ in used], dtype=float)
    n, total = int(totals.sum()), float(hits.sum())
    if not n:
        reason = "no question has the answers it takes" if lost else "not asked"
        return LogicShare(None, 0, None, None, lost, 0, "nothing", reason)
    groups = _group_by_name([name for _, name in used])
    if len(groups) >= MIN_SETS:
        low, high = ratio_interval(_sum_by_group(hits, groups), _sum_by_group(totals, groups), seed=seed)
        return LogicShare(total / n, n, low, high, lost, len(groups), f"{len(groups)} sets")
    # Several wordings of a pair are worth one; at least one case, however few there are.
    worth = max(1, int(sum(totals[group].sum() / len(group) for group in map(list, groups))))
    ends = mean_share(round(total / n * worth, 9), worth)
    return LogicShare(
        total / n, n, ends.ci_low, ends.ci_high, lost, len(groups), f"{case_name}, taken for independent (Wilson)"
    )


def _set_names(sets: Sequence[JudgeAnswers]) -> list[str]:
    """What each set is called; those without a name are called by their place."""
    return [one.set_name or f"\0{i}" for i, one in enumerate(sets)]


def _group_by_name(names: Sequence[str]) -> list[list[int]]:
    """Places of the same name, group by group."""
    found: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        found.setdefault(name, []).append(i)
    return list(found.values())


def _sum_by_group(values: Floats, groups: Sequence[Sequence[int]]) -> Floats:
    return np.array([values[list(group)].sum() for group in groups])
