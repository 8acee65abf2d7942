"""Format the figures in the cells of tables: the value, its interval and its n, or why they are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import ascii_lowercase

from auditor.metrics.estimate import Estimate
from auditor.reports.document import Cell, Column, CountShare, LowerBound, Row, Table
from auditor.reports.number_format import (
    MISSING_SYMBOL,
    format_count,
    format_percent,
    format_styled,
    format_usd,
)

MIN_NOTE_OCCURRENCES = 3
"""A reason that is given this often in a table is a note below it."""


@dataclass(frozen=True, slots=True)
class FormattedFigure:
    """A figure as text.

    Attributes:
        value: the value; the reason if it is missing.
        interval: the interval; the reason if it is missing; empty for a figure that has none.
        n: the sample size, if it is shown.
        has_value: whether the figure has a value.
        note: label of the note that has the reason for the missing value or interval.
    """

    value: str
    interval: str = ""
    n: str = ""
    has_value: bool = True
    note: str = ""

    def in_line(self) -> str:
        """The figure on one line, such as "0.52 (0.31 to 0.68; n 25)"."""
        parenthesis = "; ".join(filter(None, (self.interval, self.note and f"note {self.note}", self.n)))
        return f"{self.value} ({parenthesis})" if parenthesis else self.value


def format_figure(cell: Cell, column: Column, notes: Mapping[str, str]) -> FormattedFigure:
    """Format a number, an estimate or a share; a dash for None.

    Args:
        cell: the cell of a column with figures.
        notes: labels of the table's notes, by their text.
    """
    match cell:
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
    return FormattedFigure(MISSING_SYMBOL)


def _format_estimate(estimate: Estimate, column: Column, notes: Mapping[str, str]) -> FormattedFigure:
    """Format an estimate; a reason that is a note of the table is replaced by the note's label."""
    reason = estimate.reason or ""
    note = notes.get(reason, "")
    if estimate.value is None:
        return FormattedFigure("not available" if note else reason, has_value=False, note=note)
    n = f"n {format_count(estimate.n)}" if column.show_n else ""
    value = format_styled(estimate.value, column.style, column.digits)
    if estimate.ci_low is None or estimate.ci_high is None:
        return FormattedFigure(value, "no 95% CI" if note else reason, n, note=note)
    low, high = (format_styled(end, column.style, column.digits) for end in (estimate.ci_low, estimate.ci_high))
    return FormattedFigure(value, f"{low} to {high}", n)


def label_notes(table: Table) -> dict[str, str]:
    """Labels of the notes below a table, by their text: the reasons that are given repeatedly in its estimates."""
    counts = Counter(
        cell.reason
        for row in iterate_rows(table)
        for cell in row.cells
        if isinstance(cell, Estimate) and cell.reason and None in (cell.value, cell.ci_low, cell.ci_high)
    )
    reasons = [reason for reason, n in counts.items() if n >= MIN_NOTE_OCCURRENCES]
    return dict(zip(reasons, ascii_lowercase, strict=False))


def iterate_rows(table: Table) -> Iterator[Row]:
    """Rows of a table in their order, the total rows last."""
    rows = [row if isinstance(row, Row) else Row(row) for row in table.rows]
    return iter(sorted(rows, key=lambda row: row.is_total))
