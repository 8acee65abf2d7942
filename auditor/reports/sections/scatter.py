"""Section with a scatter plot of each model's scores against people's."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.charts.scatter_plot import MAX_TOOLTIPS_PER_PAGE, ScorePair, scatter_plot
from auditor.reports.data.measurement_schema import AlignmentRow
from auditor.reports.data.report_schema import CellReport, Report
from auditor.reports.document import Block, Figure, FigureGrid, Paragraph, Section
from auditor.reports.number_format import format_number, pluralize
from auditor.reports.sections.phrasing import SeriesLabels, slugify_unique


def build_scatter_section(report: Report) -> Section | None:
    """Build the section with one scatter plot for each series of scores; None without scores."""
    if not report.alignment:
        return None
    labels = [*map(SeriesLabels.of(report).label, report.alignment)]
    explanation = (
        "Each point is one cell: a country and a topic. People’s score is on the horizontal axis, the model’s score on "
        "the vertical axis, both from −1 to +1. On the dashed line, both scores are equal. Above it, the model is more "
        "permissive than people."
    )
    figures = [
        _build_figure(row, label, slug, report.audit.cells, len(labels))
        for row, label, slug in zip(report.alignment, labels, slugify_unique(labels), strict=True)
    ]
    blocks: list[Block] = [Paragraph(explanation), FigureGrid(figures)]
    return Section("scatter", "Model against people, cell by cell", blocks, "Cell by cell")


def _build_figure(row: AlignmentRow, label: str, slug: str, cells: Sequence[CellReport], n_figures: int) -> Figure:
    """Plot one series on the cells that have both scores."""
    with_tooltips = len(cells) * n_figures <= MAX_TOOLTIPS_PER_PAGE
    pairs = [
        ScorePair(cell.survey, score, f"{cell.country}, {cell.topic}" if with_tooltips else "")
        for cell in cells
        if cell.survey is not None and (score := cell.scores[row.method].get(row.model)) is not None
    ]
    r_text = "r not available" if row.pearson_r is None else f"r = {format_number(row.pearson_r)}"
    figures_text = f"{r_text}, {pluralize(row.n, 'cell')}"
    description = f"Scores of {label} (vertical) against people’s scores (horizontal): {figures_text}."
    return Figure(
        f"scatter-{slug}", scatter_plot(pairs), f"{label} against people", description, figures_text, "alignment"
    )
