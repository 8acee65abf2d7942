"""Sections on single cells, each one country and topic: heat maps of differences from people, and scatter plots."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.charts.scatter_plot import MAX_TOOLTIPS_PER_PAGE, ScorePair, scatter_plot
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.report_schema import CellReport, Report
from auditor.reports.document import Disclosure, Figure, FigureGrid, HeatMap, HeatMapCell, Name, Paragraph, Section
from auditor.reports.number_format import format_number, format_signed, pluralize
from auditor.reports.sections.phrasing import SeriesLabels, list_series_with_errors, slugify_unique

SHADE_BOUNDS = (0.1, 0.3, 0.5, 0.7)
"""Absolute differences of scores at which the shade of a cell changes."""
MAX_OPEN_HEAT_MAPS = 4
"""With more heat maps than this, only the first is open."""
MAX_PORTRAIT_COLUMNS = 15
"""Columns of a heat map that fit a page in portrait orientation."""
MIN_PRINTED_DIFFERENCE = 0.005
"""Smaller differences are printed as 0."""
NOT_ASKED = HeatMapCell(None, "", "people were not asked", "not_asked")
NO_ANSWER = HeatMapCell(None, "×", "no usable answer of the model", "no_answer")


# --- heat maps --------------------------------------------------------------------------------------------------


def build_differences_section(report: Report) -> Section | None:
    """Build the section with a heat map for each series of scores; None without a series that has errors."""
    series, labels = list_series_with_errors(report), SeriesLabels.of(report)
    if not series:
        return None
    heat_maps = [_build_heat_map(report, row, labels.label(row), show_legend=i == 0) for i, row in enumerate(series)]
    explanation = (
        "Each cell shows the model’s score minus people’s score for one country and topic. "
        "Positive: the model is more permissive than people. Negative: it is stricter. "
        "Scores range from −1 to +1, so differences range from −2 to +2."
    )
    return Section(
        "where",
        "Where do they differ from people?",
        [
            Paragraph(explanation),
            *(
                Disclosure(Name(labels.label(row)), [heat_map], is_open=i == 0 or len(series) <= MAX_OPEN_HEAT_MAPS)
                for i, (row, heat_map) in enumerate(zip(series, heat_maps, strict=True))
            ),
        ],
        contents_title="Differences",
        is_landscape=len(heat_maps[0].columns) > MAX_PORTRAIT_COLUMNS,
    )


def _build_heat_map(report: Report, series: AlignmentRow, label: str, *, show_legend: bool) -> HeatMap:
    """Build the heat map of one series; the longer of countries and topics is shown as rows."""
    cells = {(cell.country, cell.topic): _build_cell(cell, series) for cell in report.audit.cells}
    row_names, column_names = (list(dict.fromkeys(names[i] for names in cells)) for i in (0, 1))
    if len(column_names) >= len(row_names):
        row_names, column_names = column_names, row_names
        cells = {(topic, country): cell for (country, topic), cell in cells.items()}
    return HeatMap(
        label=f"{label}: score minus people’s score, by country and topic",
        columns=column_names,
        rows=[(name, [cells.get((name, column), NOT_ASKED) for column in column_names]) for name in row_names],
        bounds=SHADE_BOUNDS,
        low_label="stricter than people",
        high_label="more permissive than people",
        state_labels={cell.state: cell.tooltip for cell in (NOT_ASKED, NO_ANSWER)},
        show_legend=show_legend,
    )


def _build_cell(cell: CellReport, series: AlignmentRow) -> HeatMapCell:
    """Build the heat map's cell for one country and topic."""
    score = cell.scores[series.method].get(series.model)
    if cell.survey is None or score is None:
        return NOT_ASKED if cell.survey is None else NO_ANSWER
    difference = score - cell.survey
    tooltip = f"people {format_number(cell.survey)}, model {format_number(score)}"
    return HeatMapCell(difference, _format_short_difference(difference), tooltip)


def _format_short_difference(difference: float) -> str:
    """Format a difference with two decimals and no leading zero, to keep columns narrow."""
    return format_signed(difference).replace("0.", ".") if abs(difference) >= MIN_PRINTED_DIFFERENCE else "0"


# --- scatter plots ----------------------------------------------------------------------------------------------


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
    return Section(
        "scatter", "Model against people, cell by cell", [Paragraph(explanation), FigureGrid(figures)], "Cell by cell"
    )


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
