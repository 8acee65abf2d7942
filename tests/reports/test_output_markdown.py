"""The Markdown report has the report's figures, and texts from outside are neither Markdown nor HTML in it."""

from __future__ import annotations

import re

from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import format_number
from auditor.reports.output import render_report
from auditor.storage.database import Database
from tests.reports.hostile_report import hostile_report
from tests.support.markdown_html import render_pages
from tests.support.markdown_tokens import ACTIVE_TOKENS, parse_markdown

OWN_TOKENS = {"link_open", "em_open", "code_inline"}
"""Active tokens that the report itself has: links to its sections, remarks on figures, commands and config keys."""


def test_figures_equal_those_of_the_report(report: Report) -> None:
    text = render_report(report, "markdown")
    for row in report.alignment:
        assert re.search(rf"^\| {row.model} +\|.*\| {format_number(row.pearson_r.value)} \(", text, re.MULTILINE)
    assert "### " in text


def test_tables_are_parsed_as_tables(report: Report) -> None:
    tokens = parse_markdown(render_report(report, "markdown"))
    assert sum(token.type == "table_open" for token in tokens) >= 12
    assert {token.type for token in tokens} & ACTIVE_TOKENS <= OWN_TOKENS


def test_hostile_texts_of_models_and_users_stay_texts(db: Database) -> None:
    text = render_report(hostile_report(db), "markdown")
    tokens = parse_markdown(text)
    assert {token.type for token in tokens} & (ACTIVE_TOKENS | {"ordered_list_open"}) <= OWN_TOKENS
    assert all(str(token.attrs["href"]).startswith("#") for token in tokens if token.type == "link_open")
    commands = {
        "auditor check hostile --max-mae YOURS",
        "auditor errors hostile",
        "auditor export tables",
    }
    codes = {token.content for token in tokens if token.type == "code_inline"}
    names = {"conflict", "report_sensitivity.csv", "survey.regions"}
    assert codes <= {*commands, "auditor export tables hostile", "auditor review", *names}
    assert text.count("*Shown in the HTML report") == sum(token.type == "em_open" for token in tokens)
    headings = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    assert not [heading for heading in headings if heading in ("heading", "Setext")]
    assert not [char for char in text if not char.isprintable() and char not in "\n\u202f"]
    visible_text = "".join(token.content for token in tokens if token.type == "text")
    assert "<script>alert(1)</script>" in visible_text
    assert "**bold** __bold__" in visible_text


def test_neither_family_of_parsers_finds_an_element_of_a_model_a_name_or_a_file(db: Database) -> None:
    for page in render_pages(render_report(hostile_report(db), "markdown")):
        assert not {element.tag for element in page.elements} & {
            "script",
            "img",
            "svg",
            "b",
            "style",
            "!--",
            "del",
            "pre",
        }
        attributes = [attribute for element in page.elements for attribute in element.attributes]
        assert {name for name, _ in attributes} <= {"id", "href", "style", "align"}
        assert all((value or "").startswith("#") for name, value in attributes if name == "href")
