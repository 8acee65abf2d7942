"""Logical consistency of a judge over several item sets: measures of `auditor.metrics.preference` with intervals.

With at least `MIN_SETS` sets, intervals are over other sets, each with all the wordings it was asked in
(`auditor.metrics.resampling.ratio_interval`). With fewer, those of shares are Wilson's, which assumes independent
pairs, and those of transitivity are over other items: the jackknife of a graph's nodes, which is conservative (Lin,
Lunde and Sarkar, ICML 2020). The wordings of one set then count as one answer, since a judge that is inconsistent on
some items is so in other wordings, too. Where every set, or every subset, has the same value, there is no spread to
estimate: then Wilson's interval over independent units (sets, or subsets without a common item) is used. `over` names
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
"""Fewest sets for an interval over sets: fewer show too little of how they differ."""
_TIE_TOLERANCE = 1e-9


class JudgeAnswers(NamedTuple):
    """One judge's answers on one set of N items (see `auditor.metrics.preference`).

    Attributes:
        preferences, negated: shape (N, N).
        asked: shape (2, N, N): whether the standard, and the negated, question was asked.
        samples: shape (questions, repeats), answers to the questions that were asked repeatedly.
        human_preferences: shape (N, N), human preference for each pair; nan where unknown.
        set_name: the same for answers on one set in several wordings; empty for a set with one wording.
    """

    preferences: Floats
    negated: Floats
    asked: Bools
    samples: Floats
    human_preferences: Floats
    set_name: str = ""


@dataclass(frozen=True, slots=True)
class LogicShare:
    """A share over `n` cases in `sets` sets; `lost` counts cases that were asked about but not answered.

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
    """As `LogicShare`; cases are subsets of `k` items with an answer to every pair; `lost` counts pairs without one.

    `margin` is half the width of the 95% interval for the sampling of subsets, 0 where all subsets were checked.
    `decided` counts pairs with a preference: the others are ties, which cannot be part of a cycle, and failures.
    """

    k: int = 0
    margin: float = 0.0
    decided: int = 0


def pooled_transitivity(
    sets: Sequence[JudgeAnswers], k: int, max_subsets: int = 1000, seed: int = 0, calibrated: bool = False
) -> TransitivityShare:
    """Share of the K-item subsets of all sets that have no cycle (s_tran(K) of Aligning with Logic).

    A subset with an unanswered pair is left out: a missing answer closes no cycle, so a judge with fewer answers would
    seem more transitive.

    Uncalibrated, one of a pair's two orders is drawn as its answer; calibrated, the mean of both is used.

    Raises:
        ValueError: as `auditor.metrics.preference.transitivity`.
    """
    if k < 3 or max_subsets < 1:
        raise ValueError(f"k must be at least 3 and max_subsets at least 1, but got {k!r} and {max_subsets!r}")
    checked_with_names = [
        (_check_subsets(answers, k, max_subsets, seed, calibrated), name)
        for answers, name in zip(sets, _set_names(sets), strict=True)
    ]
    n_lost = sum(checked.lost for checked, _ in checked_with_names)
    usable = [checked for checked, _ in checked_with_names if len(checked.is_acyclic)]
    groups = _group_by_name([name for checked, name in checked_with_names if len(checked.is_acyclic)])
    if not usable:
        reason = f"no set has {k} items with an answer to every pair, and a pair that is decided"
        return TransitivityShare(None, 0, None, None, n_lost, 0, "nothing", reason, k)
    n_acyclic_by_set = np.array([checked.is_acyclic.sum() for checked in usable], dtype=float)
    n_subsets_by_set = np.array([len(checked.is_acyclic) for checked in usable], dtype=float)
    n_acyclic, n_subsets = int(n_acyclic_by_set.sum()), int(n_subsets_by_set.sum())
    n_decided = sum(checked.n_decided for checked in usable)
    share = proportion(n_acyclic, n_subsets)
    is_sampled = any(not checked.exhaustive for checked in usable)
    margin = ((share.ci_high or 0.0) - (share.ci_low or 0.0)) / 2 if is_sampled else 0.0
    if len(groups) >= MIN_SETS:
        low, high = ratio_interval(
            _sum_by_group(n_acyclic_by_set, groups), _sum_by_group(n_subsets_by_set, groups), seed=seed
        )
        over = f"{len(groups)} sets"
        return TransitivityShare(
            share.value, n_subsets, low, high, n_lost, len(groups), over, None, k, margin, n_decided
        )
    interval = _item_jackknife_interval(usable, groups, k, n_acyclic / n_subsets, n_subsets_by_set)
    interval_reason = None if interval else f"a set has {k} items only: no interval"
    ci_low, ci_high = interval or (None, None)
    over = "other items (jackknife)"
    return TransitivityShare(
        share.value, n_subsets, ci_low, ci_high, n_lost, len(groups), over, interval_reason, k, margin, n_decided
    )


class _CheckedSubsets(NamedTuple):
    """The subsets of one set's items that were checked for cycles.

    Attributes:
        subsets: shape (m, k), item numbers; only subsets with an answer to every pair.
        is_acyclic: shape (m,), whether the subset has no cycle.
        exhaustive: whether all subsets were considered, not a drawn sample.
        lost: pairs that were asked but not answered.
        n_decided: pairs with a preference.
    """

    subsets: NDArray[np.intp]
    is_acyclic: Bools
    n_items: int
    exhaustive: bool
    lost: int
    n_decided: int


def _check_subsets(
    answers_on_set: JudgeAnswers, k: int, max_subsets: int, seed: int, calibrated: bool
) -> _CheckedSubsets:
    """Check subsets of one set's items for cycles; no subsets if there are fewer than k items or no preference."""
    preferences = answers_on_set.preferences if calibrated else _draw_one_order(answers_on_set.preferences, seed)
    answers = pair_probabilities(preferences, calibrated)
    n_items, graph = len(answers), answers > 0.5 + _TIE_TOLERANCE
    asked = answers_on_set.asked[0] | answers_on_set.asked[0].T
    n_lost = int((asked & np.isnan(answers)).sum()) // 2
    if n_items < k or not graph.any():
        return _CheckedSubsets(np.empty((0, k), dtype=np.intp), np.empty(0, dtype=bool), n_items, True, n_lost, 0)
    subsets, exhaustive = choose_subsets(n_items, k, max_subsets, seed)
    subsets = subsets[_fully_answered(~np.isnan(answers), subsets)]
    return _CheckedSubsets(subsets, acyclic_mask(graph, subsets), n_items, exhaustive, n_lost, int(graph.sum()))


def _fully_answered(answered: Bools, subsets: NDArray[np.intp]) -> Bools:
    """Which subsets, shape (m, k), have an answer to each pair, given the matrix of answered pairs, shape (n, n)."""
    i, j = np.triu_indices(subsets.shape[1], 1)
    return np.asarray(answered[subsets[:, i], subsets[:, j]].all(axis=1))


def _draw_one_order(preferences: Floats, seed: int) -> Floats:
    """Of each pair answered in both orders, keep the answer to one order, drawn at random.

    With the order of the items throughout, a judge that always names the item shown first would seem transitive.
    """
    values = np.array(preferences, dtype=float)
    drop_upper = np.triu(np.random.default_rng(seed).random(values.shape) < 0.5, 1)
    dropped = drop_upper | np.tril(~drop_upper.T, -1)
    return np.where(dropped & ~np.isnan(values.T), np.nan, values)


def _item_jackknife_interval(
    checked_sets: Sequence[_CheckedSubsets], groups: Sequence[Sequence[int]], k: int, estimate: float, totals: Floats
) -> tuple[float, float] | None:
    """The interval over other items; None where no item can be left out.

    Wordings of one set have the same items, so their standard errors are added as if fully correlated.

    Args:
        groups: positions of the wordings of one set, set by set.
        estimate: the share over all sets.
        totals: shape (sets,), subsets of each.
    """
    if estimate in (0.0, 1.0):
        # No spread to estimate: Wilson's interval over subsets without a common item.
        n_units = sum(max(checked_sets[i].n_items for i in group) // k for group in groups)
        share = proportion(round(estimate * n_units), n_units)
        return (share.ci_low or 0.0, 1.0 if share.ci_high is None else share.ci_high)
    if any(checked.n_items <= k for checked in checked_sets):
        return None
    weights = totals / totals.sum()
    std_errors = [
        float(weight) * _jackknife_variance(checked) ** 0.5
        for weight, checked in zip(weights, checked_sets, strict=True)
    ]
    variance = sum(sum(std_errors[i] for i in group) ** 2 for group in groups)
    half_width = Z_95 * variance**0.5
    return max(0.0, estimate - half_width), min(1.0, estimate + half_width)


def _jackknife_variance(checked: _CheckedSubsets) -> float:
    """Jackknife variance of the acyclic share, leaving out each item in turn with all its subsets."""
    member_items = checked.subsets.ravel()
    n_with_item = np.bincount(member_items, minlength=checked.n_items)
    n_acyclic_with_item = np.bincount(
        member_items, np.repeat(checked.is_acyclic, checked.subsets.shape[1]), minlength=checked.n_items
    )
    n_without_item = len(checked.is_acyclic) - n_with_item
    can_leave_out = n_without_item > 0
    replicates = (checked.is_acyclic.sum() - n_acyclic_with_item)[can_leave_out] / n_without_item[can_leave_out]
    n = len(replicates)
    return float((n - 1) / n * ((replicates - replicates.mean()) ** 2).sum()) if n else 0.0


# --- shares -----------------------------------------------------------------------------------------------------


def pooled_commutativity(sets: Sequence[JudgeAnswers], seed: int = 0) -> LogicShare:
    """Share of pairs, of those shown in both orders, whose decision is the same in both orders."""
    counts_by_set = []
    for answers in sets:
        asked = answers.asked[0] & answers.asked[0].T
        counts_by_set.append(
            _set_counts(commutativity(np.where(asked, answers.preferences, np.nan)), int(np.triu(asked, 1).sum()))
        )
    return _pool_sets(counts_by_set, _set_names(sets), seed, "pairs")


def pooled_negation_invariance(sets: Sequence[JudgeAnswers], seed: int = 0, calibrated: bool = False) -> LogicShare:
    """Share of questions whose negated form is answered with the other item; calibrated, of unordered pairs."""
    counts_by_set = []
    for answers in sets:
        asked_both_forms = answers.asked[0] & answers.asked[1]
        n_asked = (
            int(np.triu(asked_both_forms | asked_both_forms.T, 1).sum()) if calibrated else int(asked_both_forms.sum())
        )
        counts_by_set.append(
            _set_counts(negation_invariance(answers.preferences, answers.negated, calibrated), n_asked)
        )
    return _pool_sets(counts_by_set, _set_names(sets), seed, "questions")


def pooled_self_agreement(sets: Sequence[JudgeAnswers], seed: int = 0) -> LogicShare:
    """Mean share of repeated answers that agree with the most frequent answer."""
    sets = [answers for answers in sets if answers.samples.size]
    counts_by_set = [_set_counts(self_agreement(answers.samples), len(answers.samples)) for answers in sets]
    return _pool_sets(counts_by_set, _set_names(sets), seed, "questions")


def pooled_human_agreement(sets: Sequence[JudgeAnswers], seed: int = 0, calibrated: bool = False) -> LogicShare:
    """Share of the questions with a human preference that the judge answers the same way; a tie is no agreement.

    Calibrated, each pair counts once, by the mean of both orders.
    """
    if calibrated:
        counts_by_set = []
        for answers in sets:
            was_asked = answers.asked[0] | answers.asked[0].T
            agreement = human_agreement(
                answers.preferences, np.where(was_asked, answers.human_preferences, np.nan), calibrated
            )
            counts_by_set.append(_set_counts(agreement, agreement.n + agreement.lost))
        return _pool_sets(counts_by_set, _set_names(sets), seed, "pairs")
    return _pool_sets([_count_human_agreement(answers) for answers in sets], _set_names(sets), seed, "questions")


def _count_human_agreement(answers_on_set: JudgeAnswers) -> _SetCounts:
    """Counts of one set's questions: agreements, answered and unanswered, of those with a human preference."""
    judge, truth = answers_on_set.preferences, pair_probabilities(answers_on_set.human_preferences, calibrated=True)
    decided = answers_on_set.asked[0] & (np.abs(truth - 0.5) > _TIE_TOLERANCE)
    np.fill_diagonal(decided, False)
    measured = decided & ~np.isnan(judge)
    agrees = (judge - 0.5) * (truth - 0.5) > _TIE_TOLERANCE
    n = int(measured.sum())
    return _SetCounts(float((measured & agrees).sum()), n, int(decided.sum()) - n)


class _SetCounts(NamedTuple):
    """Counts of one set: `hits` of `n` measured cases; `lost` cases were asked but not measured."""

    hits: float
    n: int
    lost: int


def _set_counts(share: Share, asked: int) -> _SetCounts:
    """Convert a share of one set to counts; `asked` is the number of cases that were asked, answered or not."""
    return _SetCounts((share.value or 0.0) * share.n, share.n, max(0, asked - share.n))


def _pool_sets(counts_by_set: Sequence[_SetCounts], set_names: Sequence[str], seed: int, case_name: str) -> LogicShare:
    """The share over all sets, with the interval over sets, or Wilson's for fewer than `MIN_SETS` sets.

    Args:
        counts_by_set, set_names: one entry per set and wording; wordings of one set have the same name.
        seed: of the bootstrap over sets.
        case_name: what is counted, in the plural, to say what Wilson's interval is over.
    """
    n_lost = sum(counts.lost for counts in counts_by_set)
    measured = [(counts, name) for counts, name in zip(counts_by_set, set_names, strict=True) if counts.n]
    hits, totals = (
        np.array([counts.hits for counts, _ in measured]),
        np.array([counts.n for counts, _ in measured], dtype=float),
    )
    n, n_hits = int(totals.sum()), float(hits.sum())
    if not n:
        reason = "no question has the answers it takes" if n_lost else "not asked"
        return LogicShare(None, 0, None, None, n_lost, 0, "nothing", reason)
    groups = _group_by_name([name for _, name in measured])
    if len(groups) >= MIN_SETS:
        low, high = ratio_interval(_sum_by_group(hits, groups), _sum_by_group(totals, groups), seed=seed)
        return LogicShare(n_hits / n, n, low, high, n_lost, len(groups), f"{len(groups)} sets")
    # The wordings of one pair count as one case; at least one case in all.
    n_effective = max(1, int(sum(totals[group].sum() / len(group) for group in map(list, groups))))
    share = mean_share(round(n_hits / n * n_effective, 9), n_effective)
    return LogicShare(
        n_hits / n, n, share.ci_low, share.ci_high, n_lost, len(groups), f"{case_name}, taken for independent (Wilson)"
    )


def _set_names(sets: Sequence[JudgeAnswers]) -> list[str]:
    """Names of the sets; a set without one gets a unique name from its position."""
    return [answers.set_name or f"\0{i}" for i, answers in enumerate(sets)]


def _group_by_name(names: Sequence[str]) -> list[list[int]]:
    """Positions of equal names, one list per name, in order of first occurrence."""
    indices_by_name: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        indices_by_name.setdefault(name, []).append(i)
    return list(indices_by_name.values())


def _sum_by_group(values: Floats, groups: Sequence[Sequence[int]]) -> Floats:
    """Sum of the values of each group, shape (groups,)."""
    return np.array([values[list(group)].sum() for group in groups])
