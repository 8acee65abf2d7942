"""Escaped text keeps every word, and none of it is Markdown or HTML."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from auditor.reports.render.escaping import escape_html, escape_markdown, isolate_rtl, quote_markdown
from tests.reports.hostile_report import EVIL
from tests.support.markdown_tokens import parse_markdown


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
