"""Documents of published figures: the list of papers, and a paper's tables and charts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.charts.tradeoff_plot import TradeoffPoint, tradeoff_plot
from auditor.reports.data.replication import (
    FigureName,
    Mark,
    NotRun,
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
    Cell,
    Column,
    Document,
    Figure,
    Footnoted,
    HeatMap,
    List,
    Name,
    Paragraph,
    Printed,
    Reason,
    Row,
    Section,
    Table,
    Text,
)
from auditor.reports.number_format import NumberStyle, format_number, pluralize
from auditor.reports.sections.over_models import build_heat_map
from auditor.reports.sections.phrasing import mark_code

MARKS: dict[Mark, str] = {
    "same_definition": "same definition",
    "other_words": "same definition, other words",
    "other_definition": "other definition",
    "not_run": "not run",
}
"""From the best to the worst."""
NOT_RUN: dict[NotRun, str] = {
    "not_in_folder": "not run: the folder has no scores of it",
    "not_published": "not run: nothing was published",
    "definition": "not run: a definition, which is not measured",
    "recorded_only": "not run: computed only from released scores (--recorded FOLDER)",
    "no_audit": "not run: no audit of this survey or data set",
    "no_file": "not run: a file is missing (--data NAME=FILE)",
    "no_counterpart": "not run: no model of yours is set beside it (--as MY=THEIRS)",
    "too_few_models": "not run: too few models",
    "no_value": "not run: the report has no value",
}
UNMATCHED: tuple[NotRun, ...] = ("no_counterpart", "recorded_only", "not_published", "definition", "not_in_folder")
"""Reasons for which no figure of ours is expected in a published row."""
OWN_LABEL = "yours"
DEFAULT_DIGITS, MAX_DIGITS = 3, 4
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def describe_reason(cell: RecomputedCell) -> str:
    """Why there is no figure of ours, with the files or the detail that it needs."""
    assert cell.not_run is not None
    text = NOT_RUN[cell.not_run]
    detail = cell.detail.rpartition(": ")[2]
    if cell.not_run == "no_file":
        return text.replace("--data NAME=FILE", " ".join(f"--data {name}=FILE" for name in detail.split(", ")))
    return f"{text}: {detail}" if cell.not_run == "no_value" and detail else text


def to_paper_unit(cell: RecomputedCell) -> Estimate | None:
    """Our figure in the unit of the published one, such as a hundredth; a share that is printed with % stays one."""
    estimate, factor = cell.recomputed, 1 / cell.published.scale
    if estimate is None or factor == 1:
        return estimate
    value, low, high = (None if x is None else x * factor for x in (estimate.value, estimate.ci_low, estimate.ci_high))
    return Estimate(value, estimate.n, low, high, estimate.reason, estimate.resampled)


def find_shared_departures(cells: Sequence[RecomputedCell]) -> list[str]:
    """Departures of every figure of ours in a table; empty for fewer than two figures."""
    of_figures = [cell.departures for cell in cells if cell.recomputed is not None]
    if len(of_figures) < 2:
        return []
    return [departure for departure in of_figures[0] if all(departure in departures for departures in of_figures)]


@dataclass(frozen=True, slots=True)
class WideTable:
    """The figures of one table: published rows as printed, and ours below each.

    Attributes:
        cells: of all rows.
        columns: of the table.
        folded_rows: published rows that are left out.
        shared: departures of all figures of ours.
        numbers: numbers of the sets of further departures that figures have.
        names_data: whether lines of ours name the survey or data set, since a column has figures of several.
    """

    cells: Sequence[RecomputedCell]
    columns: Sequence[str]
    folded_rows: Collection[str]
    shared: Sequence[str]
    numbers: Mapping[tuple[str, ...], int]
    names_data: bool

    @classmethod
    def of(
        cls, cells: Sequence[RecomputedCell], column_order: Sequence[str] = (), folded_rows: Collection[str] = ()
    ) -> WideTable:
        """The table of these cells; columns that the order does not name come last."""
        occurring = dict.fromkeys(cell.published.column for cell in cells)
        columns = [name for name in dict.fromkeys([*column_order, *occurring]) if name in occurring]
        data: dict[tuple[str, str], set[str]] = {}
        for cell in cells:
            if cell.data:
                data.setdefault((cell.published.column, cell.published.form), set()).add(cell.data)
        shared = find_shared_departures(cells)
        further = dict.fromkeys(_list_further(cell, shared) for cell in cells)
        numbers = {departures: i + 1 for i, departures in enumerate(filter(None, further))}
        names_data = any(len(names) > 1 for names in data.values())
        return cls(cells, columns, folded_rows, shared, numbers, names_data)

    def build(self, table_id: str, label: str, caption: Text) -> Table:
        """Build the table."""
        by_row: dict[str, list[RecomputedCell]] = {}
        for cell in (cell for cell in self.cells if cell.published.row not in self.folded_rows):
            by_row.setdefault(cell.published.row, []).append(cell)
        rows = [row for name, of_row in by_row.items() for row in self._build_rows(name, of_row)]
        columns = [Column("", "name", "row"), *map(self._build_column, self.columns), Column("mark")]
        return Table(table_id, label, caption, columns, rows, has_reasons_below=True)

    def _build_column(self, name: str) -> Column:
        """A column of figures, with as many decimals as the paper prints."""
        printed = [cell.published.printed for cell in self.cells if cell.published.column == name]
        decimals = [len(text.rstrip("%K").partition(".")[2]) for text in printed if text.strip("-")]
        style: NumberStyle = "percent" if any(text.endswith("%") for text in printed) else "decimal"
        digits = min(max(decimals), MAX_DIGITS) if decimals else DEFAULT_DIGITS
        return Column(name, "estimate", digits=digits, style=style, show_n=self._has_several_n())

    def _has_several_n(self) -> bool:
        """Whether our figures are of different numbers of cases."""
        return len({cell.recomputed.n for cell in self.cells if cell.recomputed is not None}) > 1

    def _build_rows(self, name: str, cells: Sequence[RecomputedCell]) -> Iterator[Row]:
        """Yield the published row, if there is one, and our lines."""
        printed = {cell.published.column: cell.published.printed for cell in cells if cell.published.printed}
        matched = [cell for cell in cells if cell.not_run not in UNMATCHED]
        lines = self._group_lines(matched, names_models=bool(printed))
        if printed:
            figures = [Printed(printed[column]) if column in printed else None for column in self.columns]
            yield Row([name, *figures, None], is_muted=not lines)
        reasons = {cell.not_run and describe_reason(cell) for line in lines.values() for cell in line}
        if len(reasons) == 1 and (reason := next(iter(reasons))):
            yield Row([OWN_LABEL if printed else name, Reason(reason, len(self.columns)), MARKS["not_run"]])
            return
        for label, line in lines.items():
            title = ": ".join(filter(None, (OWN_LABEL, label))) if printed else ", ".join(filter(None, (name, label)))
            yield Row([title, *map(self._build_cell, self._order(line)), self._describe_mark(line)])

    def _order(self, line: Sequence[RecomputedCell]) -> list[RecomputedCell | None]:
        """The cells of a line in the order of the columns."""
        by_column = {cell.published.column: cell for cell in line}
        return [by_column.get(column) for column in self.columns]

    def _group_lines(self, cells: Sequence[RecomputedCell], *, names_models: bool) -> dict[str, list[RecomputedCell]]:
        """Group our figures of a row into lines, by their label."""
        lines: dict[str, list[RecomputedCell]] = {}
        units = _join_units(cells)
        for cell in sorted(cells, key=lambda cell: list(units).index(cell.unit)):
            data = cell.data.replace(", ", " + ") if self.names_data else ""
            label = ", ".join(filter(None, (data, units[cell.unit])))
            model = cell.model if names_models else ""
            lines.setdefault(": ".join(filter(None, (label, model))), []).append(cell)
        return lines

    def _build_cell(self, cell: RecomputedCell | None) -> Cell:
        """Our figure with the numbers of its departures, or why there is none."""
        if cell is None:
            return None
        estimate = to_paper_unit(cell)
        if estimate is None:
            return Reason(describe_reason(cell))
        further = _list_further(cell, self.shared)
        return Footnoted(estimate, str(self.numbers[further]).translate(SUPERSCRIPTS)) if further else estimate

    def _describe_mark(self, line: Sequence[RecomputedCell]) -> str:
        """The worst mark of the figures of a line."""
        order = list(MARKS)
        run = [cell.mark for cell in line if cell.recomputed is not None] or ["not_run"]
        return MARKS[max(run, key=order.index)]


def _join_units(cells: Sequence[RecomputedCell]) -> dict[str, str]:
    """The unit of the line that figures of each unit stand in.

    Figures without a unit, or whose unit is the beginning of another one, stand in the line of that one, unless a
    column has figures of both.
    """
    columns: dict[str, set[str]] = {}
    for cell in cells:
        columns.setdefault(cell.unit, set()).add(cell.published.column)
    return {
        unit: next(
            (
                other
                for other in columns
                if other != unit
                and other.startswith(f"{unit}, " if unit else "")
                and not columns[other] & columns[unit]
            ),
            unit,
        )
        for unit in columns
    }


def _list_further(cell: RecomputedCell, shared: Sequence[str]) -> tuple[str, ...]:
    """The departures of a figure that not all figures of the table have."""
    return tuple(departure for departure in cell.departures if departure not in shared)


def build_long_table(table_id: str, label: str, cells: Sequence[RecomputedCell]) -> Table:
    """Build the list of all figures of a table, one in a row, in the unit of the paper; a percentage as a share.

    Rows have the name of the survey if there are several: plain text breaks a wide table after some columns.
    """
    has_published = any(cell.published.printed for cell in cells)
    has_several_surveys = len({cell.data for cell in cells if cell.data}) > 1
    columns = (
        Column("row", "name"), Column("figure"), *((Column("published"),) if has_published else ()),
        Column("ours", "estimate", digits=DEFAULT_DIGITS),
        *((Column("difference", "number", digits=DEFAULT_DIGITS, style="signed"),) if has_published else ()),
        Column("ours is of"), Column("audit"), Column("mark"),
    )  # fmt: skip
    rows = [
        (
            f"{cell.published.row} ({cell.data})" if has_several_surveys and cell.data else cell.published.row,
            cell.published.column, *((cell.published.printed or None,) if has_published else ()),
            to_paper_unit(cell), *((_difference(cell),) if has_published else ()), cell.detail or None, cell.audit,
            MARKS[cell.mark] if cell.not_run is None else describe_reason(cell),
        )
        for cell in cells
    ]  # fmt: skip
    caption = "Each figure in the unit of the paper; what is printed with % is a share from 0 to 1."
    return Table(table_id, label, caption, columns, rows, has_reasons_below=True)


def _difference(cell: RecomputedCell) -> float | None:
    """Our figure minus the published one, in the paper's unit; a whole number for counts."""
    estimate = to_paper_unit(cell)
    if cell.difference is None or estimate is None or estimate.value is None or cell.recomputed is None:
        return None
    difference = cell.difference / cell.published.scale
    return round(difference) if isinstance(cell.recomputed.value, int) else difference


def build_figures_table(cells: Sequence[RecomputedCell]) -> Table:
    """Build the table of all figures of a document in the unit of our reports, for a CSV file.

    `published` is as printed; `published_value` is in the unit of our reports too.
    """
    columns = (
        Column("table", "name"), Column("row"), Column("column"), Column("published"),
        Column("ours", "estimate"), Column("difference", "number"), Column("data"), Column("unit"), Column("model"),
        Column("audit"), Column("mark"), Column("not run"), Column("departures"), Column("published value", "number"),
    )  # fmt: skip
    rows = [
        (
            cell.published.table, cell.published.row, cell.published.column, cell.published.printed or None,
            cell.recomputed, cell.difference, cell.data or None, cell.unit or None, cell.model or None, cell.audit,
            cell.mark, cell.not_run, ", ".join(cell.departures) or None,
            # Rounded: 72.2 × 0.01 is 0.7220000000000001.
            None if cell.published.value is None else round(cell.published.value * cell.published.scale, 12),
        )
        for cell in cells
    ]  # fmt: skip
    return Table("figures", "Figures", "", columns, rows)


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
    "findings of the paper lead: each is shown by your data, is not, or cannot be compared.",
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
