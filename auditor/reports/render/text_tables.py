"""Render a table as plain text; one that is too wide is broken into blocks of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import cast

from rich.cells import cell_len

from auditor.reports.document import Cell, Column, Paragraph, Reason, Table, Text
from auditor.reports.number_format import MISSING_SYMBOL
from auditor.reports.render.cell_format import format_figure, format_reason, iterate_rows, label_notes
from auditor.reports.render.shortened_tables import shorten_table
from auditor.reports.render.text_layout import flatten_text, pad_text, wrap_text

MAX_CELL_WIDTH = 40
GAP = "  "


@dataclass(frozen=True, slots=True)
class _TextColumn:
    """A column as text: the lines of its heading and of each of its cells, all of one width."""

    heading: Sequence[str]
    cells: Sequence[Sequence[str]]
    width: int


def render_text_table(table: Table, width: int) -> str:
    """Render the table, with its caption and notes; bars are left out, since other columns have their numbers."""
    shortened = shorten_table(table)
    if isinstance(shortened, Paragraph):
        return "\n".join(wrap_text(flatten_text(shortened.content), width))
    table = shortened
    notes = label_notes(table)
    rows = list(iterate_rows(table))
    cells_by_row = [_expand_reasons(row.cells) for row in rows]
    columns = [
        _build_column(column, [cells[i] for cells in cells_by_row], notes, width)
        for i, column in enumerate(table.columns)
        if column.kind != "bar"
    ]
    is_total = [row.is_total for row in rows]
    parts = [
        "\n".join(wrap_text(flatten_text(table.caption), width)),
        *("\n".join(_render_lines(block, is_total)) for block in _split_columns(columns, width)),
        "\n".join(
            line for text, label in notes.items() for line in wrap_text(flatten_text(f"note {label}: {text}"), width)
        ),
    ]
    return "\n\n".join(filter(None, parts))


def _expand_reasons(cells: Sequence[Cell]) -> list[Cell]:
    """Put a reason that spans columns into the first of them, and missing values into the others."""
    return [
        expanded
        for cell in cells
        for expanded in ([cell, *[None] * (cell.columns - 1)] if isinstance(cell, Reason) else [cell])
    ]


def _build_column(column: Column, cells: Sequence[Cell], notes: Mapping[str, str], width: int) -> _TextColumn:
    """Lay out a column: texts are wrapped, figures aligned at the right of their values."""
    max_width = min(MAX_CELL_WIDTH, max((width - len(GAP)) // 2, 1))
    contents = [_format_cell(cell, column, notes) for cell in cells]
    value_width = max([value_length for _, value_length in contents], default=0)
    cell_lines = []
    for text, value_length in contents:
        padding = " " * min(value_width - value_length if value_length else 0, max_width // 2)
        cell_lines.append([padding + line.replace("\u00a0", " ") for line in wrap_text(text, max_width - len(padding))])
    title = flatten_text(column.title)
    cell_width = max([cell_len(line) for lines in cell_lines for line in lines], default=1)
    longest_word = max(map(cell_len, title.split(" ")))
    heading = wrap_text(title, min(max_width, max(cell_width, longest_word)))
    column_width = max([cell_width, *map(cell_len, heading)])
    is_right_aligned = column.kind in ("number", "share")

    def align(lines: Sequence[str]) -> list[str]:
        """Fill up lines to the width of the column."""
        return [pad_text(line, column_width, is_right_aligned=is_right_aligned) for line in lines]

    return _TextColumn(align(heading), [align(lines) for lines in cell_lines], column_width)


def _format_cell(cell: Cell, column: Column, notes: Mapping[str, str]) -> tuple[str, int]:
    """Format a cell: its text, and the length of the value that the text starts with (0 if it is no figure)."""
    if isinstance(cell, Reason):
        note = format_reason(cell, notes)
        return flatten_text(note.in_line() if note else cell.text), 0
    if column.kind in ("name", "text"):
        return MISSING_SYMBOL if cell is None else flatten_text(cast(Text, cell)), 0
    figure = format_figure(cell, column, notes)
    line = figure.in_line().replace(figure.n, figure.n.replace(" ", "\u00a0")) if figure.n else figure.in_line()
    return flatten_text(line), cell_len(figure.value) if figure.has_value else 0


def _split_columns(columns: Sequence[_TextColumn], width: int) -> Iterator[list[_TextColumn]]:
    """Split columns into blocks that fit into the width, each starting with the first column."""
    first, *others = columns
    block, used_width = [first], first.width
    for column in others:
        if len(block) > 1 and used_width + len(GAP) + column.width > width:
            yield block
            block, used_width = [first], first.width
        block.append(column)
        used_width += len(GAP) + column.width
    yield block


def _render_lines(columns: Sequence[_TextColumn], is_total: Sequence[bool]) -> Iterator[str]:
    """Lines of a block of columns: heading, rule, and the rows, with a rule before the total."""
    n_heading_lines = max(len(column.heading) for column in columns)
    rule = GAP.join("─" * column.width for column in columns)
    headings = [[*[""] * (n_heading_lines - len(column.heading)), *column.heading] for column in columns]
    yield from _join_cells(headings, columns)
    yield rule
    for i, is_total_row in enumerate(is_total):
        if is_total_row and not any(is_total[:i]):
            yield rule
        yield from _join_cells([column.cells[i] for column in columns], columns)


def _join_cells(cells: Sequence[Sequence[str]], columns: Sequence[_TextColumn]) -> Iterator[str]:
    """Lines of one row, whose cells may have several lines."""
    for lines in zip_longest(*cells, fillvalue=""):
        yield GAP.join(pad_text(line, column.width) for line, column in zip(lines, columns, strict=True)).rstrip()
