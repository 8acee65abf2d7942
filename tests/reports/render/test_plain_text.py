"""Plain text: widths, wrapping, and tables that are broken into parts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from rich.cells import cell_len

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.document import Cell, Code, Column, Document, Link, Name, Reason, Row, Section, Strong, Table
from auditor.reports.render.plain_text import (
    flatten_text,
    indent_text,
    pad_text,
    render_text,
    render_text_table,
    split_table,
    wrap_text,
)
from tests.support.sample_document import hostile_document, sample_document


@pytest.mark.parametrize("width", [20, 40, 80, 100, 200])
def test_lines_fit_into_the_width(width: int) -> None:
    lines = render_text(sample_document(), width).splitlines()
    assert max(map(cell_len, lines)) <= width


def test_hostile_texts_are_safe_for_terminals() -> None:
    text = render_text(hostile_document())
    assert not [char for char in text if not char.isprintable() and char not in "\n\u202f"]
    assert "␛[2J" in text


def test_columns_are_aligned_by_the_width_of_characters() -> None:
    columns = [Column("Model", "name"), Column("r", "estimate"), Column("Cells", "number")]
    rows: list[Row | Sequence[Cell]] = [
        ["日本モデル", Estimate(-0.08, 9, -0.2, 0.04), 9],
        ["alder", Estimate(0.62, 1254, 0.5, 0.74), 1254],
        ["birch", Reason("not available", 2)],
        Row(["all", None, 1263], is_total=True),
    ]
    assert render_text_table(Table("t", "t", "Caption.", columns, rows), 100) == (
        "Caption.\n\n"
        "Model       r                              Cells\n"
        "──────────  ─────────────────────────────  ─────\n"
        "日本モデル  −0.08 (−0.20 to 0.04; n 9)         9\n"
        "alder        0.62 (0.50 to 0.74; n 1\u202f254)  1\u202f254\n"
        "birch       not available                      –\n"
        "──────────  ─────────────────────────────  ─────\n"
        "all             –                          1\u202f263"
    )


def test_wide_tables_are_broken_into_blocks_with_the_first_column() -> None:
    columns = [Column("Model", "name"), *(Column(f"column {i}", "number") for i in range(9))]
    text = render_text_table(Table("t", "t", "", columns, [["alder", *range(9)], ["birch", *range(9)]]), 40)
    blocks = text.split("\n\n")
    assert [block.splitlines()[1].split()[0] for block in blocks] == ["Model"] * 3
    assert [line.split() for block in blocks for line in block.splitlines() if line.startswith("alder")] == [
        ["alder", "0", "1", "2", "3"], ["alder", "4", "5", "6", "7"], ["alder", "8"],
    ]  # fmt: skip


def test_long_texts_are_wrapped_in_their_cell() -> None:
    columns = [Column("Model", "name"), Column("Remark"), Column("n", "number")]
    text = render_text_table(Table("t", "t", "", columns, [["alder", "word " * 20, 3]]), 60)
    assert all(cell_len(line) <= 60 for line in text.splitlines())
    assert text.count("word") == 20
    assert text.splitlines()[2].endswith("3")


def test_headings_are_underlined_by_their_level() -> None:
    document = Document("Kind", "Title", "", [Section("a", "A", [Section("b", "B", [])])])
    assert render_text(document, 20) == f"Title\n{'═' * 20}\n\nKind\n\nA\n{'─' * 20}\n\nB\n"


def table_of(n_columns: int, *cells: Cell) -> Table:
    """A table with one row."""
    columns = [Column(f"c{i}", "number") for i in range(n_columns)]
    return Table("t", "Label", "Caption.", columns, [cells or range(n_columns)])


def test_a_table_that_fits_is_not_broken() -> None:
    table = table_of(5)
    assert split_table(table, 5) == [table]


def test_parts_are_even_and_each_starts_with_the_first_column() -> None:
    parts = split_table(table_of(8), 5)
    assert [[column.title for column in part.columns] for part in parts] == [
        ["c0", "c1", "c2", "c3", "c4"],
        ["c0", "c5", "c6", "c7"],
    ]
    assert [part.rows for part in parts] == [[Row([0, 1, 2, 3, 4])], [Row([0, 5, 6, 7])]]
    assert [part.caption for part in parts] == ["Caption.", "Label, continued."]


def test_a_reason_spans_its_columns_in_each_part() -> None:
    parts = split_table(table_of(7, 0, 1, Reason("few", 4), 6), 4)
    rows = [row.cells for part in parts for row in part.rows if isinstance(row, Row)]
    assert rows == [[0, 1, Reason("few", 2)], [0, Reason("few", 2), 6]]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 5, [""]),
        ("a bb ccc", 5, ["a bb", "ccc"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("a abcdef b", 4, ["a", "abcd", "ef b"]),
        ("日本語", 4, ["日本", "語"]),
        ("1\u202f254 1\u202f254", 5, ["1\u202f254", "1\u202f254"]),
    ],
)
def test_wrapping(text: str, width: int, lines: list[str]) -> None:
    assert wrap_text(text, width) == lines


def test_padding_counts_wide_characters_twice() -> None:
    assert pad_text("日", 4) == "日  "
    assert pad_text("日", 4, is_right_aligned=True) == "  日"


def test_indentation_leaves_empty_lines_empty() -> None:
    assert indent_text("a\n\nb", "- ") == "- a\n\n  b"


def test_markup_is_dropped_and_invisible_characters_are_shown() -> None:
    assert flatten_text([Strong(Name("a\x1b")), "\n b ", Code("c"), Link(" d", "e")]) == "a␛ b c d"
