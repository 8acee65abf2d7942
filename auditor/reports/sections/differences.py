"""Section on how each model differs from people in each country and on each topic: one heat map for each series."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.reports.data.report_schema import CellReport, Report
from auditor.reports.document import Disclosure, HeatMap, HeatMapCell, Name, Paragraph, Section
from auditor.reports.number_format import format_number, format_signed
from auditor.reports.sections.score_series import ScoreSeries, list_series_with_errors

SHADE_BOUNDS = (0.1, 0.3, 0.5, 0.7)
"""Absolute differences of scores at which the shade of a cell changes."""
MAX_OPEN_HEAT_MAPS = 4
"""With more heat maps than this, only the first is open."""
MAX_PORTRAIT_COLUMNS = 15
"""Columns of a heat map that fit a page in portrait orientation."""
MIN_PRINTED_DIFFERENCE = 0.005
"""Smaller differences are printed as 0."""


def build_differences_section(report: Report) -> Section | None:
    """Build the section with a heat map for each series of scores; None without a series that has errors."""
    all_series = list_series_with_errors(report)
    if not all_series:
        return None
    countries = list(dict.fromkeys(cell.country for cell in report.audit.cells))
    topics = list(dict.fromkeys(cell.topic for cell in report.audit.cells))
    are_all_open = len(all_series) <= MAX_OPEN_HEAT_MAPS
    cells = {(cell.country, cell.topic): cell for cell in report.audit.cells}
    heat_maps = [
        Disclosure(
            Name(series.label),
            [_build_heat_map(series, countries, topics, cells, show_legend=i == 0)],
            is_open=are_all_open or i == 0,
        )
        for i, series in enumerate(all_series)
    ]
    explanation = (
        "Each cell shows the model’s score minus people’s score for one country and topic. "
        "Positive: the model is more permissive than people. Negative: it is stricter. "
        "Scores range from −1 to +1, so differences range from −2 to +2."
    )
    return Section(
        "where",
        "Where do they differ from people?",
        [Paragraph(explanation), *heat_maps],
        contents_title="Differences",
        is_landscape=min(len(countries), len(topics)) > MAX_PORTRAIT_COLUMNS,
    )


def _build_heat_map(
    series: ScoreSeries,
    countries: list[str],
    topics: list[str],
    cells: Mapping[tuple[str, str], CellReport],
    *,
    show_legend: bool,
) -> HeatMap:
    """Build the heat map of one series; the longer of countries and topics is shown as rows."""
    has_country_rows = len(topics) < len(countries)
    row_names, column_names = (countries, topics) if has_country_rows else (topics, countries)
    return HeatMap(
        label=f"{series.label}: score minus people’s score, by country and topic",
        columns=column_names,
        rows=[
            (
                row_name,
                [
                    _build_cell(cells.get((row_name, name) if has_country_rows else (name, row_name)), series)
                    for name in column_names
                ],
            )
            for row_name in row_names
        ],
        bounds=SHADE_BOUNDS,
        low_label="stricter than people",
        high_label="more permissive than people",
        state_labels={"not_asked": "people were not asked", "no_answer": "no usable answer of the model"},
        show_legend=show_legend,
    )


def _build_cell(cell: CellReport | None, series: ScoreSeries) -> HeatMapCell:
    """Build the heat map's cell for one country and topic; `cell` is None if the report has no such cell."""
    if cell is None or cell.survey is None:
        return HeatMapCell(None, "", "people were not asked", "not_asked")
    score = cell.scores[series.method].get(series.model)
    if score is None:
        return HeatMapCell(None, "×", "no usable answer of the model", "no_answer")
    difference = score - cell.survey
    tooltip = f"people {format_number(cell.survey)}, model {format_number(score)}"
    return HeatMapCell(difference, _format_short_difference(difference), tooltip)


def _format_short_difference(difference: float) -> str:
    """Format a difference with two decimals and no leading zero, to keep columns narrow."""
    return format_signed(difference).replace("0.", ".") if abs(difference) >= MIN_PRINTED_DIFFERENCE else "0"
