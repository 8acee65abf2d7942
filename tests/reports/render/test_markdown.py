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
from tests.support.markdown_html import render_pages
from tests.support.markdown_tokens import ACTIVE_TOKENS, parse_markdown
from tests.support.sample_document import hostile_document, sample_document


def render_paragraph(text: Text) -> str:
    """The Markdown of a paragraph."""
    section = Section("s", "What is next, really?", [Paragraph(text)])
    return render_markdown(Document("", "", "", [section])).split("\n\n")[-1].strip()


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


def test_neither_family_of_parsers_finds_markup_in_hostile_texts() -> None:
    """Links lead to sections of the same document; there is no image, no script and no attribute of a text."""
    own_tags = {
        "h1", "h2", "h3", "h4", "p", "ul", "li", "strong", "em", "code", "hr", "blockquote", "a",
        "table", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    for page in render_pages(render_markdown(hostile_document())):
        assert {element.tag for element in page.elements} <= own_tags
        attributes = {name: value or "" for element in page.elements for name, value in element.attributes}
        assert attributes.keys() <= {"id", "href", "style", "align"}
        links = [value or "" for element in page.elements for name, value in element.attributes if name == "href"]
        assert all(link.startswith("#") for link in links)
        assert "<script>alert(1)</script>" in page.text


def test_hostile_texts_stay_texts() -> None:
    text = render_markdown(hostile_document())
    tokens = parse_markdown(text)
    links = [token.attrs["href"] for token in tokens if token.type == "link_open"]
    assert all(str(href).startswith("#") for href in links)
    assert not (ACTIVE_TOKENS - {"link_open", "em_open", "code_inline"}) & {token.type for token in tokens}
    assert "ordered_list_open" not in {token.type for token in tokens}
    headings = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    assert not [heading for heading in headings if heading in ("heading", "Setext")]
    assert not [char for char in text if not char.isprintable() and char not in "\n\u202f"]
    visible_text = "".join(token.content for token in tokens if token.type == "text")
    assert "<script>alert(1)</script>" in visible_text
    assert "**bold** __bold__" in visible_text


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
    assert render_paragraph(text) == shown


def test_lists_have_one_line_an_item() -> None:
    document = Document("", "t", "", [Section("s", "S", [List(["a\nb", [Name("c"), " d"]])])])
    assert "- a b\n- c d\n" in render_markdown(document)


def test_cells_cannot_break_out_of_their_table() -> None:
    table = Table("t", "t", "", [Column("a|b", "name"), Column("c")], [["x|y\nz", (Code("p|q"), " | r")]])
    text = render_markdown(Document("", "t", "", [Section("s", "S", [table])]))
    [header, row] = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    assert header == "| a&#124;b | c |"
    assert row == "| x&#124;y z | p&#124;q &#124; r |"
