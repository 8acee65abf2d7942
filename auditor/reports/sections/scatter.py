"""Section with a scatter plot of each model's scores against people's."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.charts.scatter_plot import MAX_TOOLTIPS_PER_PAGE, ScorePair, scatter_plot
from auditor.reports.data.measurement_schema import AlignmentRow
from auditor.reports.data.report_schema import CellReport, Report
from auditor.reports.document import Figure, FigureGrid, Paragraph, Section
from auditor.reports.number_format import format_number, pluralize
from auditor.reports.sections.score_series import ScoreSeries, list_score_series


def build_scatter_section(report: Report) -> Section | None:
    """Build the section with one scatter plot for each series of scores; None without scores."""
    all_series = list_score_series(report)
    if not all_series:
        return None
    cells = report.audit.cells
    with_tooltips = len(cells) * len(all_series) <= MAX_TOOLTIPS_PER_PAGE
    figures = [
        _build_figure(series, row, cells, with_tooltips=with_tooltips)
        for series, row in zip(all_series, report.alignment, strict=True)
    ]
    explanation = (
        "Each point is one cell: a country and a topic. People’s score is on the horizontal axis, the model’s score on "
        "the vertical axis, both from −1 to +1. On the dashed line, both scores are equal. Above it, the model is more "
        "permissive than people."
    )
    return Section(
        "scatter",
        "Model against people, cell by cell",
        [Paragraph(explanation), FigureGrid(figures)],
        contents_title="Cell by cell",
    )


def _build_figure(
    series: ScoreSeries, row: AlignmentRow, cells: Sequence[CellReport], *, with_tooltips: bool
) -> Figure:
    """Plot one series on the cells that have both scores."""
    pairs = [
        ScorePair(cell.survey, score, f"{cell.country}, {cell.topic}" if with_tooltips else "")
        for cell in cells
        if cell.survey is not None and (score := cell.scores[series.method].get(series.model)) is not None
    ]
    r_text = "r not available" if row.pearson_r is None else f"r = {format_number(row.pearson_r)}"
    figures_text = f"{r_text}, {pluralize(row.n, 'cell')}"
    return Figure(
        f"scatter-{series.slug}",
        scatter_plot(pairs),
        f"{series.label} against people",
        f"Scores of {series.label} (vertical) against people’s scores (horizontal): {figures_text}.",
        caption=figures_text,
        table_id="alignment",
    )
