"""The page is well-formed, self-contained and accessible, and hostile texts stay texts."""

from __future__ import annotations

import re
import sys

import pytest

from auditor.reports.document import Document, Figure, Paragraph, Section
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.html import render_html
from tests.support.html_page import Page, assert_well_formed_and_inert
from tests.support.sample_document import hostile_document, sample_document


@pytest.fixture(scope="module")
def html() -> str:
    return render_html(sample_document())


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_page_is_well_formed_and_needs_no_network_and_no_script(html: str, page: Page) -> None:
    assert_well_formed_and_inert(html)
    policy = next(m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert not re.search(r"url\((?!#)|@import|expression\(", html)


def test_contents_lead_to_sections_with_a_title_in_them(page: Page) -> None:
    sections = [section["id"] for section in page.all("section")]
    assert [link["href"] for link in page.all("a")][:4] == ["#answer", "#where", "#conflicts", "#cost"]
    assert {str(link["href"])[1:] for link in page.all("a")} <= set(sections)
    assert "prefer" in sections


def test_ids_are_unique(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_a_muted_row_has_a_class_and_a_figure_its_mark(page: Page) -> None:
    assert [attributes.get("class") for attributes in page.all("tr")].count("muted") == 1
    text = render_html(sample_document())
    assert "0.781¹<small>" in text
    assert "0.41²<small>" in text
    assert "78,7" in text


def test_tables_have_captions_and_scopes_and_scroll_by_keyboard(page: Page) -> None:
    assert len(page.all("table")) == len(page.all("caption")) == 6
    assert all(th.get("scope") in ("row", "col") for th in page.all("th"))
    regions = [div for div in page.all("div") if div.get("class") == "scroll"]
    assert len(regions) == 6
    assert all(div["tabindex"] == "0" and div["role"] == "region" and div["aria-label"] for div in regions)


def test_figures_have_text_alternatives(html: str) -> None:
    for figure in iterate_blocks(sample_document()):
        if isinstance(figure, Figure):
            assert f">{figure.title}</title>" in html
            assert figure.description in html


def test_headings_follow_the_nesting_of_sections(html: str) -> None:
    headings = re.findall(r"<h(\d)>", html)
    assert headings == ["1", "2", "3", "4", "2", "2", "2"]


def test_hostile_texts_stay_texts() -> None:
    html = render_html(hostile_document())
    assert_well_formed_and_inert(html)
    text = Page(html).text
    for words in ("<script>alert(1)</script>", "{{ 7 * 7 }}", "[/INST] [bold red]x[/]", "\\u202edesrever", "␛[2J"):
        assert words in text
    assert not [char for char in html if not char.isprintable() and char not in "\n\t\u202f\u00a0"]


def test_a_document_without_sections_or_texts_is_a_page() -> None:
    assert_well_formed_and_inert(render_html(Document("", "", "", [])))
    html = render_html(Document("kind", "title", "", [Section("a", "A", [Paragraph("")], "A")]))
    assert_well_formed_and_inert(html)
    assert "<nav" not in html


def test_pages_without_figures_do_not_load_the_plot_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "auditor.reports.render.figures", None)
    assert "title" in render_html(Document("kind", "title", "", [Section("a", "A", [Paragraph("b")])]))
