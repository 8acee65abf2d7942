"""Which model to prefer, over all countries and in each region, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.bootstrap import MAE, PEARSON
from auditor.metrics.tiers import Tiers, model_tiers
from auditor.reports.estimate_conversion import STRETCHED, is_stretched
from auditor.reports.measurement_schema import Part
from auditor.reports.pages.number_format import number, plural, share
from auditor.reports.report_source import Source
from auditor.surveys.regions import grouping_of

LEAST_SHARE = 0.8
"""A model with scores on less of the cells is not ranked: the others would be compared on what it has."""
ALL = "all countries"


class TierRow(Part):
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


class TiersPart(Part):
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


def tiers(source: Source) -> list[TiersPart]:
    """Rankings of the models of each method that has two: by r overall, by mean error overall and in each region."""
    methods = dict.fromkeys(method for method, _ in source.columns)
    return [part for method in methods for part in _of_method(source, method)]


def _of_method(source: Source, method: str) -> list[TiersPart]:
    columns = [i for i, (m, _) in enumerate(source.columns) if m == method]
    asked = ~np.isnan(source.truth)
    if len(columns) < 2 or not asked.any():
        return []
    everywhere = np.ones(len(source.cells), dtype=np.bool_)
    by_r = _ranking(source, method, columns, ALL, "r", everywhere)
    if is_stretched(method):
        return [by_r, by_r.model_copy(update={"by": "MAE", "rows": [], "left_out": {}, "reason": STRETCHED})]
    found = [by_r, _ranking(source, method, columns, ALL, "MAE", everywhere)]
    by_country = grouping_of(source.survey).by_country
    place = np.array([by_country.get(cell.country, "") for cell in source.cells], dtype=np.str_)
    names = [r.name for r in grouping_of(source.survey).regions if (place == r.name).any()]
    return found + [_ranking(source, method, columns, name, "MAE", place == name) for name in names]


def _ranking(
    source: Source, method: str, columns: Sequence[int], scope: str, by: str, inside: NDArray[np.bool_]
) -> TiersPart:
    asked = inside & ~np.isnan(source.truth)
    n = int(asked.sum())
    have = {i: int((~np.isnan(source.matrix[i]) & asked).sum()) for i in columns}
    ranked = [i for i in columns if n and have[i] >= LEAST_SHARE * n]
    left_out = {
        source.columns[i][1]: f"has a score on {share(have[i], n)} of the cells" for i in columns if i not in ranked
    }
    found = model_tiers(
        PEARSON if by == "r" else MAE,
        [source.matrix[i][asked] for i in ranked] or [np.full(n, np.nan)],
        source.truth[asked],
        source.country_index[asked],
        source.topic_index[asked],
        larger_is_better=by == "r",
        seed=source.seed,
    )
    names = [source.columns[i][1] for i in ranked]
    rows = _rows(names, found)
    return TiersPart(
        scope=scope,
        method=method,
        by="r" if by == "r" else "MAE",
        cells=found.n_cells,
        countries=found.n_countries,
        topics=found.n_topics,
        rows=sorted(rows, key=lambda r: (r.value is None, -(r.value or 0.0) if by == "r" else r.value or 0.0)),
        left_out=left_out,
        reason=_why(names, found, by),
    )


def _why(names: Sequence[str], found: Tiers, by: str) -> str | None:
    """Why there are no tiers; a model without a figure is named."""
    if found.reason is None or not found.n_cells or not names:
        return found.reason
    without = [name for name, value in zip(names, found.values, strict=True) if np.isnan(value)]
    if not without:
        return found.reason
    same = ": it gives every cell the same score" if by == "r" and len(without) == 1 else ""
    return f"{', '.join(without)} has no {by} on the cells that all have{same}"


def _rows(names: Sequence[str], found: Tiers) -> list[TierRow]:
    def at(values: NDArray[np.intp] | None, i: int) -> int | None:
        return None if values is None else int(values[i])

    return [
        TierRow(
            model=name,
            value=None if np.isnan(found.values[i]) else float(found.values[i]),
            tier=at(found.tiers, i),
            rank_low=at(found.rank_low, i),
            rank_high=at(found.rank_high, i),
            first=None if found.first is None else float(found.first[i]),
        )
        for i, name in enumerate(names)
    ]


def preference(part: TiersPart) -> str:
    """Which model to prefer there, and how sure that is, in one sentence."""
    name = f"{part.scope} countries" if part.scope.endswith("Western") else part.scope
    where = "Over all countries" if part.scope == ALL else f"For {name}"
    figure = "agreement (r)" if part.by == "r" else "mean error"
    if not part.rows or part.rows[0].value is None:
        return f"{where} no model can be preferred: {part.reason or 'none has scores on enough cells'}."
    best = part.rows[0]
    if best.tier is None:
        return (
            f"{where} {best.model} has the best {figure} ({number(best.value)}, {plural(part.cells, 'cell')}), but how "
            f"sure that is cannot be said: {part.reason}."
        )
    tied = [row for row in part.rows[1:] if row.tier == 1]
    sure = f"first in {share(round(1000 * (best.first or 0.0)), 1000)} of resamples"
    facts = f"{figure} {number(best.value)}, {sure}, {plural(part.cells, 'shared cell')}"
    if not tied:
        return f"{where} prefer {best.model} ({facts}): it is told apart from every other."
    names = ", ".join(row.model for row in tied[:4]) + (f" and {len(tied) - 4} more" if len(tied) > 4 else "")
    rest = len(part.rows) - 1 - len(tied)
    worse = f" The other {rest} {'is' if rest == 1 else 'are'} worse." if rest else ""
    return f"{where} {best.model} is ahead ({facts}), but cannot be told apart from {names}.{worse}"
