"""Charts and heat maps of the figures of a published table, as its paper draws them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.reports.charts.tradeoff_plot import TradeoffPoint, tradeoff_plot
from auditor.reports.data.replication import RecomputedCell, TableChart, TableLayout
from auditor.reports.document import Figure, HeatMap, Paragraph
from auditor.reports.number_format import format_number
from auditor.reports.sections.over_models import build_heat_map
from auditor.reports.sections.replication_table import to_paper_unit

MIN_POINTS = 2
PUBLISHED_SERIES, OWN_SERIES = "published", "yours"


def build_pictures(
    cells: Sequence[RecomputedCell], layout: TableLayout, table_id: str
) -> list[Figure | HeatMap | Paragraph]:
    """Draw the charts and heat maps of a table's layout; a chart with fewer than two points is left out.

    Args:
        table_id: id of the document's table with the same figures.
    """
    charts = (
        _build_chart(cells, chart, f"{table_id}-chart-{i + 1}", table_id) for i, chart in enumerate(layout.charts)
    )
    heat_maps = _build_heat_maps(cells, is_error=layout.heat_map == "error") if layout.heat_map else ()
    return [*(chart for chart in charts if chart is not None), *heat_maps]


def _build_heat_maps(cells: Sequence[RecomputedCell], *, is_error: bool) -> Iterator[HeatMap | Paragraph]:
    """Yield a heat map for each survey, after its name: rows are those of the table, columns our models."""
    for data in dict.fromkeys(cell.data for cell in cells if cell.data):
        table: dict[str, dict[str, float | None]] = {}
        for cell in cells:
            if cell.data == data:
                value = cell.recomputed.value if cell.recomputed else None
                table.setdefault(cell.published.row, {})[cell.published.column] = value
        yield Paragraph(data, "note")
        yield build_heat_map(f"{cells[0].published.title}, {data}", table, is_error=is_error)


def _build_chart(cells: Sequence[RecomputedCell], chart: TableChart, figure_id: str, table_id: str) -> Figure | None:
    """Draw a chart; None for fewer than two points."""
    is_line = len(chart.points) > 1
    points = list(_list_line_points(cells, chart) if is_line else _list_scatter_points(cells, chart))
    if len(points) < MIN_POINTS:
        return None
    spec = tradeoff_plot(points, cost_title=chart.x, accuracy_title=chart.y, joins_points=is_line)
    description = "; ".join(
        f"{', '.join(filter(None, (point.series, point.label)))}: {format_number(point.cost)}, "
        f"{format_number(point.accuracy)}"
        for point in points
    )
    title = ", ".join(filter(None, (f"{chart.y} against {chart.x}", chart.data)))
    return Figure(figure_id, spec, title, description, f"{title}.", table_id)


def _list_scatter_points(cells: Sequence[RecomputedCell], chart: TableChart) -> Iterator[TradeoffPoint]:
    """Yield a point for each row with a value on both axes: published rows, and those of our models."""
    [point] = chart.points
    assert isinstance(point.x, str)  # a number would be the same for all rows
    published: dict[str, dict[str, float]] = {}
    own_cells: dict[tuple[str, str], list[RecomputedCell]] = {}
    for cell in cells:
        if cell.published.value is not None:
            published.setdefault(cell.published.row, {})[cell.published.column] = cell.published.value
        if cell.recomputed is not None and cell.model and chart.data in ("", cell.data):
            own_cells.setdefault((cell.published.row, cell.model), []).append(cell)
    from_paper = [
        TradeoffPoint(row, values[point.x], values[point.y], PUBLISHED_SERIES)
        for row, values in published.items()
        if {point.x, point.y} <= set(values)
    ]
    yield from from_paper
    for (row, model), of_row in own_cells.items():
        x, y = (_find_value(of_row, column, chart.unit) for column in (point.x, point.y))
        if x is not None and y is not None:
            part = row.removeprefix(f"{model}, ")  # such as a wording, in a table with several rows of a model
            is_part = part != row
            yield TradeoffPoint(
                part if is_part else model, x, y, model if is_part else OWN_SERIES if from_paper else ""
            )


def _list_line_points(cells: Sequence[RecomputedCell], chart: TableChart) -> Iterator[TradeoffPoint]:
    """Yield the points of each of our models, those of a line one after another."""
    for model in dict.fromkeys(cell.model for cell in cells if cell.model):
        own_cells = [cell for cell in cells if cell.model == model and chart.data in ("", cell.data)]
        for point in sorted(chart.points, key=lambda point: point.series):
            of_form = [cell for cell in own_cells if cell.published.form == point.form]
            x = _find_value(of_form, point.x, chart.unit) if isinstance(point.x, str) else point.x
            y = _find_value(of_form, point.y, chart.unit)
            if x is not None and y is not None:
                yield TradeoffPoint("", x, y, ", ".join(filter(None, (model, point.series))))


def _find_value(cells: Sequence[RecomputedCell], column: str, unit: str) -> float | None:
    """The figure in a column: of a unit or, if there is none of it, of the first."""
    of_column = [cell for cell in cells if cell.published.column == column and cell.recomputed is not None]
    of_column.sort(key=lambda cell: cell.unit != unit)
    estimate = to_paper_unit(of_column[0]) if of_column else None
    return estimate.value if estimate else None
