"""Plain text fits into its width, is aligned by the width of characters, and is safe for terminals."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from rich.cells import cell_len

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.document import Cell, Column, Document, Reason, Row, Section, Table
from auditor.reports.render.plain_text import render_text, render_text_table
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
