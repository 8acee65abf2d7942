"""Summary tables that are printed at the end of a run."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.data.measurement_schema import ConsistencyRow
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import (
    format_count,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
)
from auditor.reports.pages import alignment_wording
from auditor.reports.pages.report_view import ReportView

SUMMARY_COLUMNS = ("model", "cells", "r", "95% CI", "p", "MAE", "self-cons.", "peers", "usable")


def summary_columns() -> list[str]:
    """Column headings of the summary of a survey audit."""
    return list(SUMMARY_COLUMNS)


def summary_rows(report: Report) -> list[list[str | None]]:
    """Rows of the summary, one for each series of scores; None for a missing value.

    The interval of r is the one over countries and topics.
    """
    view = ReportView(report)
    peer_agreement = {row.model: row.agreement for row in report.peer_agreement}
    usable_shares = {(row.method, row.name): format_percent(row.ok, row.planned) for row in report.coverage.models}
    return [
        [
            column.label,
            format_count(row.n),
            _format_optional_number(row.pearson_r),
            None
            if alignment_wording.two_way_interval(row)[0] is None
            else format_interval(*alignment_wording.two_way_interval(row)),
            None if row.crossed_p_value is None else format_p_value(row.crossed_p_value),
            _format_optional_number(row.mae),
            _format_estimate_value(_find_cosine(report.self_consistency, row.method, row.model)),
            _format_estimate_value(peer_agreement.get(row.model)),
            usable_shares.get((row.method, row.model)),
        ]
        for column, row in zip(view.columns, report.alignment, strict=True)
    ]


def logic_columns() -> list[str]:
    """Column headings of the summary of judges' logical consistency."""
    return ["judge", "transitivity", "commutativity", "negation", "self-agr.", "people", "usable"]


def logic_rows(report: Report) -> list[list[str | None]]:
    """Rows of the summary of logical consistency, one for each judge; empty where it was not measured."""
    return [
        [
            row.judge,
            _format_optional_number(row.transitivity[0].share.value),
            *(
                _format_estimate_value(estimate)
                for estimate in (row.commutativity, row.negation, row.self_agreement, row.human_agreement)
            ),
            format_percent(row.ok, row.questions),
        ]
        for row in (report.logic.judges if report.logic else ())
    ]


def _find_cosine(rows: Sequence[ConsistencyRow], method: str, model: str) -> Estimate | None:
    """Self-consistency (mean cosine) of one series of scores; None if there is no row for it."""
    return next((row.cosine for row in rows if (row.method, row.model) == (method, model)), None)


def _format_estimate_value(estimate: Estimate | None) -> str | None:
    """Format the value of an estimate without its interval; None if there is no estimate or no value."""
    return None if estimate is None else _format_optional_number(estimate.value)


def _format_optional_number(value: float | None) -> str | None:
    """Format a number with two decimals; None stays None."""
    return None if value is None else format_number(value)


def task_columns() -> list[str]:
    """Column headings of the summary of a task audit."""
    return ["model", "accuracy", "95% CI", "MAE", "samples agree", "peers", "usable"]


def task_rows(report: Report) -> list[list[str | None]]:
    """Rows of the summary of a task audit, one for each model; empty for a survey."""
    peer_agreement = {row.model: row.agreement for row in report.peer_agreement}
    usable_shares = {
        row.name: format_percent(row.ok, row.planned) for row in report.coverage.models if row.stage == "direct"
    }
    return [
        [
            row.model,
            _format_optional_number(row.accuracy.value),
            None if row.accuracy.ci_low is None else format_interval(row.accuracy.ci_low, row.accuracy.ci_high),
            _format_estimate_value(row.score.mae if row.score else None),
            _format_optional_number(row.sample_agreement.value),
            _format_estimate_value(peer_agreement.get(row.model)),
            usable_shares.get(row.model),
        ]
        for row in (report.task.models if report.task else ())
    ]


def semantic_columns() -> list[str]:
    """Column headings of the summary of consistency under paraphrase."""
    return ["model", "questions", "same in other words", "95% CI", "by chance", "usable"]


def semantic_rows(report: Report) -> list[list[str | None]]:
    """Rows of the summary of consistency under paraphrase, one for each model; empty where it was not measured."""
    return [
        [
            row.model,
            format_count(row.consistency.n),
            _format_optional_number(row.consistency.value),
            None
            if row.consistency.ci_low is None
            else format_interval(row.consistency.ci_low, row.consistency.ci_high),
            _format_optional_number(
                row.length_matched.mean if row.length_matched.mean is not None else row.shuffled.mean
            ),
            format_percent(row.ok, row.planned),
        ]
        for row in (report.semantic.models if report.semantic else ())
    ]
