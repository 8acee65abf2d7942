"""Documents of published figures: the list of papers, and a paper's tables and charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from auditor.reports.charts.tradeoff_plot import TradeoffPoint, tradeoff_plot
from auditor.reports.data.replication import (
    FigureName,
    Origin,
    PaperCheck,
    PublishedCell,
    PublishedTableInfo,
    RecomputedCell,
    TableChart,
    TableLayout,
)
from auditor.reports.document import (
    Block,
    Column,
    Document,
    Figure,
    HeatMap,
    List,
    Name,
    Paragraph,
    Section,
    Table,
    Text,
)
from auditor.reports.number_format import format_number, pluralize
from auditor.reports.sections.over_models import build_heat_map
from auditor.reports.sections.phrasing import mark_code
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


ORIGINS: dict[Origin, str] = {
    "paper": "the paper",
    "summary": "a summary of the paper, without the cells that it does not quote",
    "release": "the authors' released results",
    "readme": "the README of the authors' program",
    "user": "your file",
}
COMMANDS = (
    "`auditor replicate PAPER --published` shows the figures; with `--json`, the lines.",
    "`auditor replicate PAPER --models FILE` runs the experiment with your models, as ordinary audits within "
    "`limits.budget_usd` of FILE each. `--dry-run` shows the cost, `--small` asks the small model on this machine. The "
    "findings of the paper lead: each holds on your data, does not, or cannot be compared.",
    "`auditor replicate PAPER --recorded FOLDER` computes figures again from scores that the authors released, as "
    "audits, without a model. Download them first.",
)
"""What the command does, with code between backticks."""


def build_paper_list_document(tables: Sequence[PublishedTableInfo]) -> Document:
    """Build the list of papers and their tables, with what each experiment needs and costs."""
    rows = [
        (
            Name(info.paper), info.table, info.title, info.n_cells, info.n_run or None,
            ", ".join(info.released) or None,
        )
        for info in tables
    ]  # fmt: skip
    columns = (
        Column("paper", "name"), Column("table"), Column("what it shows"),
        Column("figures", "number"), Column("run by the command", "number"), Column("released scores"),
    )  # fmt: skip
    caption = "Published tables, and the files with their released scores."
    table = Table("papers", "published tables", caption, columns, rows)
    experiments: list[Text] = [
        [Name(info.paper), *mark_code(f": needs {info.needs}. Cost {info.cost}.")]
        for info in {info.paper: info for info in tables if info.needs}.values()
    ]
    sections = [Section("papers", "Papers", [table]), Section("experiments", "Experiments", [List(experiments)])]
    lead = "The program knows these tables of papers, and the line from which each figure was read."
    misprints = "Values are never corrected: a note says what is odd."
    opening: list[Block] = [Paragraph(lead, "lead"), List([mark_code(text) for text in COMMANDS]), Paragraph(misprints)]
    return Document("Replications", "Published tables", "", sections, opening)


FIGURE_KEYS = {
    "model_figure": "Of one model: a row of the table names the model.",
    "figure": "Over all models.",
    "group_figure": "Of one model by group, such as by country, in a table without published figures.",
}


NAME_COLUMNS = (Column("name", "name"), Column("what it is"))


def build_figure_list_document(names: Sequence[FigureName]) -> Document:
    """Build the list of names that the figures of a preset may have."""
    sections = [
        Section(
            key,
            key,
            [Table(f"names-{key}", key, title, NAME_COLUMNS, [[n.name, n.meaning] for n in names if n.key == key])],
        )
        for key, title in FIGURE_KEYS.items()
    ]
    lead = "A figure of a preset may have these names, each under its key."
    return Document("Replications", "Names of figures", "", sections, [Paragraph(lead, "lead")])


def build_check_document(check: PaperCheck) -> Document:
    """Build the result of the check of a preset."""
    title = f"{check.title} ({check.file})"
    counts = f"{pluralize(check.tables, 'table')}, {pluralize(check.published, 'published figure')}"
    lead = f"{pluralize(len(check.problems), 'problem')} found." if check.problems else f"No problem found: {counts}."
    opening: list[Block] = [Paragraph(lead, "lead")]
    if check.problems:
        opening.append(List([mark_code(problem) for problem in check.problems]))
    return Document("Replications", title, "", [], opening)


def build_published_document(title: str, source: str, cells: Sequence[PublishedCell]) -> Document:
    """Build the document of a paper's published figures, one section for each table."""
    sections = [_build_published_section(list(group)) for _, group in groupby(cells, key=lambda cell: cell.table)]
    return Document("Replications", title, "", sections, [Paragraph(f"Source: {source}.")])


def _build_published_section(cells: Sequence[PublishedCell]) -> Section:
    """Build the section of one table as the paper prints it."""
    first = cells[0]
    names = list(dict.fromkeys(cell.column for cell in cells))
    printed: dict[str, dict[str, str]] = {}
    for cell in cells:
        printed.setdefault(cell.row, {})[cell.column] = cell.printed
    rows = [(row, *(of_row.get(name) or None for name in names)) for row, of_row in printed.items()]
    columns = (Column("", "name", "row"), *map(Column, names))
    table = Table(f"table-{first.table}", name_table(first), describe_table(first), columns, rows)
    return Section(f"published-{first.table}", title_table(first), [table, *list_notes(cells)], title_table(first))


def name_table(cell: PublishedCell) -> str:
    """The name of a paper's table or figure: `Table 1`, `Figure 4`; its title where the paper has no number for it."""
    if cell.table.startswith("figure-"):
        return cell.table.replace("figure-", "Figure ")
    return f"Table {cell.table}" if cell.table.isdigit() else cell.title


def title_table(cell: PublishedCell) -> str:
    """The title of a table's section, such as `Table 1. Agreement with people`."""
    name = name_table(cell)
    return name if name == cell.title else f"{name}. {cell.title}"


def describe_table(cell: PublishedCell) -> str:
    """What the columns of a table mean, and where its figures are from."""
    return f"{cell.table_note} Source: {cell.place}, read from {ORIGINS[cell.origin]}.".lstrip()


def list_notes(cells: Sequence[PublishedCell]) -> list[Block]:
    """The notes on the rows of a table, as a list; empty if there are none."""
    notes: list[Text] = [f"{row}: {note}" for row, note in {cell.row: cell.note for cell in cells if cell.note}.items()]
    return [List(notes)] if notes else []
