"""Documents and reports in every format have all figures and are safe, whatever models and users wrote."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import is_dataclass
from typing import get_args

import pytest

from auditor.errors import UsageError
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Cell, Document, Inline, Section, Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.output import render_document, render_report
from auditor.reports.sections.report import build_report_document
from auditor.storage import audits
from auditor.storage.database import Database, open_database
from tests.reports.conftest import import_scores, survey_of
from tests.reports.hostile_report import hostile_report
from tests.support.document_figures import assert_figures_are_shown, iterate_cells, iterate_figures
from tests.support.html_page import Page, assert_well_formed_and_inert
from tests.support.markdown_html import render_pages
from tests.support.markdown_tokens import ACTIVE_TOKENS, parse_markdown
from tests.support.sample_document import hostile_document, sample_document

FORMATS = ("html", "markdown", "text")


def test_every_figure_is_in_every_format() -> None:
    document = sample_document()
    assert_figures_are_shown(document)
    figures = list(iterate_figures(document))
    assert len(figures) > 35
    assert {"0.62", "0.50 to 0.74", "n 1\u202f254", "< 0.001", "87%", "≥ $0.0123"} <= {
        number for figure in figures for number in figure.numbers
    }


def test_the_sample_document_has_every_kind_of_block_and_cell() -> None:
    blocks = list(iterate_blocks(sample_document()))
    assert {type(block) for block in blocks} == {Section, *get_args(Block)}
    cells = [cell for table in blocks if isinstance(table, Table) for _, _, cell in iterate_cells(table)]
    kinds_of_cells = {kind for kind in get_args(Cell) if is_dataclass(kind)} - {*get_args(Inline)}
    assert kinds_of_cells <= {type(cell) for cell in cells}


@pytest.mark.parametrize("output_format", FORMATS)
def test_equal_documents_give_equal_texts(output_format: str) -> None:
    assert render_document(sample_document(), output_format) == render_document(sample_document(), output_format)


@pytest.mark.parametrize("output_format", FORMATS)
def test_python_values_are_never_printed(output_format: str) -> None:
    text = render_document(sample_document(), output_format)
    assert "None" not in text
    assert "Estimate(" not in text


def test_json_is_the_report(report: Report) -> None:
    text = render_report(report, "json")
    dumped = report.model_dump(mode="json")
    assert dumped.pop("probes") == {}  # left out of JSON without probes of other packages
    assert json.loads(text) == dumped


def test_json_loads_no_renderers_charts_or_sections() -> None:
    program = (
        "import sys\n"
        "from auditor.reports.output import render_report\n"
        "from auditor.reports.data.report_schema import Report\n"
        "render_report(Report.model_construct(), 'json')\n"
        "print(*[name for name in sys.modules if name.startswith('auditor.reports.')])"
    )
    modules = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    packages = {name.split(".")[2] for name in modules.split()}
    assert "data" in packages
    assert not packages & {"render", "charts", "sections"}


def test_unknown_formats_are_named_with_the_known_ones(report: Report) -> None:
    with pytest.raises(UsageError, match=r"'pdf' is not an output format\. Use html, markdown or text\."):
        render_document(sample_document(), "pdf")
    with pytest.raises(UsageError, match=r"'pdf' is not a report format\. Use html, markdown, text or json\."):
        render_report(report, "pdf")


@pytest.fixture(scope="module")
def hostile_documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    """Documents in which every text is hostile: the report of an audit, and one with every kind of block."""
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('hostile')}/audit.db") as db:
        return {"report": build_report_document(hostile_report(db)), "every block": hostile_document()}


@pytest.mark.parametrize("name", ["report", "every block"])
def test_hostile_texts_of_models_and_users_stay_texts(name: str, hostile_documents: dict[str, Document]) -> None:
    html = render_document(hostile_documents[name], "html")
    assert_well_formed_and_inert(html)
    assert not re.search(r"url\((?!#)|@import|expression\(", html)
    text = Page(html).text
    for words in ("<script>alert(1)</script>", "{{ 7 * 7 }}", "[/INST] [bold red]x[/]", "\\u202edesrever", "␛[2J"):
        assert words in text
    # U+200E and U+200F are no hostile text's: numbers next to right-to-left names need none in HTML.
    assert not [c for c in html if not c.isprintable() and c not in "\n\t\u202f\u00a0"]


def test_an_audit_without_results_has_a_report(db: Database) -> None:
    audits.save_audit(
        db, name="e", config=None, config_hash=None, survey=survey_of({("Egypt", "a"): 0.0}), environment={}
    )
    html = render_report(build_report(db, "e"), "html")
    assert_well_formed_and_inert(html)
    assert "no scores have been measured" in html
    assert "All figures below are provisional." in html


def test_imported_scores_are_named_as_such(db: Database) -> None:
    truth = {("Egypt", str(i)): i / 10 for i in range(5)}
    report = import_scores(db, truth, {("m", *c): v / 2 for c, v in truth.items()})
    assert "results were imported" in render_report(report, "html")


OWN_TOKENS = {"link_open", "em_open", "code_inline"}
"""Active tokens that the report itself has: links to its sections, remarks on figures, commands and config keys."""


def test_markdown_tables_are_parsed_as_tables(report: Report) -> None:
    tokens = parse_markdown(render_report(report, "markdown"))
    assert sum(token.type == "table_open" for token in tokens) >= 12
    assert {token.type for token in tokens} & ACTIVE_TOKENS <= OWN_TOKENS


@pytest.mark.parametrize("name", ["report", "every block"])
def test_hostile_texts_stay_texts_in_markdown(name: str, hostile_documents: dict[str, Document]) -> None:
    text = render_document(hostile_documents[name], "markdown")
    tokens = parse_markdown(text)
    assert {token.type for token in tokens} & (ACTIVE_TOKENS | {"ordered_list_open"}) <= OWN_TOKENS
    assert all(str(token.attrs["href"]).startswith("#") for token in tokens if token.type == "link_open")
    headings = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    assert not [heading for heading in headings if heading in ("heading", "Setext")]
    assert not [char for char in text if not char.isprintable() and char not in "\n\u202f"]
    visible_text = "".join(token.content for token in tokens if token.type == "text")
    assert "<script>alert(1)</script>" in visible_text
    assert "**bold** __bold__" in visible_text
    if name == "report":
        codes = {token.content for token in tokens if token.type == "code_inline"}
        commands = {
            "check hostile --max-mae YOURS",
            "errors hostile",
            "export tables",
            "export tables hostile",
            "review",
        }
        names = {"conflict", "report_sensitivity.csv", "survey.regions"}
        assert codes <= {f"auditor {command}" for command in commands} | names
        assert text.count("*Shown in the HTML report") == sum(token.type == "em_open" for token in tokens)


@pytest.mark.parametrize("name", ["report", "every block"])
def test_neither_family_of_parsers_finds_markup_in_hostile_texts(
    name: str, hostile_documents: dict[str, Document]
) -> None:
    """Links lead to sections of the same document; there is no image, no script and no attribute of a text."""
    own_tags = {
        "h1", "h2", "h3", "h4", "p", "ul", "li", "strong", "em", "code", "hr", "blockquote", "a",
        "table", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    for page in render_pages(render_document(hostile_documents[name], "markdown")):
        assert {element.tag for element in page.elements} <= own_tags
        attributes = [attribute for element in page.elements for attribute in element.attributes]
        assert {name for name, _ in attributes} <= {"id", "href", "style", "align"}
        assert all((value or "").startswith("#") for name, value in attributes if name == "href")
        assert "<script>alert(1)</script>" in page.text
