"""Ranking methods that need few comparisons, against the ranking from all pairs: calls and accuracy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from auditor.domain import derive_seed
from auditor.metrics.estimate import Estimate
from auditor.metrics.ranking_methods import RankingMethodStats, compare_ranking_methods
from auditor.metrics.unit_means import mean_over_units
from auditor.probes.logic.comparison_rows import ItemSetAnswers
from auditor.probes.logic.figures.schema import RankingRow
from auditor.reports.number_format import pluralize

MIN_RANKED_ITEMS, MAX_RANKED_ITEMS = 4, 60
"""Sizes of sets that are ranked: smaller sets have too few possible rankings, larger ones take minutes."""
RHO_BOUNDS = (-1.0, 1.0)
"""Smallest and largest possible rank correlation."""
MIN_ASKED_SHARE = 0.95
"""Share of all pairs, in both orders, that must have been asked, since rankings are replayed from the answers."""


def build_ranking_rows(judge: str, answers: Sequence[ItemSetAnswers], seed: int) -> list[RankingRow]:
    """Build one row for each ranking method, over the complete item sets of one judge; empty without such a set.

    A set is complete if nearly all of its pairs were asked in both orders. Figures say how many sets are left out.
    """
    stats_by_method: dict[str, list[RankingMethodStats]] = {}
    reasons = [_explain_omission(set_answers) for set_answers in answers]
    for set_answers in (entry for entry, reason in zip(answers, reasons, strict=True) if reason is None):
        human_scores = np.array([np.nan if item.human is None else item.human for item in set_answers.item_set.items])
        set_seed = derive_seed(seed, "ranking methods", set_answers.item_set.context)
        for stats in compare_ranking_methods(set_answers.preferences, human_scores, seed=set_seed):
            stats_by_method.setdefault(stats.method, []).append(stats)
    omissions = Counter(reason for reason in reasons if reason is not None)
    return [_build_ranking_row(judge, method, points, omissions) for method, points in stats_by_method.items()]


def _explain_omission(answers: ItemSetAnswers) -> str | None:
    """Why a set is not ranked: its size, or pairs that were not asked in both orders; None if it is ranked."""
    n = len(answers.item_set.items)
    if n < MIN_RANKED_ITEMS:
        return f"fewer than {MIN_RANKED_ITEMS} items"
    if n > MAX_RANKED_ITEMS:
        return f"more than {MAX_RANKED_ITEMS} items"
    if answers.asked[0].sum() < MIN_ASKED_SHARE * n * (n - 1):
        return f"under {MIN_ASKED_SHARE:.0%} of the pairs asked in both orders"
    return None


def _build_ranking_row(
    judge: str, method: str, points: Sequence[RankingMethodStats], omissions: Mapping[str, int]
) -> RankingRow:
    """Average the results of one ranking method over item sets.

    Args:
        points: one result for each set that was ranked.
        omissions: numbers of sets that were not ranked, by reason.
    """
    no_people = "people's order, or the judge's, is not known"
    return RankingRow(
        judge=judge,
        method=method,
        runs=points[0].runs,
        calls=float(np.mean([point.calls for point in points])),
        failed=float(np.mean([point.failed for point in points])),
        all_pairs=_mean_over_sets([point.rho_all for point in points], "the judge decides nothing", omissions),
        people=_mean_over_sets([point.rho_people for point in points], no_people, omissions),
    )


def _mean_over_sets(rhos: Sequence[float], missing_reason: str, omissions: Mapping[str, int]) -> Estimate:
    """Mean of Spearman's rho over the item sets in which it is defined, with an interval over other sets.

    The reason says how many sets are left out, since methods with different sets cannot be compared.
    """
    mean = mean_over_units(rhos, {"set": range(len(rhos))}, RHO_BOUNDS, empty_reason=missing_reason)
    n_undefined = 0 if mean.value is None else int(np.isnan(rhos).sum())
    counts = {**omissions, "people's scores or the ranking have ties only": n_undefined}
    n_sets = len(rhos) + sum(omissions.values())
    left_out = [
        f"{count} of {pluralize(n_sets, 'set')} left out: {reason}" for reason, count in counts.items() if count
    ]
    return replace(mean, reason="; ".join(filter(None, (mean.reason, *left_out))) or None)
