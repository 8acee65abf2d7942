"""Transitivity over item sets (s_tran of Aligning with Logic, ICML 2025), for complete and for partial graphs.

Complete: of the subsets of K items in which every pair is decided, the share without a cycle. Partial: of all subsets,
by the comparisons there are, as the paper applies it to partial graphs. A missing comparison cannot be part of a cycle,
so the partial figure is higher where fewer pairs are decided: the mean share of pairs present is reported with it.

A subset counts once. Its value is the share of the drawn orders (`auditor.metrics.checked_subsets`) without a cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from auditor.metrics.averaging import AVERAGINGS, AveragedEstimate, Averaging, instance_values
from auditor.metrics.case_counts import CaseCounts, count_by_item
from auditor.metrics.checked_subsets import CheckedSubsets, check_subsets
from auditor.metrics.draw_margin import DrawnShares, estimate_margin
from auditor.metrics.logic import Bools, Floats, JudgeAnswers, LogicEstimate, estimate_over_sets, name_sets


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialTransitivity(AveragedEstimate):
    """Share of the subsets of items without a cycle among the comparisons there are."""

    sets: int
    """Item sets with enough items and a preference."""
    pairs_present: float | None
    """Mean share of a subset's pairs that have a preference, averaged as the value is; null without a subset."""
    answered_subsets: float | None
    """Share of the subsets in which every pair has an answer, averaged as the value is; null without a subset."""


class TransitivityEstimates(NamedTuple):
    """Transitivity of one judge for one size of subsets.

    Attributes:
        complete, partial: see the module; by how the sets are averaged.
        n_decided, n_tied, n_lost: pairs with a preference, pairs that are tied, and pairs asked but not answered.
        margin: half-width of the 95% interval of the complete figure over other draws of subsets and orders, by how the
            sets are averaged; 0 where all subsets were checked and no order matters.
        exhaustive: whether all subsets of all sets were checked, not a sample.
    """

    complete: dict[Averaging, LogicEstimate]
    partial: dict[Averaging, PartialTransitivity]
    n_decided: int
    n_tied: int
    n_lost: int
    margin: dict[Averaging, float]
    exhaustive: bool


def estimate_transitivity(
    sets: Sequence[JudgeAnswers], k: int, max_subsets: int = 1000, seed: int = 0, calibrated: bool = False
) -> TransitivityEstimates:
    """Estimate the share of the K-item subsets that have no cycle.

    Args:
        sets: one judge's answers.
        k: items in a subset, at least 3.
        max_subsets: most subsets to check in a set; of more, a sample is drawn for each set.
        seed: of the draws of subsets and orders, which differ between sets.
        calibrated: whether both orders of a pair are averaged; else one of them is drawn as its answer.

    Raises:
        ValueError: k is below 3, or max_subsets below 1.
    """
    names = name_sets(sets)
    checked_sets = [
        check_subsets(answers.preferences, answers.asked[0], k, max_subsets, seed, set_name=name, calibrated=calibrated)
        for answers, name in zip(sets, names, strict=True)
    ]
    complete_shares = [_share_over_draws(checked, checked.is_decided) for checked in checked_sets]
    partial_shares = [_share_over_draws(checked, np.ones_like(checked.is_decided)) for checked in checked_sets]
    complete_counts = list(map(_count_acyclic, checked_sets, complete_shares))
    partial_counts = list(map(_count_acyclic, checked_sets, partial_shares))
    no_complete_reason, no_partial_reason = _explain_missing(checked_sets, k)
    complete = {
        averaged: estimate_over_sets(complete_counts, names, averaged, empty_reason=no_complete_reason)
        for averaged in AVERAGINGS
    }
    return TransitivityEstimates(
        complete=complete,
        partial={
            averaged: _estimate_partial(checked_sets, partial_counts, names, averaged, no_partial_reason)
            for averaged in AVERAGINGS
        },
        n_decided=sum(checked.pairs.n_decided for checked in checked_sets),
        n_tied=sum(checked.pairs.n_tied for checked in checked_sets),
        n_lost=sum(checked.pairs.n_lost for checked in checked_sets),
        margin=estimate_margin(checked_sets, complete_shares, names),
        exhaustive=all(checked.exhaustive for checked in checked_sets),
    )


def _explain_missing(checked_sets: Sequence[CheckedSubsets], k: int) -> tuple[str, str]:
    """Why there is no complete, and no partial figure, where there is none."""
    n_items = max((checked.n_items for checked in checked_sets), default=0)
    if n_items < k:
        return (f"the largest set has {n_items} items, fewer than K = {k}",) * 2
    return f"no set has {k} items with a decision on every pair", "no pair is decided"


def _share_over_draws(checked: CheckedSubsets, is_case: Bools) -> DrawnShares:
    """The share of the draws of each subset that have no cycle.

    Args:
        checked: the subsets of one set.
        is_case: shape (subsets, draws), the draws that count.
    """
    n_draws = is_case.sum(axis=1)
    n_acyclic = (checked.is_acyclic & is_case).sum(axis=1)
    return DrawnShares(np.where(n_draws > 0, n_acyclic / np.maximum(n_draws, 1), np.nan), n_draws)


def _count_acyclic(checked: CheckedSubsets, shares: DrawnShares) -> CaseCounts:
    """Counts of one set's subsets: which have no cycle, of those with a draw that counts."""
    is_case = shares.n_draws > 0
    hits = shares.acyclic[is_case]
    return CaseCounts(
        hits=float(hits.sum()),
        n=len(hits),
        ties=int((checked.is_answered & ~is_case).sum()),
        lost=int((checked.is_asked & ~checked.is_answered & ~is_case).sum()),
        by_item=count_by_item(checked.subsets[is_case], hits, checked.n_items),
        case_size=checked.subsets.shape[1],
    )


def _estimate_partial(
    checked_sets: Sequence[CheckedSubsets],
    counts: Sequence[CaseCounts],
    names: Sequence[str],
    averaged: Averaging,
    empty_reason: str,
) -> PartialTransitivity:
    """Estimate the share of all subsets without a cycle among the comparisons there are."""
    share = estimate_over_sets(counts, names, averaged, empty_reason=empty_reason)
    return PartialTransitivity(
        value=share.value,
        n=share.n,
        ci_low=share.ci_low,
        ci_high=share.ci_high,
        reason=share.reason,
        resampled=share.resampled,
        averaged=averaged,
        sets=share.sets,
        pairs_present=_average_of_subsets(
            [checked.share_decided.mean(axis=1) for checked in checked_sets], names, averaged
        ),
        answered_subsets=_average_of_subsets(
            [checked.is_answered.astype(float) for checked in checked_sets], names, averaged
        ),
    )


def _average_of_subsets(columns: Sequence[Floats], names: Sequence[str], averaged: Averaging) -> float | None:
    """Average over sets, or over all subsets, of one number per subset; None without a subset."""
    totals = [len(column) for column in columns]
    if not sum(totals):
        return None
    sums = [float(column.sum()) for column in columns]
    return sum(sums) / sum(totals) if averaged == "pooled" else float(instance_values(sums, totals, names).mean())
