"""Render tables for LaTeX, with the packages booktabs and longtable."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import cast

from auditor.metrics.estimate import Estimate
from auditor.reports.document import Cell, Column, CountShare, Footnoted, LowerBound, Printed, Reason, Table, Text
from auditor.reports.number_format import format_percent, format_usd
from auditor.reports.render.cell_format import iterate_rows
from auditor.reports.render.text_layout import flatten_text

MISSING_CELL = "--"
_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "\u2019": "'", "\u2212": "--", "\u202f": r"\,", "\u2265": r"$\ge$",
}  # fmt: skip
_ESCAPE_PATTERN = re.compile("[" + re.escape("".join(_ESCAPES)) + "]")


def escape_tex(text: Text) -> str:
    """Escape a text for TeX, on one line."""
    return _ESCAPE_PATTERN.sub(lambda match: _ESCAPES[match.group()], flatten_text(text))


def render_latex(tables: Sequence[Table]) -> str:
    r"""Render all tables that have rows for \input, with intervals in brackets after their estimates, without bars."""
    requirements = "% Needs \\usepackage{booktabs,longtable}.\n"
    return requirements + "\n".join(_render_longtable(table) for table in tables if table.rows)


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
        lines.append(" & ".join(_render_cells(table.columns, row.cells)) + r" \\")
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
    unit = r"\%" if column.style == "percent" else ""
    figure = 100 * value if unit else value
    digits = 3 if column.style == "p_value" else column.digits
    if column.style != "p_value" and 0 < abs(figure) < 0.5 * 10**-digits:
        digits += 1
    if 0 < abs(figure) < 0.5 * 10**-digits:
        return f"${'<' if figure > 0 else '>-'}{10**-digits:.{digits}f}{unit}$"
    sign = "+" if column.style == "signed" and figure else ""
    return f"${figure + 0.0:{sign}.{digits}f}{unit}$"
