"""Sections on single cells, each one country and topic: heat maps of differences from people, and scatter plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from auditor.reports.charts.scatter_plot import MAX_TOOLTIPS_PER_PAGE, ScorePair, scatter_plot
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.report_schema import CellReport, Report
from auditor.reports.document import (
    Block,
    Disclosure,
    Figure,
    FigureGrid,
    HeatMap,
    HeatMapCell,
    Link,
    Name,
    Paragraph,
    Section,
    Text,
)
from auditor.reports.number_format import format_count, format_number, format_signed, pluralize
from auditor.reports.sections.phrasing import SeriesLabels, list_series_with_errors, slugify_unique
from auditor.reports.sections.profiles import HIGH_LABEL, LOW_LABEL, SHADE_BOUNDS, format_short_difference

MAX_OPEN_HEAT_MAPS = 1
"""With more heat maps than this, only the first is open."""
MAX_PORTRAIT_COLUMNS = 15
"""Columns of a heat map that fit a page in portrait orientation."""
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
        "The model’s score minus people’s, from −2 to +2. Positive: the model is more permissive. Negative: it is "
        f"stricter. Differences below {SHADE_BOUNDS[0]} have no colour."
    )
    return Section(
        "where",
        "Where do the models differ from people?",
        [
            Paragraph(_describe_largest_difference(report), "finding"),
            Paragraph(explanation, "note"),
            *_link_answers(report),
            *(
                Disclosure(Name(labels.label(row)), [heat_map], is_open=i == 0 or len(series) <= MAX_OPEN_HEAT_MAPS)
                for i, (row, heat_map) in enumerate(zip(series, heat_maps, strict=True))
            ),
        ],
        contents_title="Differences",
        is_landscape=len(heat_maps[0].columns) > MAX_PORTRAIT_COLUMNS,
    )


def _link_answers(report: Report) -> list[Paragraph]:
    """Say that cells link to their answers; empty if no pages of answers were written."""
    index = report.trace_pages.index
    if not index:
        return []
    link = Link("the list of all answers", page=index)
    return [Paragraph(["Select a cell to read what was asked and answered, or see ", link, "."], "note")]


def _describe_largest_difference(report: Report) -> Text:
    """Name the cell in which a series differs most from people."""
    labels = SeriesLabels.of(report)
    differences = [
        (score - cell.survey, labels.label(series), cell)
        for series in list_series_with_errors(report)
        for cell in report.audit.cells
        if cell.survey is not None and (score := cell.scores[series.method].get(series.model)) is not None
    ]
    if not differences:
        return "No cell has a score of a model and of people."
    difference, label, cell = max(differences, key=lambda item: abs(item[0]))
    return [
        "The largest of ",
        pluralize(len(differences), "difference"),
        f" is {format_signed(difference)}: ",
        Name(label),
        " on ",
        Name(cell.topic),
        " in ",
        Name(cell.country),
        ".",
    ]


def _build_heat_map(report: Report, series: AlignmentRow, label: str, *, show_legend: bool) -> HeatMap:
    """Build the heat map of one series; the longer of countries and topics is shown as rows."""
    cells = {(cell.country, cell.topic): _build_cell(report, cell, series) for cell in report.audit.cells}
    row_names, column_names = (list(dict.fromkeys(names[i] for names in cells)) for i in (0, 1))
    if len(column_names) >= len(row_names):
        row_names, column_names = column_names, row_names
        cells = {(topic, country): cell for (country, topic), cell in cells.items()}
    return HeatMap(
        label=f"{label}: score minus people’s score, by country and topic",
        columns=column_names,
        rows=[(name, [cells.get((name, column), NOT_ASKED) for column in column_names]) for name in row_names],
        bounds=SHADE_BOUNDS,
        low_label=LOW_LABEL,
        high_label=HIGH_LABEL,
        state_labels={cell.state: cell.tooltip for cell in (NOT_ASKED, NO_ANSWER)},
        show_legend=show_legend,
    )


def _build_cell(report: Report, cell: CellReport, series: AlignmentRow) -> HeatMapCell:
    """Build the heat map's cell for one country and topic; it links to the page with the answers, if there is one."""
    score, page = cell.scores[series.method].get(series.model), report.trace_pages.find(cell.country, cell.topic)
    if cell.survey is None or score is None:
        return replace(NOT_ASKED if cell.survey is None else NO_ANSWER, page=page)
    difference = score - cell.survey
    tooltip = f"people {format_number(cell.survey)}, model {format_number(score)}"
    text = format_short_difference(difference) or (format_signed(difference) if page else "")
    return HeatMapCell(difference, text, tooltip, page=page)


# --- scatter plots ----------------------------------------------------------------------------------------------


def build_scatter_section(report: Report) -> Section | None:
    """Build the section with one scatter plot for each series of scores; None without scores."""
    if not report.alignment:
        return None
    labels = [*map(SeriesLabels.of(report).label, report.alignment)]
    explanation = (
        "Each point is one cell. On the dashed line, both scores are equal; above it, the model is more permissive "
        "than people."
    )
    figures = [
        _build_figure(row, label, slug, report.audit.cells, len(labels))
        for row, label, slug in zip(report.alignment, labels, slugify_unique(labels), strict=True)
    ]
    blocks: list[Block] = [
        Paragraph(_describe_directions(report), "finding"),
        Paragraph(explanation, "note"),
        FigureGrid(figures),
    ]
    return Section("scatter", "Model against people, cell by cell", blocks, "Cell by cell")


def _describe_directions(report: Report) -> str:
    """Count the cells in which the models are more permissive than people."""
    pairs = [
        (score, cell.survey)
        for series in report.alignment
        for cell in report.audit.cells
        if cell.survey is not None and (score := cell.scores[series.method].get(series.model)) is not None
    ]
    n_above = sum(score > survey for score, survey in pairs)
    subject = "The model is" if len(report.alignment) == 1 else "The models are"
    return f"{subject} more permissive than people in {format_count(n_above)} of {pluralize(len(pairs), 'comparison')}."


def _build_figure(row: AlignmentRow, label: str, slug: str, cells: Sequence[CellReport], n_figures: int) -> Figure:
    """Plot one series on the cells that have both scores."""
    with_tooltips = len(cells) * n_figures <= MAX_TOOLTIPS_PER_PAGE
    pairs = [
        ScorePair(cell.survey, score, f"{cell.country}, {cell.topic}" if with_tooltips else "")
        for cell in cells
        if cell.survey is not None and (score := cell.scores[row.method].get(row.model)) is not None
    ]
    r_text = "r not available" if row.pearson_r.value is None else f"r = {format_number(row.pearson_r.value)}"
    figures_text = f"{r_text}, {pluralize(row.n, 'cell')}"
    description = f"Scores of {label} (vertical) against people’s scores (horizontal): {figures_text}."
    return Figure(
        f"scatter-{slug}", scatter_plot(pairs), f"{label} against people", description, figures_text, "alignment"
    )
