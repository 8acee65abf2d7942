"""Figures of audits of a survey that published tables are compared with. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from auditor.domain import Method
from auditor.metrics.estimate import Estimate
from auditor.metrics.model_correlation import ModelCorrelation
from auditor.metrics.over_models import SummaryOverModels
from auditor.reports.data.agreement.over_models import OverModelsFigure
from auditor.reports.data.report_schema import Report

DIRECT = Method.DIRECT.value
NO_INTERVAL = "reports have no interval of this figure"
NOT_MEASURED = "the audit did not measure it"
NO_CONFLICT = "there is no conflict between models"


def _find_summary(report: Report, figure: OverModelsFigure, region: str | None) -> SummaryOverModels | None:
    """The summary over models of a figure of direct scores; None if the report has none."""
    rows = report.over_models.figures if report.over_models else []
    summaries = (row.summary for row in rows if (row.figure, row.method, row.region) == (figure, DIRECT, region))
    return next(summaries, None)


def _read_mean(report: Report, *, figure: OverModelsFigure, region: str | None = None) -> Estimate:
    """The mean over models of a figure."""
    summary = _find_summary(report, figure, region)
    return Estimate(None, 0, reason=NOT_MEASURED) if summary is None else summary.mean


def _read_extreme(report: Report, *, figure: OverModelsFigure, is_highest: bool) -> Estimate:
    """The lowest or the highest of the models' figures."""
    summary = _find_summary(report, figure, None)
    if summary is None:
        return Estimate(None, 0, reason=NOT_MEASURED)
    value = summary.highest if is_highest else summary.lowest
    return Estimate(value, summary.mean.n, reason=NO_INTERVAL if value is not None else summary.mean.reason)


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
        return Estimate(correlation.r_over_models, correlation.models, reason=NO_INTERVAL)
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
    return Estimate(counts.settled_share, counts.cells, reason=NO_INTERVAL if counts.cells else NO_CONFLICT)


def _read_region(report: Report, *, is_first: bool) -> Estimate:
    """Mean over models of r in the first or the second of two regions."""
    names = list(dict.fromkeys(row.region for row in report.regions.rows))
    if len(names) != 2:
        return Estimate(None, 0, reason="the survey’s countries are not in two regions")
    return _read_mean(report, figure="pearson_r", region=names[0 if is_first else 1])


def _read_region_gap(report: Report) -> Estimate:
    """Mean over models of r in the first region minus r in the second: published gaps are positive."""
    gap = _read_mean(report, figure="region_gap")
    if gap.value is None:
        return gap
    low, high = (None if end is None else -end for end in (gap.ci_high, gap.ci_low))
    return Estimate(-gap.value, gap.n, low, high, gap.reason, gap.resampled)


def _read_model_consistency(report: Report, model: str) -> Estimate:
    rows = [row.cosine for row in report.self_consistency if (row.method, row.model) == (DIRECT, model)]
    return rows[0] if rows else Estimate(None, 0, reason=NOT_MEASURED)


def _read_model_peer_agreement(report: Report, model: str) -> Estimate:
    rows = [row.agreement for row in report.peer_agreement if row.model == model]
    return rows[0] if rows else Estimate(None, 0, reason=NOT_MEASURED)


SURVEY_FIGURES: Mapping[str, Callable[[Report], Estimate]] = {
    "r.highest": partial(_read_extreme, figure="pearson_r", is_highest=True),
    "delta_r.mean": partial(_read_mean, figure="method_difference"),
    "delta_r.lowest": partial(_read_extreme, figure="method_difference", is_highest=False),
    "delta_r.highest": partial(_read_extreme, figure="method_difference", is_highest=True),
    "self_consistency.lowest": partial(_read_extreme, figure="self_consistency", is_highest=False),
    "self_consistency.highest": partial(_read_extreme, figure="self_consistency", is_highest=True),
    "self_consistency.alignment": partial(_read_consistency_alignment, figure="cosine"),
    "variance.mean": partial(_read_mean, figure="variance"),
    "variance.deviation": _read_variance_deviation,
    "variance.alignment": partial(_read_consistency_alignment, figure="variance"),
    "peer_agreement.highest": partial(_read_extreme, figure="peer_agreement", is_highest=True),
    "peer_agreement.alignment": _read_peer_alignment,
    "fleiss_kappa": lambda report: report.panel.fleiss_kappa,
    "conflicts.cells": partial(_read_conflict_count, is_by_cell=True),
    "conflicts.pairs": partial(_read_conflict_count, is_by_cell=False),
    "conflicts.cells.binary": partial(_read_conflict_kind, is_by_cell=True, kind="binary"),
    "conflicts.cells.gradient": partial(_read_conflict_kind, is_by_cell=True, kind="gradient"),
    "conflicts.cells.outlier": partial(_read_conflict_kind, is_by_cell=True, kind="outlier"),
    "conflicts.pairs.binary": partial(_read_conflict_kind, is_by_cell=False, kind="binary"),
    "conflicts.pairs.gradient": partial(_read_conflict_kind, is_by_cell=False, kind="gradient"),
    "conflicts.pairs.outlier": partial(_read_conflict_kind, is_by_cell=False, kind="outlier"),
    "conflicts.cells.settled": _read_settled_cells,
    "conflicts.pairs.settled": lambda report: report.conflicts.settled,
    "regions.first": partial(_read_region, is_first=True),
    "regions.second": partial(_read_region, is_first=False),
    "regions.gap": _read_region_gap,
}
"""Readers of a report's figures over all models, by the names that presets use."""
SURVEY_MODEL_FIGURES: Mapping[str, Callable[[Report, str], Estimate]] = {
    "self_consistency": _read_model_consistency,
    "peer_agreement": _read_model_peer_agreement,
}
"""Readers of a report's figures of one model, by the names that presets use."""
