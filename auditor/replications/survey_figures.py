"""Figures of audits of a survey that published tables are compared with. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from auditor.domain import Method
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.people.over_models import ModelCorrelation, SummaryOverModels
from auditor.probes.distribution.figures.schema import DistributionReport
from auditor.reports.data.agreement.over_models import CUT_OFFS, ERROR_BIN_WIDTH, OverModelsFigure
from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_schema import Report

DIRECT = Method.DIRECT.value
NO_INTERVAL = "reports have no interval of this figure"
NO_INTERVAL_OF_MODELS = "the report’s interval is of families of models, which papers do not average"
NOT_MEASURED = "the audit did not measure it"
NO_CONFLICT = "there is no conflict between models"
MIN_MODELS_OF_CORRELATION = 3
AGREEMENT_FIGURES = {"r": "pearson_r", "rho": "spearman_rho", "mae": "mae", "rmse": "rmse", "bias": "bias"}
"""Fields of a model's agreement with the survey, by the beginning of the names that presets use."""

DISTRIBUTION_FIGURES = ("w1", "w1_near", "skill")
"""Figures of answers on the survey's scale: mean Wasserstein distance, share of cells with one below 0.2, and skill."""
DISTRIBUTION_MODES = ("verbalized", "sampled", "tokens")
"""Ways of asking for them, which end the names that presets use."""


def _find_summary(report: Report, figure: OverModelsFigure, region: str | None) -> SummaryOverModels | None:
    """The summary over models of a figure of direct scores; None if the report has none."""
    rows = report.over_models.figures if report.over_models else []
    summaries = (row.summary for row in rows if (row.figure, row.method, row.region) == (figure, DIRECT, region))
    return next(summaries, None)


def _read_mean(report: Report, *, figure: OverModelsFigure, region: str | None = None) -> Estimate:
    """The mean over models of a figure."""
    summary = _find_summary(report, figure, region)
    return Estimate(None, 0, reason=NOT_MEASURED) if summary is None else summary.mean


def find_extreme_model(report: Report, *, figure: OverModelsFigure, is_highest: bool) -> str | None:
    """The model with the lowest or the highest figure; None if no model has it."""
    summary = _find_summary(report, figure, None)
    return None if summary is None else summary.highest_model if is_highest else summary.lowest_model


def _read_variance_deviation(report: Report) -> Estimate:
    """Standard deviation of the variance of cells."""
    value = report.over_models.variance_deviation if report.over_models else None
    n = sum(row.variance.n for row in report.self_consistency if row.method == DIRECT)
    return Estimate(value, n, reason=NO_INTERVAL if value is not None else NOT_MEASURED)


def from_correlation(correlation: ModelCorrelation | None) -> Estimate:
    """A correlation in which each model counts once, as papers report it.

    The report's interval is that of the value with families averaged; it is shown only where both are the same.
    """
    if correlation is None:
        return Estimate(None, 0, reason=NOT_MEASURED)
    if correlation.r_over_models is None:
        return Estimate(None, correlation.models, reason=correlation.reason or NOT_MEASURED)
    if correlation.value != correlation.r_over_models:
        return Estimate(correlation.r_over_models, correlation.models, reason=NO_INTERVAL_OF_MODELS)
    return Estimate(
        correlation.value, correlation.n, correlation.ci_low, correlation.ci_high, correlation.reason,
        correlation.resampled,
    )  # fmt: skip


def _read_consistency_alignment(report: Report, *, figure: str) -> Estimate:
    """Correlation over models of self-consistency (`cosine`) or `variance` with r."""
    rows = [row.r for row in report.consistency_alignment if (row.method, row.figure) == (DIRECT, figure)]
    return from_correlation(rows[0] if rows else None)


def _read_peer_alignment(report: Report) -> Estimate:
    """Correlation over models of peer agreement with r."""
    rows = [row.r for row in report.panel.peer_alignment if row.method == DIRECT]
    return from_correlation(rows[0] if rows else None)


def _read_conflict_count(report: Report, *, is_by_cell: bool) -> Estimate:
    """Number of cells in conflict, or of conflicts of pairs of models."""
    counts = report.conflicts.by_cell
    if counts is None:
        return Estimate(None, 0, reason=NOT_MEASURED)
    value = counts.cells if is_by_cell else counts.pairs
    n_compared = counts.compared if is_by_cell else report.conflicts.third_quartile.n
    return Estimate(value, n_compared, reason=NO_INTERVAL)


def _read_conflict_kind(report: Report, *, kind: str, is_by_cell: bool) -> Estimate:
    """Share of the cells in conflict, or of the conflicts of pairs, that are of one kind."""
    counts = report.conflicts.by_cell
    if counts is None:
        return Estimate(None, 0, reason=NOT_MEASURED)
    shares = counts.kind_shares if is_by_cell else counts.pair_kind_shares
    n = counts.cells if is_by_cell else counts.pairs
    return Estimate(shares.get(kind), n, reason=NO_INTERVAL if shares else NO_CONFLICT)


def _read_settled_cells(report: Report) -> Estimate:
    """Share of the cells in conflict that the judges settled."""
    counts = report.conflicts.by_cell
    if counts is None:
        return Estimate(None, 0, reason=NOT_MEASURED)
    if counts.settled_share is None:
        return Estimate(None, 0, reason=report.conflicts.settled.reason if counts.cells else NO_CONFLICT)
    return Estimate(counts.settled_share, counts.cells, reason=NO_INTERVAL)


def _read_settled_pairs(report: Report) -> Estimate:
    """Share of the conflicts of pairs of models that the judges settled."""
    counts = report.conflicts.by_cell
    return Estimate(None, 0, reason=NO_CONFLICT) if counts and not counts.pairs else report.conflicts.settled


def _read_region(report: Report, *, is_first: bool, figure: OverModelsFigure = "pearson_r") -> Estimate:
    """Mean over models of r in the first or the second of two regions, or of the mean of r in its countries."""
    names = list(dict.fromkeys(row.region for row in report.regions.rows))
    if len(names) != 2:
        return Estimate(None, 0, reason="the survey’s countries are not in two regions")
    return _read_mean(report, figure=figure, region=names[0 if is_first else 1])


def _read_region_gap(report: Report) -> Estimate:
    """Mean over models of r in the first region minus r in the second: published gaps are positive."""
    gap = _read_mean(report, figure="region_gap")
    if gap.value is None:
        return gap
    low, high = (None if end is None else -end for end in (gap.ci_high, gap.ci_low))
    return Estimate(-gap.value, gap.n, low, high, gap.reason, gap.resampled)


def _read_agreement(report: Report, model: str, *, method: Method, figure: str) -> Estimate:
    """A figure of one model's agreement with the survey, with its interval over countries and topics."""
    rows = [row for row in report.alignment if (row.method, row.model) == (method.value, model)]
    estimate: Estimate = getattr(rows[0], figure) if rows else Estimate(None, 0, reason=NOT_MEASURED)
    return estimate


def _read_method_difference(report: Report, model: str) -> Estimate:
    """r of one model's direct scores minus r of its log-probability scores."""
    rows = [row.difference for row in report.methods if row.model == model]
    return rows[0] if rows else Estimate(None, 0, reason=NOT_MEASURED)


def _read_model_consistency(report: Report, model: str) -> Estimate:
    rows = [row.cosine for row in report.self_consistency if (row.method, row.model) == (DIRECT, model)]
    return rows[0] if rows else Estimate(None, 0, reason=NOT_MEASURED)


def _read_model_variance(report: Report, model: str) -> Estimate:
    rows = [row.variance for row in report.self_consistency if (row.method, row.model) == (DIRECT, model)]
    return rows[0] if rows else Estimate(None, 0, reason=NOT_MEASURED)


def _read_model_peer_agreement(report: Report, model: str) -> Estimate:
    rows = [row.agreement for row in report.peer_agreement if row.model == model]
    return rows[0] if rows else Estimate(None, 0, reason=NOT_MEASURED)


def _read_distribution(report: Report, model: str, *, mode: str, figure: str) -> Estimate:
    """A figure of one model's answers on the survey's scale, in one way of asking."""
    distribution = report.find(DistributionReport)
    rows = distribution.models if distribution else []
    estimates: list[Estimate] = [getattr(row, figure) for row in rows if (row.mode, row.model) == (mode, model)]
    return estimates[0] if estimates else Estimate(None, 0, reason=NOT_MEASURED)


SURVEY_FIGURES: Mapping[str, Callable[[Report], Estimate]] = {
    "delta_r.mean": partial(_read_mean, figure="method_difference"),
    "self_consistency.alignment": partial(_read_consistency_alignment, figure="cosine"),
    "variance.mean": partial(_read_mean, figure="variance"),
    "variance.deviation": _read_variance_deviation,
    "variance.alignment": partial(_read_consistency_alignment, figure="variance"),
    "peer_agreement.alignment": _read_peer_alignment,
    "fleiss_kappa": lambda report: report.panel.fleiss_kappa,
    "conflicts.cells": partial(_read_conflict_count, is_by_cell=True),
    "conflicts.pairs": partial(_read_conflict_count, is_by_cell=False),
    **{
        f"conflicts.{unit}.{kind}": partial(_read_conflict_kind, is_by_cell=unit == "cells", kind=kind)
        for unit in ("cells", "pairs")
        for kind in ("binary", "gradient", "outlier")
    },
    "conflicts.cells.settled": _read_settled_cells,
    "conflicts.pairs.settled": _read_settled_pairs,
    "regions.first": partial(_read_region, is_first=True),
    "regions.second": partial(_read_region, is_first=False),
    "regions.gap": _read_region_gap,
    "regions.first.countries": partial(_read_region, is_first=True, figure="mean_country_r"),
    "regions.second.countries": partial(_read_region, is_first=False, figure="mean_country_r"),
}
"""Readers of a report's figures over all models, by the names that presets use."""
SURVEY_MODEL_FIGURES: Mapping[str, Callable[[Report, str], Estimate]] = {
    **{
        f"{name}.{method.value}": partial(_read_agreement, method=method, figure=figure)
        for name, figure in AGREEMENT_FIGURES.items()
        for method in (Method.DIRECT, Method.LOGPROB)
    },
    "delta_r": _read_method_difference,
    "self_consistency": _read_model_consistency,
    "variance": _read_model_variance,
    "peer_agreement": _read_model_peer_agreement,
    **{
        f"{figure}.{mode}": partial(_read_distribution, mode=mode, figure=figure)
        for figure in DISTRIBUTION_FIGURES
        for mode in DISTRIBUTION_MODES
    },
}
"""Readers of a report's figures of one model, by the names that presets use."""


@dataclass(frozen=True, slots=True)
class ExtremeFigure:
    """The figure of the model that has the lowest or the highest.

    Attributes:
        model_figure: a key of `SURVEY_MODEL_FIGURES`.
        find_model: the model; None if no model has the figure.
    """

    model_figure: str
    find_model: Callable[[Report], str | None]


_EXTREMES: tuple[tuple[str, str, OverModelsFigure], ...] = (
    ("r.highest", "r.direct", "pearson_r"),
    ("delta_r.lowest", "delta_r", "method_difference"),
    ("delta_r.highest", "delta_r", "method_difference"),
    ("self_consistency.lowest", "self_consistency", "self_consistency"),
    ("self_consistency.highest", "self_consistency", "self_consistency"),
    ("peer_agreement.highest", "peer_agreement", "peer_agreement"),
)
EXTREME_FIGURES: Mapping[str, ExtremeFigure] = {
    name: ExtremeFigure(model_figure, partial(find_extreme_model, figure=figure, is_highest=name.endswith(".highest")))
    for name, model_figure, figure in _EXTREMES
}
"""Lowest and highest figures of models, by the names that presets use."""
MIN_MODELS: Mapping[str, int] = {
    **dict.fromkeys(EXTREME_FIGURES, 2),
    **{name: 2 for name in SURVEY_FIGURES if name.startswith("conflicts.")},
    **{name: MIN_MODELS_OF_CORRELATION for name in SURVEY_FIGURES if name.endswith(".alignment")},
}
"""Fewest models of figures over models that say nothing about fewer; of all others, one."""


NO_CORRELATION = "fewer than three topics, or constant scores"


def _select_rows(rows: list[GroupErrorRow], model: str) -> list[GroupErrorRow]:
    """The rows of a model's direct scores."""
    return [row for row in rows if (row.method, row.model) == (DIRECT, model)]


def _read_r_by_country(report: Report, model: str) -> dict[str, Estimate]:
    """Pearson's r over the topics of each country."""
    return {
        row.name: Estimate(
            row.pearson_r.value, row.n, reason=NO_CORRELATION if row.pearson_r.value is None else NO_INTERVAL
        )
        for row in _select_rows(report.countries, model)
    }


def _read_error_by_topic(report: Report, model: str) -> dict[str, Estimate]:
    """Mean absolute error over the countries of each topic."""
    return {row.name: row.mae for row in _select_rows(report.topics, model)}


def _read_error_counts(report: Report, model: str) -> dict[str, Estimate]:
    """Number of cells by the size of the absolute error, up to the largest error of any model."""
    rows = [row for row in report.over_models.errors if row.method == DIRECT] if report.over_models else []
    n_bins = max((i + 1 for row in rows for i, count in enumerate(row.counts) if count), default=0)
    counts = next((row.counts for row in rows if row.model == model), [])
    return {
        f"{i * ERROR_BIN_WIDTH:.1f} to {(i + 1) * ERROR_BIN_WIDTH:.1f}": Estimate(n, sum(counts), reason=NO_INTERVAL)
        for i, n in enumerate(counts[:n_bins])
    }


def _read_tier(report: Report, model: str, *, survey: str) -> Estimate:
    """The tier of a model by the cut-offs of a survey, from 1, the best."""
    rows = report.over_models.cut_off_tiers if report.over_models else []
    tiers = [row.tier for row in rows if (row.cut_offs, row.method) == (survey, DIRECT) and model in row.models]
    n_cells = next((row.n for row in report.alignment if (row.method, row.model) == (DIRECT, model)), 0)
    return Estimate(tiers[0], n_cells, reason=NO_INTERVAL) if tiers else Estimate(None, 0, reason=NOT_MEASURED)


SURVEY_GROUP_FIGURES: Mapping[str, Callable[[Report, str], Mapping[str, Estimate]]] = {
    "r.by_country": _read_r_by_country,
    "mae.by_topic": _read_error_by_topic,
    "errors.by_size": _read_error_counts,
}
"""Readers of a model's figures by group, by the names that presets use."""
TIER_MODEL_FIGURES: Mapping[str, Callable[[Report, str], Estimate]] = {
    f"tier.{survey}": partial(_read_tier, survey=survey) for survey in CUT_OFFS
}
"""Readers of a model's tier."""
