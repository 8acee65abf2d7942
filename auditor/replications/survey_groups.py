"""Figures of audits of a survey by country, topic, size of errors, and tier. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from auditor.metrics.estimate import Estimate
from auditor.replications.survey_figures import DIRECT, NO_INTERVAL, NOT_MEASURED
from auditor.reports.data.agreement.over_models import CUT_OFFS, ERROR_BIN_WIDTH
from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_schema import Report

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
