"""The report of any audit shows the same figures in every format, on a page that is well-formed and inert."""

from __future__ import annotations

import re

import pytest

from auditor.domain import Cell, CellScore
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.reports.sections.report import build_report_document
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.reports.conftest import import_scores, survey_of
from tests.reports.hostile_report import hostile_report
from tests.support.document_figures import assert_figures_are_shown
from tests.support.html_page import Page, assert_well_formed_and_inert
from tests.support.synthetic_audit import populate


@pytest.fixture(scope="module")
def html(report: Report) -> str:
    return render_report(report, "html")


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_the_page_is_well_formed_and_inert(html: str, page: Page) -> None:
    assert_well_formed_and_inert(html)
    policy = next(m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    assert not re.search(r"url\((?!#)|@import|expression\(", html)


def test_every_figure_of_a_report_is_in_every_format(report: Report) -> None:
    assert_figures_are_shown(build_report_document(report))


def test_contents_lead_to_all_sections_but_subsections(report: Report, page: Page) -> None:
    sections = [f"#{section.id}" for section in build_report_document(report).sections]
    links = [link["href"] for link in page.all("a")]
    assert links[: len(sections)] == sections
    assert len(sections) == 22
    assert set(sections) <= {f"#{section['id']}" for section in page.all("section")}


def test_tables_have_captions_and_scopes(html: str, page: Page) -> None:
    assert len(page.all("table")) == html.count("<caption") > 10
    assert all(th.get("scope") in ("row", "col") for th in page.all("th"))


def test_plots_have_text_alternatives(page: Page, html: str) -> None:
    plots = [svg for svg in page.all("svg") if svg.get("aria-hidden") != "true"]
    assert len(plots) > 5
    assert all(svg.get("role") == "img" for svg in plots)
    assert len(re.findall(r"<svg [^>]*role=\"img\"[^>]*><title[^>]*>[^<]+</title><desc", html)) == len(plots)


def test_the_page_opens_with_the_main_finding(page: Page) -> None:
    text = " ".join(page.text.split())
    first = text.index("Closest to people: alder. Of 3 models, ")
    assert first < text.index("Where do the models differ from people?")
    assert re.search(r"alder agrees [a-z ]*with people \(mean absolute error = ", text)


def test_agreement_indistinguishable_from_chance_is_stated(db: Database) -> None:
    people = (0.1, -0.2, 0.3, -0.4, 0.5, -0.6)
    truth = {(c, str(i)): v / k for k, c in enumerate("ABCDEF", 1) for i, v in enumerate(people)}
    values = [0.2, 0.1, -0.3, 0.2, 0.1, -0.1] * 6
    report = import_scores(db, truth, {("m", *c): v for c, v in zip(truth, values, strict=True)})
    assert "It is not shown to order countries and topics as people do" in render_report(report, "html")


def test_heat_map_distinguishes_unasked_cells_from_failed_ones(db: Database) -> None:
    truth = {("Egypt", "a"): None, ("Egypt", "b"): 0.2, ("Egypt", "c"): 0.0}
    scores = {("m", "Egypt", "a"): 0.5, ("m", "Egypt", "b"): None, ("m", "Egypt", "c"): 0.34}
    html = render_report(import_scores(db, truth, scores), "html")
    cells = re.findall(r'<td class="(\S+)" title="([^"]*)">([^<]*)</td>', html)
    assert cells == [
        ("na", "people were not asked", ""),
        ("no", "no usable answer of the model", "×"),
        ("h2", "people 0.00, model 0.34", "+.34"),
    ]


def test_hostile_texts_of_models_and_users_stay_texts(db: Database) -> None:
    html = render_report(hostile_report(db), "html")
    assert_well_formed_and_inert(html)
    text = Page(html).text
    assert "<script>alert(1)</script>" in text
    assert "{{ 7 * 7 }}" in text
    assert "[/INST] [bold red]x[/]" in text
    assert "\\u202edesrever" in text
    assert "␛[2J" in text
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


@pytest.mark.parametrize(
    "size", [{"models": 1}, {"models": 2, "countries": 1, "topics": 1}, {"models": 7, "topics": 2}]
)
def test_an_audit_of_any_size_shows_its_figures_in_every_format(db: Database, size: dict[str, int]) -> None:
    populate(db, name="sized", **size)
    report = build_report(db, "sized")
    assert_well_formed_and_inert(render_report(report, "html"))
    assert_figures_are_shown(build_report_document(report))


def test_imported_scores_are_named_as_such(db: Database) -> None:
    truth = {("Egypt", str(i)): i / 10 for i in range(5)}
    report = import_scores(db, truth, {("m", *c): v / 2 for c, v in truth.items()})
    assert "results were imported" in render_report(report, "html")


def test_two_methods_are_named(db: Database) -> None:
    truth = {("Egypt", str(i)): i / 10 for i in range(5)}
    import_scores(db, truth, {("m", *c): v for c, v in truth.items()})
    audit = audits.get_audit(db, "imported")
    rows = [CellScore("m", Cell(*c), "logprob", -v, n_ok=1, n_planned=1) for c, v in truth.items()]
    save_records(db, audit.id, rows)
    html = render_report(build_report(db, "imported"), "html")
    assert "m (direct)" in html
    assert "m (logprob)" in html
