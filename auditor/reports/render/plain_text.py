"""Render a document as plain text of a fixed width, for terminals. Figures and heat maps are named, not drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from math import ceil
from typing import cast

from rich.cells import cell_len, chop_cells

from auditor.reports.document import (
    Block,
    Callout,
    Cell,
    Column,
    Disclosure,
    Document,
    Facts,
    List,
    ListItem,
    Paragraph,
    Quote,
    Reason,
    Section,
    Table,
    Text,
)
from auditor.reports.number_format import MISSING_SYMBOL
from auditor.reports.render.escaping import (
    InlineMarkup,
    collapse_spaces,
    describe_pictures,
    group_pictures,
    label_tables,
    render_inline,
)
from auditor.reports.render.tables import format_figure, format_reason, iterate_rows, label_notes, shorten_table
from auditor.text_safety import escape_invisible


def _clean(text: str) -> str:
    """Make a text safe for terminals, on one line."""
    return collapse_spaces(escape_invisible(text))


_MARKUP = InlineMarkup(_clean, _clean, str, _clean, lambda text, _: _clean(text))


def flatten_text(text: Text) -> str:
    """The text without markup, on one line."""
    return render_inline(text, _MARKUP).strip()


def wrap_text(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` columns, at spaces if possible; at least one line."""
    lines = [""]
    for word in text.split(" "):
        if cell_len(lines[-1]) + bool(lines[-1]) + cell_len(word) <= width:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
        else:
            pieces = chop_cells(word, width) if cell_len(word) > width else [word]
            lines[-1:] = [lines[-1], *pieces] if lines[-1] else pieces
    return lines


def pad_text(text: str, width: int, *, is_right_aligned: bool = False) -> str:
    """Fill up a text with spaces to `width` columns."""
    padding = " " * (width - cell_len(text))
    return padding + text if is_right_aligned else text + padding


def indent_text(text: str, prefix: str) -> str:
    """Put `prefix` before the first line of a text, and as many spaces before the others, but not before empty ones."""
    first, *other_lines = text.split("\n")
    indentation = " " * cell_len(prefix)
    return "\n".join([f"{prefix}{first}", *(f"{indentation}{line}" if line else "" for line in other_lines)])


def split_table(table: Table, max_columns: int) -> list[Table]:
    """Break a table into tables with at most `max_columns` columns; only the first has the caption."""
    n_other_columns = len(table.columns) - 1
    if n_other_columns < max_columns:
        return [table]
    n_parts = ceil(n_other_columns / (max_columns - 1))
    part_size = ceil(n_other_columns / n_parts)
    indices_by_part = [
        [0, *range(start, min(start + part_size, n_other_columns + 1))]
        for start in range(1, n_other_columns + 1, part_size)
    ]
    parts = [
        replace(
            table,
            columns=[table.columns[i] for i in indices],
            rows=[replace(row, cells=_select_cells(row.cells, indices)) for row in iterate_rows(table)],
        )
        for indices in indices_by_part
    ]
    return [parts[0], *(replace(part, caption=f"{table.label}, continued.") for part in parts[1:])]


def _select_cells(cells: Sequence[Cell], column_indices: Sequence[int]) -> list[Cell]:
    """The cells of some columns; a reason spans those of its columns that are selected."""
    cell_by_column = [i for i, cell in enumerate(cells) for _ in range(cell.columns if isinstance(cell, Reason) else 1)]
    selected: list[Cell] = []
    for i, group in groupby(cell_by_column[column_index] for column_index in column_indices):
        cell = cells[i]
        selected.append(Reason(cell.text, len(list(group))) if isinstance(cell, Reason) else cell)
    return selected


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


DEFAULT_WIDTH = 100
MIN_WIDTH = 20
RULES = "═─"
"""Characters that underline headings, by level; those of deeper levels are not underlined."""
INDENTATION = "  "


def render_text(document: Document, width: int = DEFAULT_WIDTH) -> str:
    """Render the document as text of at most `width` columns, as a terminal counts them."""
    renderer = _TextRenderer(max(width, MIN_WIDTH), label_tables(document))
    subtitle = ". ".join(filter(None, map(flatten_text, (document.kind, document.subtitle))))
    parts = [
        renderer.heading(document.title, 0),
        renderer.wrap(subtitle),
        *renderer.blocks(document.opening, 1),
        *renderer.blocks(document.sections, 1),
        renderer.wrap(document.footer),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def render_text_blocks(blocks: Sequence[Block], width: int = DEFAULT_WIDTH) -> str:
    """Render blocks without figures as text of at most `width` columns."""
    renderer = _TextRenderer(max(width, MIN_WIDTH), {})
    return "\n\n".join(filter(None, renderer.blocks(blocks, 1))) + "\n"


@dataclass(frozen=True, slots=True)
class _TextRenderer:
    """Renders blocks as paragraphs of a width.

    Attributes:
        table_labels: labels of the tables that figures refer to, by id.
    """

    width: int
    table_labels: dict[str, str]

    def wrap(self, text: Text) -> str:
        """Render a paragraph."""
        return "\n".join(wrap_text(flatten_text(text), self.width))

    def heading(self, title: Text, level: int) -> str:
        """Render a heading, underlined by its level."""
        lines = self.wrap(title)
        return f"{lines}\n{RULES[level] * self.width}" if level < len(RULES) else lines

    def item(self, text: Text, bullet: str = "- ") -> str:
        """Render an item of a list."""
        return indent_text("\n".join(wrap_text(flatten_text(text), self.width - len(bullet))), bullet)

    def nested(self, blocks: Sequence[Block], level: int) -> Iterator[str]:
        """Render blocks indented."""
        renderer = _TextRenderer(self.width - len(INDENTATION), self.table_labels)
        for part in renderer.blocks(blocks, level):
            if part:
                yield indent_text(part, INDENTATION)

    def blocks(self, blocks: Sequence[Block], level: int) -> Iterator[str]:
        """Render blocks; `level` is that of the headings of sections among them."""
        for are_pictures, group in group_pictures(blocks):
            if are_pictures:
                yield self.wrap(describe_pictures(group, self.table_labels))
            else:
                for block in group:
                    yield from self.block(block, level)

    def block(self, block: Block, level: int) -> Iterator[str]:
        """Render a block that is no picture as paragraphs, some of which may be empty."""
        match block:
            case Section():
                yield self.heading(block.title, level)
                yield from self.blocks(block.blocks, level + 1)
            case Paragraph():
                yield self.wrap(block.content)
            case List():
                items = [item.content if isinstance(item, ListItem) else item for item in block.items]
                yield "\n".join(map(self.item, items))
            case Facts():
                yield "\n".join(self.item(f"{label}: {value}", "") for label, value in block.items)
            case Callout():
                yield self.wrap(block.title)
                yield from self.nested(block.blocks, level)
            case Disclosure():
                tags = [f"[{tag.text}]" for tag in block.tags]
                yield self.wrap(
                    " ".join(filter(None, (flatten_text(block.summary), flatten_text(block.detail), *tags)))
                )
                yield from self.nested(block.blocks, level)
            case Quote():
                yield self.wrap(block.heading)
                yield self.quote(block.text)
                yield self.wrap(block.note)
            case Table():
                yield self.wrap(self.table_labels.get(block.id, ""))
                yield render_text_table(block, self.width)

    def quote(self, text: str) -> str:
        """Render a text of several lines with a line at its left."""
        lines = escape_invisible(text).strip().replace("\t", " ").split("\n")
        wrapped_lines = [wrapped for line in lines for wrapped in wrap_text(line.strip(), self.width - 2)]
        return "\n".join(f"│ {line}".rstrip() for line in wrapped_lines)
