"""Format the figures in the cells of tables: the value, its interval and its n, or why they are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from string import ascii_lowercase

from auditor.metrics.estimate import Estimate, ShareEstimate
from auditor.reports.document import (
    Cell,
    Column,
    CountShare,
    Footnoted,
    LowerBound,
    Printed,
    Reason,
    Row,
    Table,
)
from auditor.reports.number_format import (
    MISSING_SYMBOL,
    format_cells_interval,
    format_count,
    format_percent,
    format_styled,
    format_usd,
    name_cells,
)

MIN_NOTE_OCCURRENCES = 2
MIN_NOTE_LENGTH = 16
"""A reason of this length that a table gives this often is a note below it."""
MAX_REASON_LENGTH = 60
"""A longer reason is a note however rare it is: in a narrow column, it would have a word or two on each line."""


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
    """Format a number, an estimate or a share; a dash for None.

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
            return _format_interval(cell, column, notes)
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


def _format_interval(estimate: Estimate, column: Column, notes: Mapping[str, str]) -> FormattedFigure:
    """Format the interval of an estimate without its value, such as "0.31 to 0.68", or why there is none."""
    if estimate.ci_low is None or estimate.ci_high is None:
        note = notes.get(estimate.reason or "", "")
        return FormattedFigure("not available" if note else estimate.reason or "", has_value=False, note=note)
    low, high = (format_styled(end, column.style, column.digits) for end in (estimate.ci_low, estimate.ci_high))
    return FormattedFigure(f"{low} to {high}")


def label_notes(table: Table) -> dict[str, str]:
    """Labels of the notes below a table, by text: remarks on intervals, and long reasons that occur repeatedly."""
    cells = [cell.figure if isinstance(cell, Footnoted) else cell for row in iterate_rows(table) for cell in row.cells]
    counts = Counter(map(_missing_reason, cells))
    min_occurrences = 1 if table.has_reasons_below else MIN_NOTE_OCCURRENCES
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
        f"For a share of 0 or 1, the CI uses the design effect of the other rows. Without one, each {units} counts as "
        "one case."
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
