"""Ranking with few comparisons beside all of them: calls saved, and accuracy lost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from auditor.metrics.ranking_methods import RankingMethodStats, compare_ranking_methods
from auditor.reports.estimate_conversion import estimate_mean
from auditor.reports.logic.schema import RankingRow
from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages import svg_charts
from auditor.reports.pages.svg_charts import CallsAccuracyPoint
from auditor.storage.comparisons import ItemSetAnswers

MIN_RANKED_ITEMS, MAX_RANKED_ITEMS = 4, 60
"""Smaller sets have too few rankings to tell apart; larger ones take the report minutes."""
MAX_RANKED_SETS = 20
MIN_ASKED_SHARE = 0.95
"""Share of all pairs, in both orders, that must have been asked: what was not asked cannot be replayed."""


def build_ranking_rows(judge: str, answers: Sequence[ItemSetAnswers], seed: int) -> list[RankingRow]:
    """Each way to rank, over the sets of one judge that were asked about in full; none where there is no such set."""
    found: dict[str, list[RankingMethodStats]] = {}
    for one in [a for a in answers if _is_complete(a)][:MAX_RANKED_SETS]:
        people = np.array([np.nan if i.human is None else i.human for i in one.item_set.items])
        for point in compare_ranking_methods(one.preferences, people, seed=seed):
            found.setdefault(point.method, []).append(point)
    return [_build_ranking_row(judge, method, points) for method, points in found.items()]


def _is_complete(answers: ItemSetAnswers) -> bool:
    n = len(answers.item_set.items)
    return MIN_RANKED_ITEMS <= n <= MAX_RANKED_ITEMS and bool(answers.asked[0].sum() >= MIN_ASKED_SHARE * n * (n - 1))


def _build_ranking_row(judge: str, method: str, points: Sequence[RankingMethodStats]) -> RankingRow:
    return RankingRow(
        judge=judge,
        method=method,
        calls=float(np.mean([p.calls for p in points])),
        failed=float(np.mean([p.failed for p in points])),
        all_pairs=_mean_over_sets([p.rho_all for p in points], "the judge decides nothing"),
        people=_mean_over_sets([p.rho_people for p in points], "people's order, or the judge's, is not known"),
    )


def _mean_over_sets(rhos: Sequence[float], missing_reason: str) -> Estimate:
    found = estimate_mean(np.array(rhos), missing_reason)
    return found.model_copy(update={"reason": "one set: no interval"}) if found.n == 1 else found


def plot_rankings(rows: Sequence[RankingRow]) -> Markup:
    """Calls against accuracy: against people where their order is known, else against the judge's own full ranking."""
    by_people = any(row.people.value is not None for row in rows)
    shown = [(row, row.people.value if by_people else row.all_pairs.value) for row in rows]
    dots = [CallsAccuracyPoint(row.calls, rho, row.method) for row, rho in shown if rho is not None]
    against = "people’s order" if by_people else "the judge’s ranking from all pairs"
    return svg_charts.calls_accuracy_plot(
        dots, f"Spearman’s ρ against {against}", "Calls a set, and what the ranking is worth"
    )
