"""The figures in the cells of tables: value, interval and n, or why they are missing; the worst rows of long tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_lowercase
from typing import cast

from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.reports.document import (
    Cell,
    Code,
    Column,
    CountShare,
    Footnoted,
    Inline,
    LowerBound,
    Name,
    Paragraph,
    Printed,
    Reason,
    Row,
    Table,
    Text,
)
from auditor.reports.document.blocks import flatten_inline
from auditor.reports.number_format import (
    MISSING_SYMBOL,
    format_cells_interval,
    format_count,
    format_percent,
    format_styled,
    format_usd,
    name_cells,
    pluralize,
)

MIN_NOTE_OCCURRENCES = 2
MIN_NOTE_LENGTH = 16
"""A reason of this length that a table gives this often is a note below it."""
MAX_REASON_LENGTH = 60
"""A longer reason is a note however rare it is: in a narrow column, it would have a word or two on each line."""
MANY_COLUMNS = 8
"""In a table of so many columns, which are narrow, each reason of at least `MIN_NOTE_LENGTH` is a note."""


@dataclass(frozen=True, slots=True)
class FormattedFigure:
    """A figure as text.

    Attributes:
        value: the value, or why it is missing.
        interval: the interval; empty for none.
        n: the sample size, if it is shown.
        reason: why there is a value, but no interval.
        has_value: whether the figure has a value.
        note: label of the note that has the reason for the missing value or interval.
        cells_interval: a share's interval for the cells that were measured, which it names; empty if it is no other
            one. Files have both intervals.
    """

    value: str
    interval: str = ""
    n: str = ""
    reason: str = ""
    has_value: bool = True
    note: str = ""
    cells_interval: str = ""

    @property
    def main_interval(self) -> str:
        """The interval that a cell shows: for other units or, without one, a share's for the measured cells, named."""
        return self.interval or self.cells_interval

    def in_line(self) -> str:
        """The figure on one line, such as "0.52 (0.31 to 0.68; n 25)"."""
        note = f"note {self.note}" if self.note else ""
        details = filter(None, (self.main_interval, self.n, ", ".join(filter(None, (self.reason, note)))))
        details_text = "; ".join(details)
        return f"{self.value} ({details_text})" if details_text else self.value


def format_figure(cell: Cell, column: Column, notes: Mapping[str, str]) -> FormattedFigure:
    """Format a number, an estimate or a share; a dash for None, and a text as it is, such as two bounds in words.

    Args:
        cell: the cell of a column with figures.
        notes: labels of the table's notes, by their text.
    """
    match cell:
        case Footnoted():
            figure = format_figure(cell.figure, column, notes)
            return replace(figure, value=f"{figure.value}{cell.marks}")
        case Printed():
            return FormattedFigure(cell.text)
        case Estimate() if column.kind == "interval":
            if cell.ci_low is None or cell.ci_high is None:
                note = notes.get(cell.reason or "", "")
                return FormattedFigure("not available" if note else cell.reason or "", has_value=False, note=note)
            low, high = (format_styled(end, column.style, column.digits) for end in (cell.ci_low, cell.ci_high))
            return FormattedFigure(f"{low} to {high}")
        case Estimate():
            return _format_estimate(cell, column, notes)
        case CountShare():
            return FormattedFigure(format_percent(cell.n, cell.total))
        case LowerBound() if column.style == "usd":
            return FormattedFigure(format_usd(cell.value, lower_bound=True))
        case LowerBound():
            return FormattedFigure(f"≥ {format_styled(cell.value, column.style, column.digits)}")
        case int() | float():
            return FormattedFigure(format_styled(cell, column.style, column.digits))
        case str():
            return FormattedFigure(cell)
    return FormattedFigure(MISSING_SYMBOL)


def _format_estimate(estimate: Estimate, column: Column, notes: Mapping[str, str]) -> FormattedFigure:
    """Format an estimate; a reason that is a note of the table is replaced by the note's label."""
    reason = estimate.reason or ""
    note = notes.get(reason or _remark(estimate), "")
    if estimate.value is None:
        return FormattedFigure("not available" if note else f"not available: {reason}", has_value=False, note=note)
    n = f"n {format_count(estimate.n)}" if column.show_n else ""
    value = format_styled(estimate.value, column.style, column.digits)
    cells_interval = format_cells_interval(estimate, column.digits, column.style)
    if cells_interval:
        cells_interval = f"{cells_interval} for {name_cells(estimate)}"
    if estimate.ci_low is None or estimate.ci_high is None:
        reason = ("" if cells_interval else "no 95% CI") if note else f"no 95% CI: {reason}"
        return FormattedFigure(value, n=n, reason=reason, note=note, cells_interval=cells_interval)
    low, high = (format_styled(end, column.style, column.digits) for end in (estimate.ci_low, estimate.ci_high))
    return FormattedFigure(value, f"{low} to {high}", n, note=note, cells_interval=cells_interval)


def label_notes(table: Table) -> dict[str, str]:
    """Labels of the notes below a table, by text: remarks on intervals, and long reasons that occur repeatedly."""
    cells = [cell.figure if isinstance(cell, Footnoted) else cell for row in iterate_rows(table) for cell in row.cells]
    counts = Counter(map(_missing_reason, cells))
    is_narrow = table.has_reasons_below or len(table.columns) >= MANY_COLUMNS
    min_occurrences = 1 if is_narrow else MIN_NOTE_OCCURRENCES
    reasons = [
        reason
        for reason, n in counts.items()
        if (n >= min_occurrences and len(reason) >= MIN_NOTE_LENGTH) or len(reason) > MAX_REASON_LENGTH
    ]
    remarks = [remark for cell in cells if (remark := _remark(cell))]
    return dict(zip(dict.fromkeys([*remarks, *reasons]), ascii_lowercase, strict=False))


def _remark(cell: Cell) -> str:
    """The remark on an estimate's interval: its reason or, for a share of 0 or 1, the rule; empty if there is none."""
    if not isinstance(cell, Estimate) or _missing_reason(cell):
        return ""
    if cell.reason or not (isinstance(cell, ShareEstimate) and cell.value in (0, 1) and cell.resampled):
        return cell.reason or ""
    units = " or ".join(cell.resampled) + (", whichever are fewer," if len(cell.resampled) > 1 else "")
    return (
        "A share of 0 or 1 has no variation from which its CI could be computed. The CI assumes that cases are as "
        f"correlated as in the other rows or, if these do not show it, that each {units} is a single case."
    )


def _missing_reason(cell: Cell) -> str:
    """The reason that a cell gives for a missing value or interval; empty if there is none, or it is marked up."""
    match cell:
        case Estimate():
            return (cell.reason or "") if None in (cell.value, cell.ci_low, cell.ci_high) else ""
        case Reason():
            return cell.text if isinstance(cell.text, str) else ""
    return ""


def format_reason(cell: Reason, notes: Mapping[str, str]) -> FormattedFigure | None:
    """Format a reason that is a note of the table; None for another one."""
    note = notes.get(cell.text) if isinstance(cell.text, str) else None
    return FormattedFigure("not available", has_value=False, note=note) if note else None


def iterate_rows(table: Table) -> Iterator[Row]:
    """Rows of a table in their order, the total rows last."""
    rows = [row if isinstance(row, Row) else Row(row) for row in table.rows]
    return iter(sorted(rows, key=lambda row: row.is_total))


EXPORT_COMMAND = "auditor export tables"
MAX_HIDDEN_ROWS = 2
"""A table that is longer by so few rows is shown as it is."""
MIN_ROWS = 4
"""In a table with fewer rows, nothing is said once for all of them, but that a column has no value."""
MAX_SENTENCE_FIGURES = 4
"""With more figures that are available, a table stays a table, however many are not."""
MAX_NAMES = 6
"""More names than these are counted."""
_FIGURE_KINDS = ("number", "estimate", "interval", "share")


def shorten_table(table: Table) -> Table | Paragraph:
    """The table as pages show it, or a sentence in its place if most of its figures are not available.

    What is the same in all rows is said once, in the caption: the n of estimates, a column with one value, and columns
    that are equal to another one; in a table with few rows, only that a column has no value. Of more than
    `max_rows` rows, the first are shown, with the totals; the caption then names the file with all.
    """
    shown = table if table.is_whole or not table.rows else _CommonValues.of(table).remove()
    return _write_sentence(shown) or _cut_rows(shown)


def _cut_rows(table: Table) -> Table:
    """The table with its first `max_rows` rows and its totals."""
    rows = [row for row in iterate_rows(table) if not row.is_total]
    if table.max_rows is None or len(rows) <= table.max_rows + MAX_HIDDEN_ROWS:
        return table
    totals = [row for row in iterate_rows(table) if row.is_total]
    remark: list[Inline] = [
        f" Worst {format_count(table.max_rows)} of {format_count(len(rows))} rows; all: ",
        Code(name_table_file(table)),
        " (",
        Code(EXPORT_COMMAND),
        ").",
    ]
    return replace(
        table, caption=[*_as_nodes(table.caption), *remark], rows=[*rows[: table.max_rows], *totals], max_rows=None
    )


def name_table_file(table: Table) -> str:
    """File name of a table of the report in the data export."""
    return f"report_{table.id.replace('-', '_')}.csv"


@dataclass(slots=True)
class _CommonValues:
    """What is the same in all rows of a table.

    Attributes:
        columns: the cells of each column, a reason in each of those that it spans; the totals last.
        n_rows: number of rows that are no totals.
        removed: positions of the columns that need not be shown.
        remarks: what the caption says in their place.
    """

    table: Table
    columns: Sequence[Sequence[Cell]]
    n_rows: int
    removed: set[int] = field(default_factory=set)
    remarks: list[Inline] = field(default_factory=list)
    _constants: list[Inline] = field(default_factory=list)

    @classmethod
    def of(cls, table: Table) -> _CommonValues:
        """Prepare the columns of a table."""
        rows = list(iterate_rows(table))
        cells = [
            [cell for cell in row.cells for _ in range(cell.columns if isinstance(cell, Reason) else 1)] for row in rows
        ]
        return cls(table, list(zip(*cells, strict=True)), sum(not row.is_total for row in rows))

    def remove(self) -> Table:
        """The table without what is the same in all rows, which its caption then says."""
        has_spans = any(isinstance(cell, Reason) and cell.columns > 1 for column in self.columns for cell in column)
        is_long = len(self.table.rows) >= MIN_ROWS
        if not has_spans:
            self._remove_constants(only_empty=not is_long)
        if not has_spans and is_long:
            self._remove_copies()
        columns = self._share_n() if is_long else self.table.columns
        if self._constants:
            first, *others = self._constants
            start = str(first).removeprefix(", ")
            self.remarks = [" In all rows: ", *([start] if start else []), *others, ".", *self.remarks]
        if not self.remarks:
            return self.table
        positions = [i for i in range(len(columns)) if i not in self.removed]
        return replace(
            self.table,
            caption=[*_as_nodes(self.table.caption), *self.remarks],
            columns=[columns[i] for i in positions],
            rows=[
                row if has_spans else replace(row, cells=[row.cells[i] for i in positions])
                for row in iterate_rows(self.table)
            ],
        )

    def _remove_constants(self, *, only_empty: bool) -> None:
        """Remove columns with one value, or with none, in all rows, unless no figure would be left."""
        titles_by_constant: dict[tuple[Inline, int | None], list[Inline]] = {}
        empty: list[Inline] = []
        positions: set[int] = set()
        for i, (column, cells) in enumerate(zip(self.table.columns, self.columns, strict=True)):
            is_constant = (
                i > 0 and column.kind != "bar" and not column.emphasis and all(cell == cells[0] for cell in cells[1:])
            )
            is_constant = is_constant and (not only_empty or cells[0] in (None, ""))
            if is_constant and (value := _describe_constant(column, cells[0])) is not None:
                if cells[0] is None or cells[0] == "":
                    empty += [", ", column.title]
                else:  # a reason that several columns share is said once
                    is_missing = isinstance(cells[0], Estimate) and cells[0].value is None
                    constant = (value, None if is_missing else i)
                    titles_by_constant.setdefault(constant, []).extend([", ", column.title])
                positions.add(i)
        others = [column.kind for i, column in enumerate(self.table.columns) if i > 0 and i not in positions]
        if not set(others) - {"bar"}:
            return
        self.removed |= positions
        for (value, _), titles in titles_by_constant.items():
            self._constants += [*titles, " ", value]
        self.remarks += [" No value: ", *empty[1:], "."] if empty else []

    def _remove_copies(self) -> None:
        """Remove columns of estimates that are equal to an earlier one in all rows."""
        originals: dict[tuple[object, ...], int] = {}
        copies: dict[int, list[Column]] = {}
        for i, (column, cells) in enumerate(zip(self.table.columns, self.columns, strict=True)):
            if column.kind != "estimate" or i in self.removed:
                continue
            key = (column.style, column.digits, column.show_n, *cells)
            if (original := originals.setdefault(key, i)) != i:
                copies.setdefault(original, []).append(column)
                self.removed.add(i)
        for original, columns in copies.items():
            titles = [node for column in columns for node in (", ", column.title)][1:]
            self.remarks += [" ", *titles, ": equal to ", self.table.columns[original].title, "."]

    def _share_n(self) -> list[Column]:
        """The columns of the table, without the n of those in which it is the same for all estimates."""
        columns = list(self.table.columns)
        shared: dict[int, list[int]] = {}
        n_varying = 0
        for i, column in enumerate(columns):
            if column.kind != "estimate" or not column.show_n or i in self.removed:
                continue
            figures = [cell.figure if isinstance(cell, Footnoted) else cell for cell in self.columns[i]]
            sizes = {cell.n for cell in figures if isinstance(cell, Estimate) and cell.value is not None}
            if len(sizes) == 1:
                shared.setdefault(sizes.pop(), []).append(i)
            elif sizes:
                n_varying += 1
        for n, positions in shared.items():
            if len(shared) > 1 or n_varying:
                titles = [node for i in positions for node in (", ", columns[i].title)][1:]
                self.remarks += [f" n {format_count(n)} in ", *titles, "."]
            else:
                self._constants += [f", n {format_count(n)}"]
            for i in positions:
                columns[i] = replace(columns[i], show_n=False)
        return columns


def _describe_constant(column: Column, cell: Cell) -> Inline | None:
    """The value of a column that is the same in all rows; None for a text with markup."""
    match cell:
        case None:
            return MISSING_SYMBOL
        case Estimate() if cell.value is None:
            return f"not available ({cell.reason})"
        case Estimate() | Footnoted() | Reason():
            return None
    if column.kind in ("name", "text"):
        is_plain = isinstance(cell, str | Name)
        return (
            None
            if not is_plain
            else Name(cell)
            if column.kind == "name" and isinstance(cell, str)
            else cast(Inline, cell)
        )
    return format_figure(cell, column, {}).value


def _write_sentence(table: Table) -> Paragraph | None:
    """The figures of a table in a sentence, if most are not available; None if they are, or if it would be long."""
    if any(column.kind == "bar" for column in table.columns):
        return None
    figures = list(_iterate_figures(table))
    missing = [(row, column, cell) for row, column, cell in figures if _reason_without_value(cell) is not None]
    available = [figure for figure in figures if figure not in missing]
    if 2 * len(missing) <= len(figures) or len(available) > MAX_SENTENCE_FIGURES:
        return None
    nodes: list[Inline] = [*_as_nodes(table.caption)]
    for row, column, cell in available:
        shown = format_figure(cell, column, {}).in_line()
        nodes += [" ", column.title, " of ", *_as_nodes(row), f": {shown}."]
    rows_by_reason: dict[tuple[str | Name, str], list[Text]] = {}
    for row, column, cell in missing:
        rows_by_reason.setdefault((column.title, _reason_without_value(cell) or ""), []).append(row)
    titles_by_text: dict[tuple[Inline, ...], list[str | Name]] = {}
    for (title, reason), rows in rows_by_reason.items():
        text = (*_name_rows(rows, table), f": {reason}." if reason else ".")
        titles_by_text.setdefault(text, []).append(title)
    for text, titles in titles_by_text.items():  # columns that lack the same rows for one reason are named together
        subject = [node for title in titles for node in (", ", title)][1:]
        nodes += [" ", *subject, f" {'is' if len(titles) == 1 else 'are'} not available for ", *text]
    return Paragraph(nodes, "note")


def _name_rows(rows: Sequence[Text], table: Table) -> list[Inline]:
    """Name some rows of a table, or count them."""
    distinct = {flatten_inline(row): row for row in rows}
    if len(distinct) > MAX_NAMES:
        return [pluralize(len(rows), "row")]
    if len(rows) == len(table.rows) > 1:
        return ["all rows"]
    return [node for row in distinct.values() for node in (", ", *_as_nodes(row))][1:]


def _iterate_figures(table: Table) -> Iterator[tuple[Text, Column, Cell]]:
    """The figures of a table, each with the name of its row and its column."""
    for row in iterate_rows(table):
        cells = [cell for cell in row.cells for _ in range(cell.columns if isinstance(cell, Reason) else 1)]
        for column, cell in zip(table.columns[1:], cells[1:], strict=True):
            if column.kind in _FIGURE_KINDS and cell is not None:
                yield _name_row(cells[0], table), column, cell


def _name_row(cell: Cell, table: Table) -> Text:
    """The name of a row, by its first cell; a figure is named with its column."""
    match cell:
        case None:
            return table.label
        case str():
            return Name(cell)
        case int() | float() | Estimate() | Footnoted() | Printed() | CountShare() | LowerBound():
            return [table.columns[0].title, " ", format_figure(cell, table.columns[0], {}).in_line()]
    return cast(Text, cell)


def _reason_without_value(cell: Cell) -> str | None:
    """Why a figure has no value; None if it has one."""
    if isinstance(cell, Reason):
        return cell.text if isinstance(cell.text, str) else ""
    return (cell.reason or "").rstrip(".") if isinstance(cell, Estimate) and cell.value is None else None


def _as_nodes(text: Text) -> Sequence[Inline]:
    """A text as a sequence of inline nodes."""
    return [text] if isinstance(text, str) or not isinstance(text, Sequence) else text
