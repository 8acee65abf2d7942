"""Which model to prefer, over all countries and in each region, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.bootstrap import MAE, PEARSON
from auditor.metrics.tiers import ModelTiers, model_tiers
from auditor.reports.estimate_conversion import RESCALED_SCORES_REASON, has_rescaled_scores
from auditor.reports.measurement_schema import ReportModel
from auditor.reports.pages.number_format import format_number, format_percent, pluralize
from auditor.reports.report_source import ReportSource
from auditor.surveys.regions import get_grouping

MIN_SCORED_SHARE = 0.8
"""A model with scores on less of the cells is not ranked: the others would be compared on what it has."""
ALL_COUNTRIES = "all countries"


class TierRow(ReportModel):
    """One model in one ranking."""

    model: str
    value: float | None
    """Its figure, over the cells that all ranked models have."""
    tier: int | None
    """1 is the best; null with the ranking's reason."""
    rank_low: int | None
    rank_high: int | None
    """95% interval of its rank."""
    first: float | None
    """Share of resamples in which it is the best."""


class TierRanking(ReportModel):
    """One ranking: models of one method, over all countries or in one region."""

    scope: str
    method: str
    by: Literal["r", "MAE"]
    cells: int
    """Cells that all ranked models have."""
    countries: int
    topics: int
    rows: list[TierRow]
    """The best first."""
    left_out: dict[str, str]
    """Models that are not ranked, and why."""
    reason: str | None
    """Why there are no tiers."""


def build_tier_rankings(source: ReportSource) -> list[TierRanking]:
    """Rankings of the models of each method that has two: by r overall, by mean error overall and in each region."""
    methods = dict.fromkeys(method for method, _ in source.columns)
    return [part for method in methods for part in _build_method_rankings(source, method)]


def _build_method_rankings(source: ReportSource, method: str) -> list[TierRanking]:
    columns = [i for i, (m, _) in enumerate(source.columns) if m == method]
    asked = ~np.isnan(source.survey_scores)
    if len(columns) < 2 or not asked.any():
        return []
    everywhere = np.ones(len(source.cells), dtype=np.bool_)
    by_r = _build_ranking(source, method, columns, ALL_COUNTRIES, "r", everywhere)
    if has_rescaled_scores(method):
        return [
            by_r,
            by_r.model_copy(update={"by": "MAE", "rows": [], "left_out": {}, "reason": RESCALED_SCORES_REASON}),
        ]
    found = [by_r, _build_ranking(source, method, columns, ALL_COUNTRIES, "MAE", everywhere)]
    by_country = get_grouping(source.survey).by_country
    place = np.array([by_country.get(cell.country, "") for cell in source.cells], dtype=np.str_)
    names = [r.name for r in get_grouping(source.survey).regions if (place == r.name).any()]
    return found + [_build_ranking(source, method, columns, name, "MAE", place == name) for name in names]


def _build_ranking(
    source: ReportSource, method: str, columns: Sequence[int], scope: str, criterion: str, in_scope: NDArray[np.bool_]
) -> TierRanking:
    asked = in_scope & ~np.isnan(source.survey_scores)
    n = int(asked.sum())
    have = {i: int((~np.isnan(source.score_matrix[i]) & asked).sum()) for i in columns}
    ranked = [i for i in columns if n and have[i] >= MIN_SCORED_SHARE * n]
    left_out = {
        source.columns[i][1]: f"has a score on {format_percent(have[i], n)} of the cells"
        for i in columns
        if i not in ranked
    }
    found = model_tiers(
        PEARSON if criterion == "r" else MAE,
        [source.score_matrix[i][asked] for i in ranked] or [np.full(n, np.nan)],
        source.survey_scores[asked],
        source.country_index[asked],
        source.topic_index[asked],
        larger_is_better=criterion == "r",
        seed=source.seed,
    )
    names = [source.columns[i][1] for i in ranked]
    rows = _build_tier_rows(names, found)
    return TierRanking(
        scope=scope,
        method=method,
        by="r" if criterion == "r" else "MAE",
        cells=found.n_cells,
        countries=found.n_countries,
        topics=found.n_topics,
        rows=sorted(rows, key=lambda r: (r.value is None, -(r.value or 0.0) if criterion == "r" else r.value or 0.0)),
        left_out=left_out,
        reason=_missing_tiers_reason(names, found, criterion),
    )


def _missing_tiers_reason(names: Sequence[str], tiers: ModelTiers, criterion: str) -> str | None:
    """Why there are no tiers; a model without a figure is named."""
    if tiers.reason is None or not tiers.n_cells or not names:
        return tiers.reason
    without = [name for name, value in zip(names, tiers.values, strict=True) if np.isnan(value)]
    if not without:
        return tiers.reason
    same = ": it gives every cell the same score" if criterion == "r" and len(without) == 1 else ""
    return f"{', '.join(without)} has no {criterion} on the cells that all have{same}"


def _build_tier_rows(names: Sequence[str], tiers: ModelTiers) -> list[TierRow]:
    def at(values: NDArray[np.intp] | None, i: int) -> int | None:
        return None if values is None else int(values[i])

    return [
        TierRow(
            model=name,
            value=None if np.isnan(tiers.values[i]) else float(tiers.values[i]),
            tier=at(tiers.tiers, i),
            rank_low=at(tiers.rank_low, i),
            rank_high=at(tiers.rank_high, i),
            first=None if tiers.share_best is None else float(tiers.share_best[i]),
        )
        for i, name in enumerate(names)
    ]


def describe_preference(ranking: TierRanking) -> str:
    """Which model to prefer there, and how sure that is, in one sentence."""
    name = f"{ranking.scope} countries" if ranking.scope.endswith("Western") else ranking.scope
    where = "Over all countries" if ranking.scope == ALL_COUNTRIES else f"For {name}"
    figure = "agreement (r)" if ranking.by == "r" else "mean error"
    if not ranking.rows or ranking.rows[0].value is None:
        return f"{where} no model can be preferred: {ranking.reason or 'none has scores on enough cells'}."
    best = ranking.rows[0]
    if best.tier is None:
        return (
            f"{where} {best.model} has the best {figure} ({format_number(best.value)}, "
            f"{pluralize(ranking.cells, 'cell')}), but how sure that is cannot be said: {ranking.reason}."
        )
    tied = [row for row in ranking.rows[1:] if row.tier == 1]
    sure = f"first in {format_percent(round(1000 * (best.first or 0.0)), 1000)} of resamples"
    facts = f"{figure} {format_number(best.value)}, {sure}, {pluralize(ranking.cells, 'shared cell')}"
    if not tied:
        return f"{where} prefer {best.model} ({facts}): it is told apart from every other."
    names = ", ".join(row.model for row in tied[:4]) + (f" and {len(tied) - 4} more" if len(tied) > 4 else "")
    rest = len(ranking.rows) - 1 - len(tied)
    worse = f" The other {rest} {'is' if rest == 1 else 'are'} worse." if rest else ""
    return f"{where} {best.model} is ahead ({facts}), but cannot be told apart from {names}.{worse}"
