"""Tables as files: CSV with figures in full precision, and LaTeX."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import cast

from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.reports.document import Cell, Column, CountShare, Footnoted, LowerBound, Name, Printed, Reason, Table, Text
from auditor.reports.number_format import MIN_P_VALUE, format_percent, format_usd
from auditor.reports.render.plain_text import flatten_text
from auditor.reports.render.tables import iterate_rows
from auditor.text_safety import escape_csv_cell

LATEX_REQUIREMENTS = "% Needs \\usepackage{booktabs,longtable}."
"""First line of a file of LaTeX, by which an export recognizes one that it may replace."""
CsvValue = str | int | float | None


def render_csv(table: Table) -> str:
    """Render the table as CSV; missing figures are empty, and formulas in texts are escaped.

    An estimate has a column for its value, and others for the lower and upper end of its interval (`_low`, `_high`)
    and, if it is shown, its n (`_n`); where shares have a second interval, for the cells that were measured, also
    `_cells_low` and `_cells_high`. A share is a fraction. Bars are left out.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    two_intervals = _columns_with_two_intervals(table)
    writer.writerow(_make_header(table, two_intervals))
    for row in iterate_rows(table):
        values: list[CsvValue] = []
        column_index = 0
        for cell in row.cells:
            n_columns = cell.columns if isinstance(cell, Reason) else 1
            for i, column in enumerate(table.columns[column_index : column_index + n_columns], column_index):
                values += _cell_values(cell, column, i in two_intervals)
            column_index += n_columns
        writer.writerow(["" if value is None else escape_csv_cell(value) for value in values])
    return buffer.getvalue()


def _make_header(table: Table, two_intervals: Collection[int]) -> list[str]:
    """Names of the CSV columns; one that the header has already, such as a second p-value, begins with the figure's.

    Readers of CSV keep one of two columns with the same name, or rename them.
    """
    names: dict[str, None] = {}
    figure = ""
    for i, column in enumerate(table.columns):
        if column.kind == "estimate":
            figure = column_key(column, i)
        for name in _column_names(column, i, i in two_intervals):
            unique, number = (f"{figure}_{name}" if name in names and figure else name), 1
            while unique in names:
                number += 1
                unique = f"{name}_{number}"
            names[unique] = None
    return list(names)


def column_key(column: Column, index: int) -> str:
    """Name of a column in CSV: its key, else its title; a name from outside stays as it is."""
    if column.key:
        return column.key
    title = flatten_text(column.title)
    key = title if isinstance(column.title, Name) else re.sub(r"\W+", "_", title.lower()).strip("_")
    return key or f"column_{index + 1}"


def _columns_with_two_intervals(table: Table) -> set[int]:
    """Positions of the columns with shares that have an interval for the cells that were measured."""
    positions = set()
    for row in iterate_rows(table):
        column_index = 0
        for cell in row.cells:
            if isinstance(cell, ShareEstimate) and cell.cells_ci_low is not None:
                positions.add(column_index)
            column_index += cell.columns if isinstance(cell, Reason) else 1
    return positions


def _column_names(column: Column, index: int, has_two_intervals: bool) -> list[str]:
    """Names of the CSV columns of a column; none for bars."""
    key = str(escape_csv_cell(column_key(column, index)))
    if column.kind == "bar":
        return []
    interval_key = column.interval_key or key
    if column.kind == "interval":
        return [f"{interval_key}_low", f"{interval_key}_high"]
    if column.kind != "estimate":
        return [key]
    names = [key, f"{interval_key}_low", f"{interval_key}_high", *([f"{key}_n"] if column.show_n else [])]
    return [*names, f"{interval_key}_cells_low", f"{interval_key}_cells_high"] if has_two_intervals else names


def _cell_values(cell: Cell, column: Column, has_two_intervals: bool) -> Sequence[CsvValue]:
    """Values of the CSV columns of a cell, as many as `_column_names`."""
    n_values = len(_column_names(column, 0, has_two_intervals))
    if column.kind == "bar":
        return []
    match cell:
        case None | Reason():
            return [None] * n_values
        case Footnoted():
            return _cell_values(cell.figure, column, has_two_intervals)
        case Printed():
            return [cell.text, *[None] * (n_values - 1)]
        case Estimate() if column.kind == "interval":
            return [cell.ci_low, cell.ci_high]
        case Estimate():
            values = [cell.value, cell.ci_low, cell.ci_high, *([cell.n] if column.show_n else [])]
            cells_ends = [cell.cells_ci_low, cell.cells_ci_high] if isinstance(cell, ShareEstimate) else [None, None]
            return [*values, *cells_ends][:n_values]
        case CountShare():
            return [cell.n / cell.total if cell.total else None, *[None] * (n_values - 1)]
        case LowerBound():
            return [f">= {cell.value}", *[None] * (n_values - 1)]
        case int() | float():
            return [cell, *[None] * (n_values - 1)]
    return [flatten_text(cast(Text, cell))]


MISSING_CELL = "--"
_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "\u2019": "'", "\u2212": "--", "\u202f": r"\,", "\u2265": r"$\ge$",
}  # fmt: skip
_ESCAPE_PATTERN = re.compile("[" + re.escape("".join(_ESCAPES)) + "]|(?<=-)-|(?<=')'|(?<=`)`|(?<=[?!])`")
"""Characters with a meaning, and those that TeX joins with the one before: two hyphens would be a dash."""


def escape_tex(text: Text) -> str:
    """Escape a text for TeX, on one line."""
    return _ESCAPE_PATTERN.sub(lambda match: _ESCAPES.get(match[0], f"{{}}{match[0]}"), flatten_text(text))


def render_latex(tables: Sequence[Table]) -> str:
    r"""Render all tables that have rows for \input, with intervals in brackets after their estimates, without bars."""
    return f"{LATEX_REQUIREMENTS}\n" + "\n".join(_render_longtable(table) for table in tables if table.rows)


def _render_longtable(table: Table) -> str:
    """Render one table as a longtable, which may be broken over pages."""
    shown_columns = [column for column in table.columns if column.kind != "bar"]
    alignment = "".join("l" if column.kind in ("name", "text") else "r" for column in shown_columns)
    heading = " & ".join(escape_tex(column.title) for column in shown_columns) + r" \\"
    caption = escape_tex(flatten_text(table.caption).removesuffix("."))
    lines = [
        rf"\begin{{longtable}}{{{alignment}}}",
        rf"\caption{{{caption}.}}\label{{tab:{table.id}}}\\",
        r"\toprule",
        heading,
        r"\midrule",
        r"\endfirsthead",
        r"\toprule",
        heading,
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endlastfoot",
    ]
    has_total = False
    for row in iterate_rows(table):
        if row.is_total and not has_total:
            lines.append(r"\midrule")
            has_total = True
        text = " & ".join(_render_cells(table.columns, row.cells))
        # After the end of a row, TeX reads a bracket as its option, and a star as a part of it.
        lines.append(("{}" if text.startswith(("[", "*")) else "") + text + r" \\")
    return "\n".join([*lines, r"\end{longtable}"]) + "\n"


def _render_cells(columns: Sequence[Column], cells: Sequence[Cell]) -> list[str]:
    """Render the cells of a row; a reason spans its columns, but for bars."""
    rendered: list[str] = []
    column_index = 0
    for cell in cells:
        if isinstance(cell, Reason):
            spanned = columns[column_index : column_index + cell.columns]
            n_shown = sum(column.kind != "bar" for column in spanned)
            rendered += [rf"\multicolumn{{{n_shown}}}{{l}}{{{escape_tex(cell.text)}}}"] * bool(n_shown)
            column_index += cell.columns
            continue
        if columns[column_index].kind != "bar":
            rendered.append(_render_cell(cell, columns[column_index]))
        column_index += 1
    return rendered


def _render_cell(cell: Cell, column: Column) -> str:
    """Render one cell; "--" for a missing figure."""
    match cell:
        case None:
            return MISSING_CELL
        case Estimate():
            return _render_estimate(cell, column)
        case Footnoted():
            marks = unicodedata.normalize("NFKC", cell.marks)
            return rf"{_render_estimate(cell.figure, column)}\textsuperscript{{{escape_tex(marks)}}}"
        case Printed():
            return escape_tex(cell.text)
        case CountShare():
            return escape_tex(format_percent(cell.n, cell.total))
        case LowerBound() if column.style == "usd":
            return escape_tex(format_usd(cell.value, lower_bound=True))
        case LowerBound():
            return rf"$\ge$ {_format_number(cell.value, column)}"
        case int() | float():
            return _format_number(cell, column)
    return escape_tex(cast(Text, cell))


def _render_estimate(estimate: Estimate, column: Column) -> str:
    """Render an estimate as "0.52 [0.31, 0.68]", followed by its n if the column shows it; or the interval alone."""
    has_interval = estimate.ci_low is not None and estimate.ci_high is not None
    interval = [_format_number(end, column) for end in (estimate.ci_low, estimate.ci_high) if end is not None]
    if column.kind == "interval":
        return f"[{', '.join(interval)}]" if has_interval else MISSING_CELL
    if estimate.value is None:
        return MISSING_CELL
    value = _format_number(estimate.value, column)
    n = f"$n={estimate.n}$" if column.show_n else ""
    return " ".join(filter(None, (value, f"[{', '.join(interval)}]" if has_interval else "", n)))


def _format_number(value: float, column: Column) -> str:
    """Format a number; one that is not zero is never shown as zero: it gets one more decimal, or is "<0.001"."""
    if isinstance(value, int):
        return str(value)
    if column.style == "usd":
        return escape_tex(format_usd(value))
    if column.style == "p_value" and value < MIN_P_VALUE:
        return f"$<{MIN_P_VALUE}$"
    unit = r"\%" if column.style == "percent" else ""
    figure = 100 * value if unit else value
    digits = 3 if column.style == "p_value" else column.digits
    if 0 < abs(figure) < 0.5 * 10**-digits:
        digits += 1
    if 0 < abs(figure) < 0.5 * 10**-digits:
        return f"${'<' if figure > 0 else '>-'}{10**-digits:.{digits}f}{unit}$"
    sign = "+" if column.style == "signed" and figure else ""
    return f"${figure + 0.0:{sign}.{digits}f}{unit}$"
