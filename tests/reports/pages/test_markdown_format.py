"""Escaped text keeps every word and contains no active Markdown."""

from __future__ import annotations

import pytest

from auditor.reports.pages.markdown_format import escape_markdown, quote_markdown
from tests.reports.hostile_report import EVIL
from tests.reports.pages.test_markdown_report import _tokens


@pytest.mark.parametrize("form", [escape_markdown, quote_markdown])
def test_escaping_keeps_every_word(form: object) -> None:
    assert callable(form)
    tokens = _tokens(form(EVIL))
    visible_text = "".join(
        token.content if token.type == "text" else " " for token in tokens if token.type in ("text", "softbreak")
    )
    for word in (
        "[/INST]",
        "\\u202edesrever",
        "~~gone~~",
        "`code`",
        "&copy;",
        "| a | b |",
        "1. list",
        "- item",
        "# heading",
    ):
        assert word in visible_text


@pytest.mark.parametrize("start", ["# a", "1. a", "1) a", "- a", "+ a", "> a", "---", "===", "```", "    a", "| a |"])
def test_markdown_at_line_starts_is_escaped(start: str) -> None:
    kinds = {token.type for token in _tokens(quote_markdown(f"first\n{start}\n{start}"))}
    assert kinds <= {
        "blockquote_open",
        "blockquote_close",
        "paragraph_open",
        "paragraph_close",
        "inline",
        "text",
        "softbreak",
    }
