"""Markdown is read by GitHub as it is meant: tables are tables, links lead to headings, and texts stay texts."""

from __future__ import annotations

import pytest

from auditor.reports.document import (
    Code,
    Column,
    Document,
    FigureGrid,
    Link,
    List,
    Name,
    Paragraph,
    Section,
    Strong,
    Table,
    Text,
)
from auditor.reports.render.markdown import render_markdown
from tests.support.markdown_tokens import parse_markdown
from tests.support.sample_document import sample_document


def test_tables_are_parsed_as_tables_with_figures_at_the_right() -> None:
    text = render_markdown(sample_document())
    tokens = parse_markdown(text)
    assert sum(token.type == "table_open" for token in tokens) == 3
    assert "| --- | ---: |" in text
    assert "| alder-7b | 0.62 (0.50 to 0.74; n 1\u202f254) |" in text


def test_figures_and_heat_maps_are_named_with_the_table_that_has_the_numbers() -> None:
    text = render_markdown(sample_document())
    assert (
        "Shown in the HTML report: Agreement with people. For the numbers see the table “Agreement with people”."
        in text
    )
    assert "Shown in the HTML report: All models; Differences of alder-7b; Differences of birch-instruct." in text
    assert "+.35" not in text


def test_pictures_without_any_figure_leave_no_mark() -> None:
    text = render_markdown(Document("", "t", "", [Section("s", "S", [FigureGrid([]), Paragraph("after")])]))
    assert text.split("## S")[1].split() == ["after"]


def test_quotes_are_block_quotes() -> None:
    text = render_markdown(sample_document())
    assert (
        "birch-instruct says +0.40\n\n> Lying is wrong\n> in most cases, &#42;but&#42; &#60;b>not&#60;/b> always."
        in text
    )
    assert sum(token.type == "blockquote_open" for token in parse_markdown(text)) == 4


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ([Strong(Name("a*b")), " agrees"], "**a&#42;b** agrees"),
        ([Strong(""), "x"], "x"),
        (["Run ", Code("auditor run"), "."], "Run `auditor run`."),
        (Code("a|b`c"), "a&#124;b&#96;c"),
        (Code("a`b"), "``a`b``"),
        (Link("see", "s"), "[see](#what-is-next-really)"),
        (Link("see", "unknown"), "see"),
        ([Name("1"), ". item"], "1&#46; item"),
        ([Name("-"), " item"], "&#45; item"),
        (["a ", Name(" b "), " c"], "a  b  c"),
    ],
)
def test_inline_nodes(text: Text, shown: str) -> None:
    section = Section("s", "What is next, really?", [Paragraph(text)])
    assert render_markdown(Document("", "", "", [section])).split("\n\n")[-1].strip() == shown


def test_lists_have_one_line_an_item() -> None:
    document = Document("", "t", "", [Section("s", "S", [List(["a\nb", [Name("c"), " d"]])])])
    assert "- a b\n- c d\n" in render_markdown(document)


def test_cells_cannot_break_out_of_their_table() -> None:
    table = Table("t", "t", "", [Column("a|b", "name"), Column("c")], [["x|y\nz", (Code("p|q"), " | r")]])
    text = render_markdown(Document("", "t", "", [Section("s", "S", [table])]))
    [header, row] = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    assert header == "| a&#124;b | c |"
    assert row == "| x&#124;y z | p&#124;q &#124; r |"
