"""The Markdown report has the page's figures, and model texts in it are neither Markdown nor HTML."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.token import Token

from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import format_number
from auditor.reports.pages.markdown_report import render_markdown
from auditor.storage.database import Database
from tests.reports.hostile_report import hostile_report

ACTIVE = {"html_inline", "html_block", "link_open", "image", "code_inline", "code_block", "fence", "em_open", "s_open"}


def _tokens(text: str) -> list[Token]:
    """All tokens, including nested ones, of a GitHub-flavoured parser that accepts HTML, tables and bare links."""
    reader = MarkdownIt("gfm-like", {"html": True})
    return [t for token in reader.parse(text) for t in (token, *(token.children or []))]


def test_figures_equal_those_of_the_report(report: Report) -> None:
    text = render_markdown(report)
    for row in report.alignment:
        assert f"| {row.model} | {format_number(row.pearson_r)} |" in text
    assert "### " in text


def test_tables_are_parsed_as_tables(report: Report) -> None:
    tokens = _tokens(render_markdown(report))
    assert sum(token.type == "table_open" for token in tokens) >= 12
    assert not ACTIVE & {token.type for token in tokens}


def test_hostile_texts_are_escaped(db: Database) -> None:
    text = render_markdown(hostile_report(db))
    tokens = _tokens(text)
    assert not (ACTIVE | {"ordered_list_open"}) & {token.type for token in tokens}
    # No heading comes from a hostile text.
    headings = [tokens[i + 1].content for i, t in enumerate(tokens) if t.type == "heading_open"]
    assert not [h for h in headings if h in ("heading", "Setext")]
    assert not [c for c in text if not c.isprintable() and c not in "\n\u202f"]
    visible_text = "".join(token.content for token in tokens if token.type == "text")
    assert "<script>alert(1)</script>" in visible_text
    assert "**bold** __bold__" in visible_text
