"""Rankings of models in tiers, over all countries and by region, with the uncertainty of each rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.people.alignment import MAE, PEARSON
from auditor.metrics.people.tiers import ModelTiers, model_tiers
from auditor.reports.data.coverage.lost_samples import bound_mae, has_large_loss
from auditor.reports.data.report_model import ModelName, ReportModel
from auditor.reports.data.report_source import RESCALED_SCORES_REASON, ReportSource, has_rescaled_scores
from auditor.reports.document import Column
from auditor.reports.number_format import format_percent
from auditor.surveys.regions import get_grouping

MIN_SCORED_SHARE = 0.8
"""A model with scores on a smaller share of the cells is not ranked, since models are compared on shared cells."""
ALL_COUNTRIES = "all countries"


class TierRow(ReportModel):
    """One model in one ranking."""

    model: ModelName
    tier: Annotated[int | None, Column("Tier", emphasis=True)]
    """1 is the best; null where the ranking has a `reason` and no tiers.

    A model is in the first tier if no other is significantly better, in the second if only models of the first are, and
    so on. Differences are compared with a critical value that holds for all pairs of models."""
    value: Annotated[float | None, Column("Value")]
    """r or MAE, over the cells that all ranked models have."""
    rank_low: Annotated[int | None, Column("Best rank")]
    rank_high: Annotated[int | None, Column("Worst rank")]
    """Upper end of the 95% interval of the rank; `rank_low` is the lower. The intervals of all models hold together,
    and those of all regions too."""
    from_best: Annotated[Estimate, Column("From the best other", show_n=False, style="signed")]
    """`value` minus that of the best other model, with Hsu's interval of the comparison with the best.

    The interval holds for all models together, and for all regions. It says how far a model may be from the best, so it
    always includes 0: it ends at 0 for the model that is significantly the best, and for models that are significantly
    not the best. An end at 0 is a result of the method, not an estimate; whether a model may be the best is in
    `may_be_best`."""
    may_be_best: Annotated[bool | None, Column("May be the best")]
    """True for the model that is significantly the best of all (Hsu); without one, for all models of tier 1. Models for
    which it is false are significantly worse than another."""


class TierRanking(ReportModel):
    """One ranking of the models of one method, over all countries or in one region."""

    scope: str
    method: str
    by: Literal["r", "MAE"]
    cells: int
    """Cells that all ranked models have."""
    countries: int
    topics: int
    rows: list[TierRow]
    """Best model first."""
    left_out: dict[str, str]
    """Models that are not ranked, and why."""
    open_by_losses: list[str] = Field(default_factory=list)
    """Models that are worse by MAE on the scored cells, but perhaps not over all planned samples: lost ones (more than
    5% of a model's) could make their error smaller than that of a model that may be the best."""
    reason: str | None
    """Why there are no tiers."""


def build_tier_rankings(source: ReportSource) -> list[TierRanking]:
    """Rank the models of each method with at least two: by r and MAE over all countries, by MAE in each region."""
    methods = dict.fromkeys(method for method, _ in source.columns)
    return [ranking for method in methods for ranking in _build_method_rankings(source, method)]


def _build_method_rankings(source: ReportSource, method: str) -> list[TierRanking]:
    """Rank the models of one method in each scope; rescaled scores are ranked by r only."""
    columns = [i for i, (column_method, _) in enumerate(source.columns) if column_method == method]
    has_truth = ~np.isnan(source.survey_scores)
    if len(columns) < 2 or not has_truth.any():
        return []
    all_cells = np.ones(len(source.cells), dtype=np.bool_)
    by_r = _build_ranking(source, method, columns, ALL_COUNTRIES, "r", all_cells)
    if has_rescaled_scores(method):
        return [
            by_r,
            by_r.model_copy(update={"by": "MAE", "rows": [], "left_out": {}, "reason": RESCALED_SCORES_REASON}),
        ]
    rankings = [_build_ranking(source, method, columns, ALL_COUNTRIES, "MAE", all_cells), by_r]
    by_country = get_grouping(source.survey).region_by_country
    region_by_cell = np.array([by_country.get(cell.country, "") for cell in source.cells], dtype=np.str_)
    region_names = [
        region.name for region in get_grouping(source.survey).regions if (region_by_cell == region.name).any()
    ]
    n_regions = max(1, len(region_names))
    return rankings + [
        _build_ranking(source, method, columns, name, "MAE", region_by_cell == name, n_regions) for name in region_names
    ]


def _build_ranking(
    source: ReportSource,
    method: str,
    columns: Sequence[int],
    scope: str,
    criterion: str,
    in_scope: NDArray[np.bool_],
    n_rankings: int = 1,
) -> TierRanking:
    """Rank the models of one method on the cells of one scope.

    Args:
        columns: indices of the models' series in `source.columns`.
        scope: the name of a region, or `ALL_COUNTRIES`.
        criterion: `r` or `MAE`.
        in_scope: whether each cell is in the scope, shape (cells,).
        n_rankings: rankings that hold together: those of all regions.
    """
    is_ranked_on = in_scope & ~np.isnan(source.survey_scores)
    n_cells = int(is_ranked_on.sum())
    n_scored = {i: int((~np.isnan(source.score_matrix[i]) & is_ranked_on).sum()) for i in columns}
    ranked = [i for i in columns if n_cells and n_scored[i] >= MIN_SCORED_SHARE * n_cells]
    left_out = {
        # The second item of a column is the model.
        source.columns[i][1]: f"has a score on {format_percent(n_scored[i], n_cells)} of the cells"
        for i in columns
        if i not in ranked
    }
    compared = [source.score_matrix[i] for i in ranked] or [np.full(len(source.cells), np.nan)]
    truth = np.where(is_ranked_on, source.survey_scores, np.nan)
    has_all = ~np.isnan(np.stack([*compared, truth])).any(axis=0)
    tiers = model_tiers(
        PEARSON if criterion == "r" else MAE,
        compared,
        truth,
        source.cluster_countries(*compared, truth),
        source.topic_index,
        larger_is_better=criterion == "r",
        n_rankings=n_rankings,
    )
    names = [source.columns[i][1] for i in ranked]
    rows = _build_tier_rows(names, tiers)
    is_best = {i: bool(row.may_be_best) for i, row in zip(ranked, rows, strict=True) if row.may_be_best is not None}
    return TierRanking(
        scope=scope,
        method=method,
        by="r" if criterion == "r" else "MAE",
        cells=tiers.n_cells,
        countries=len(np.unique(source.country_index[has_all])),
        topics=tiers.n_topics,
        rows=sorted(
            rows, key=lambda row: (row.value is None, -(row.value or 0.0) if criterion == "r" else row.value or 0.0)
        ),
        left_out=left_out,
        open_by_losses=_find_open_by_losses(source, is_best, is_ranked_on) if criterion == "MAE" else [],
        reason=_missing_tiers_reason(names, tiers, criterion),
    )


def _find_open_by_losses(source: ReportSource, is_best: Mapping[int, bool], in_scope: NDArray[np.bool_]) -> list[str]:
    """Names of models that are not among the best, but could be closer than one of these over all planned samples.

    Args:
        is_best: whether each ranked model may be the best, by its index in `source.columns`.
        in_scope: cells of the scope with a score of people, shape (cells,).
    """
    counts, truth = source.sample_counts, source.survey_scores
    is_lossy = {i: has_large_loss(counts[i].count_lost(in_scope)) for i in is_best}
    bounds = {i: bound_mae(counts[i].score_ranges(source.score_matrix[i]), truth, in_scope) for i in is_best}

    def could_be_closer(i: int, best: int) -> bool:
        if not (is_lossy[i] or is_lossy[best]):
            return False
        first, second = bounds[i], bounds[best]
        return first is None or second is None or first[0] <= second[1]

    best_models = [i for i in is_best if is_best[i]]
    others = [i for i in is_best if not is_best[i]]
    return [source.columns[i][1] for i in others if any(could_be_closer(i, best) for best in best_models)]


def _missing_tiers_reason(names: Sequence[str], tiers: ModelTiers, criterion: str) -> str | None:
    """Return the reason for missing tiers, naming models without a figure; None where there are tiers."""
    if tiers.reason is None or not tiers.n_cells or not names:
        return tiers.reason
    models_without_value = [name for name, value in zip(names, tiers.values, strict=True) if np.isnan(value)]
    if not models_without_value:
        return tiers.reason
    constant_note = (
        ": it gives every cell the same score" if criterion == "r" and len(models_without_value) == 1 else ""
    )
    return f"{', '.join(models_without_value)} has no {criterion} on the cells that all have{constant_note}"


def _build_tier_rows(names: Sequence[str], tiers: ModelTiers) -> list[TierRow]:
    """Build one row per model, in the order of `names`; tier and ranks are None where there are no tiers."""

    def value_at(values: NDArray[np.intp] | None, i: int) -> int | None:
        return None if values is None else int(values[i])

    return [
        TierRow(
            model=name,
            value=None if np.isnan(tiers.values[i]) else float(tiers.values[i]),
            tier=value_at(tiers.tiers, i),
            rank_low=value_at(tiers.rank_low, i),
            rank_high=value_at(tiers.rank_high, i),
            from_best=_build_difference_from_best(tiers, i),
            may_be_best=None if tiers.may_be_best is None else bool(tiers.may_be_best[i]),
        )
        for i, name in enumerate(names)
    ]


def _build_difference_from_best(tiers: ModelTiers, i: int) -> Estimate:
    """The figure of model number `i` minus that of the best other model, with its interval."""
    if tiers.from_best is None or tiers.from_best_low is None or tiers.from_best_high is None:
        return Estimate(None, tiers.n_cells, reason=tiers.reason or "there is no other model to compare with")
    low, high = float(tiers.from_best_low[i]), float(tiers.from_best_high[i])
    return Estimate(float(tiers.from_best[i]), tiers.n_cells, low, high, resampled=tiers.units)
