"""Section with each model's mean absolute error on each topic and in each country."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from auditor.metrics.estimate import Estimate
from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Column, Disclosure, Name, Paragraph, Section, Table
from auditor.reports.sections.score_series import ScoreSeries, list_series_with_errors

MAX_PORTRAIT_SERIES = 6
"""Series of scores whose errors fit a page in portrait orientation."""


def build_group_errors_section(report: Report) -> Section | None:
    """Build the section with a table by topic and one by country; None without a series that has errors."""
    series = list_series_with_errors(report)
    if not series:
        return None
    groups = (("topic", report.topics), ("country", report.countries))
    return Section(
        "places",
        "Topics and countries",
        [
            Paragraph("The tables show where each model is furthest from people. The largest errors come first."),
            *(
                Disclosure(f"By {noun}", [_build_error_table(noun, rows, series)], is_open=True)
                for noun, rows in groups
                if rows
            ),
        ],
        contents_title="Topics and countries",
        is_landscape=len(series) > MAX_PORTRAIT_SERIES,
    )


def _build_error_table(noun: str, rows: Sequence[GroupErrorRow], series: Sequence[ScoreSeries]) -> Table:
    """Build the table of errors, one row for each topic or country, sorted by its mean over the series."""
    errors: dict[str, dict[tuple[str, str], Estimate]] = defaultdict(dict)
    for row in rows:
        errors[row.name][row.method, row.model] = row.mae
    cells = {name: [by_series.get(entry.key) for entry in series] for name, by_series in errors.items()}
    return Table(
        f"error-by-{noun}",
        f"Mean absolute error by {noun}",
        f"Mean absolute difference between the model’s and people’s scores by {noun}, from 0 to 2 (lower is better), "
        "with its 95% CI. n is the number of cells.",
        [Column(noun.capitalize(), "name"), *(Column(Name(entry.label), "estimate") for entry in series)],
        [[Name(name), *cells[name]] for name in sorted(cells, key=lambda name: _negative_mean(cells[name]))],
    )


def _negative_mean(estimates: Sequence[Estimate | None]) -> float:
    """Sort key that puts the largest mean first; 1 without any value, which comes last."""
    values = [estimate.value for estimate in estimates if estimate is not None and estimate.value is not None]
    return -fmean(values) if values else 1.0
