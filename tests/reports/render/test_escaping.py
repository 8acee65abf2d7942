"""Texts from outside are neither markup nor formulas, and pictures are named in text forms."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given, settings, strategies as st

from auditor.reports.document import Block, Disclosure, Figure, FigureGrid, HeatMap, Paragraph
from auditor.reports.render.escaping import (
    describe_pictures,
    escape_html,
    escape_markdown,
    format_markdown_code,
    group_pictures,
    isolate_rtl,
    quote_markdown,
)
from tests.reports.hostile_report import EVIL
from tests.support.markdown_html import render_pages
from tests.support.markdown_tokens import parse_markdown

FRAGMENTS = (
    *"""\\`*_[]{}()<>#+-=.!|~$^&:;@"'%/? \n\t""", "a", "b", "1", "<script>", "</script>", "<img src=x onerror=y>",
    "<!--", "-->", "javascript:", "https://", "www.", "evil.com", "x@evil.com", "&lt;", "&#60;", "![", "](", "[x]: ",
    "{: onclick=y }", "{#id}", "```", "~~~", "===", "---", "!!! note", "??? note", "=== ", ":smile:", "++a++", "==a==",
    "^^a^^", "*[a]: ", "[^1]: ", "    ", "--8<-- ", "1. ", "- ", "#!python ", "é", "日", "<https://evil.com>", "<b>",
    "\\<b>", "<?php ?>", "<![CDATA[",
)  # fmt: skip
hostile_texts = st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join)


def remove_spaces(text: str) -> str:
    """A text without white space, since renderers join and indent lines."""
    return "".join(text.split())


@settings(max_examples=100, deadline=None)
@given(hostile_texts)
@example("\\<script>alert(1)</script>")
@example("see {: onclick=alert(1) }")
@example("`<script>alert(1)</script>`")
@example("[x]: https://evil.com")
@example("a heading\n=")
def test_no_parser_reads_an_escaped_text_as_markup(text: str) -> None:
    for markdown, shown, tags in (
        (f"x {escape_markdown(text)}", f"x{text}", {"p"}),
        (escape_markdown(f"{text} x"), f"{text}x", {"p"}),
        (f"- {escape_markdown(f'x {text}')}", f"x{text}", {"ul", "li"}),
        (quote_markdown(f"{text}\nx"), f"{text}x", {"blockquote", "p"}),
        (f"x {format_markdown_code(text)}", f"x{text}", {"p", "code"}),
        (f"# x {escape_markdown(text)}", f"x{text}", {"h1"}),
        (f"| a | b |\n| --- | --- |\n| x {escape_markdown(text)} | {format_markdown_code(text)} |", f"abx{text}{text}",
         {"table", "thead", "tbody", "tr", "th", "td", "code"}),
    ):  # fmt: skip
        for page in render_pages(markdown):
            assert {element.tag for element in page.elements} <= tags
            assert {name for element in page.elements for name, _ in element.attributes} <= {"id"}
            assert remove_spaces(page.text) == remove_spaces(shown)


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("auditor run", "`auditor run`"),
        ("a`b", "``a`b``"),
        ("``a`", "``` ``a` ```"),
        ("a\nb", "`a b`"),
        ("a|b`c", "a&#124;b&#96;c"),
        ("", ""),
    ],
)
def test_code_is_between_more_backticks_than_it_has(text: str, markdown: str) -> None:
    assert format_markdown_code(text) == markdown


@pytest.mark.parametrize("escape", [escape_markdown, quote_markdown])
def test_escaping_for_markdown_keeps_every_word(escape: Callable[[str], str]) -> None:
    visible_text = "".join(
        token.content if token.type == "text" else " "
        for token in parse_markdown(escape(EVIL))
        if token.type in ("text", "softbreak")
    )
    for words in (
        "[/INST]", "\\u202edesrever", "~~gone~~", "`code`", "&copy;", "| a | b |", "1. list", "- item", "# heading",
    ):  # fmt: skip
        assert words in visible_text


@pytest.mark.parametrize("start", ["# a", "1. a", "1) a", "- a", "+ a", "> a", "---", "===", "```", "    a", "| a |"])
def test_markdown_at_line_starts_is_escaped(start: str) -> None:
    kinds = {token.type for token in parse_markdown(quote_markdown(f"first\n{start}\n{start}"))}
    assert kinds <= {
        "blockquote_open", "blockquote_close", "paragraph_open", "paragraph_close", "inline", "text", "softbreak",
    }  # fmt: skip


def test_markdown_is_one_line_in_which_the_thin_space_of_numbers_stays() -> None:
    assert escape_markdown(" a\n\n b\t1\u202f254 ") == "a b 1\u202f254"


def test_html_is_escaped_for_text_and_for_attributes() -> None:
    assert escape_html("<b a=\"1\" c='2'>&\x1b") == "&lt;b a=&quot;1&quot; c=&#x27;2&#x27;&gt;&amp;␛"


def test_right_to_left_names_are_isolated() -> None:
    assert isolate_rtl("valid of نموذج-أ (59%), b (61%)") == "valid of <bdi>نموذج-أ</bdi> (59%), b (61%)"
    assert isolate_rtl("العالم العربي less أوروبا") == "<bdi>العالم العربي</bdi> less <bdi>أوروبا</bdi>"
    assert isolate_rtl("a < b & <bdi>שלום</bdi>") == "a &lt; b &amp; &lt;bdi&gt;<bdi>שלום</bdi>&lt;/bdi&gt;"
    assert isolate_rtl("only \u202eLatin") == "only \\u202eLatin"


HEAT_MAP = HeatMap("Differences", [], [], (), "", "")
FIGURE = Figure("f", {}, "Agreement", "", table_id="alignment")
OTHER_FIGURE = Figure("g", {}, "Errors", "", table_id="errors")


def test_consecutive_pictures_are_one_group() -> None:
    blocks: list[Block] = [
        Paragraph("a"), FIGURE, Disclosure("s", [HEAT_MAP]), FigureGrid([OTHER_FIGURE]),
        Disclosure("t", [Paragraph("b")]), Disclosure("empty", []),
    ]  # fmt: skip
    assert [(are_pictures, len(group)) for are_pictures, group in group_pictures(blocks)] == [
        (False, 1), (True, 3), (False, 2),
    ]  # fmt: skip


def test_titles_are_listed_with_the_tables_that_the_document_has() -> None:
    blocks: list[Block] = [Disclosure("s", [HEAT_MAP]), FIGURE, FigureGrid([FIGURE, OTHER_FIGURE])]
    titles = "Shown in the HTML report: Differences; Agreement; Agreement; Errors."
    assert describe_pictures(blocks, {}) == titles
    assert describe_pictures(blocks, {"alignment": "A"}) == f"{titles} For the numbers see the table “A”."
    assert describe_pictures(blocks, {"alignment": "A", "errors": "B"}) == (
        f"{titles} For the numbers see the tables “A”, “B”."
    )


def test_of_many_titles_only_the_first_are_listed() -> None:
    figures: list[Block] = [Figure(f"f{i}", {}, f"Model {i}", "") for i in range(9)]
    expected = "Shown in the HTML report: Model 0; Model 1; Model 2; Model 3; and 5 more."
    assert describe_pictures(figures, {}) == expected
