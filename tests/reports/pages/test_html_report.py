"""The HTML page: well-formed, self-contained and accessible, with external texts escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from auditor.domain import Cell, CellScore, Outcome
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.pages.html_report import _isolate_rtl, render_html
from auditor.storage import audits, results
from auditor.storage.database import Database
from tests.reports.conftest import import_scores, survey_of
from tests.reports.hostile_report import hostile_report
from tests.support.synthetic_audit import populate

VOID = {"meta"}
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "p", "h1", "h2", "h3", "h4", "cite", "dl", "div", "dt",
    "dd", "nav", "ul", "li", "a", "main", "section", "strong", "bdi", "figure", "figcaption", "table", "caption",
    "thead", "tbody", "tfoot", "tr", "th", "td", "span", "details", "summary", "blockquote", "code", "footer", "i",
    "svg", "desc", "text", "circle", "line", "rect", "g",
}  # fmt: skip


class Page(HTMLParser):
    """The elements of a page with their attributes, its text, and its unclosed and wrongly closed tags."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.broken: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.broken.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def html(report: Report) -> str:
    return render_html(report)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_is_well_formed(page: Page) -> None:
    assert page.open == page.broken == []


def test_needs_no_network_and_no_script(html: str, page: Page) -> None:
    assert {tag for tag, _ in page.elements} <= ALLOWED
    policy = next(m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    for _, attributes in page.elements:
        assert not {"src", "srcset", "style"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search(r"url\(|@import|expression\(", html)


def test_contents_lead_to_sections(page: Page) -> None:
    targets = [a["href"] for a in page.all("a")]
    assert targets == [f"#{s['id']}" for s in page.all("section")]
    assert len(targets) == 15


def test_tables_have_captions_and_scopes(html: str, page: Page) -> None:
    assert len(page.all("table")) == html.count("<caption>") > 10
    assert all(th.get("scope") in ("row", "col") for th in page.all("th"))


def test_plots_have_text_alternatives(html: str, page: Page) -> None:
    plots = page.all("svg")
    assert len(plots) > 5
    assert all(svg.get("role") == "img" for svg in plots)
    assert len(re.findall(r'<svg [^>]*role="img"><title>[^<]+</title><desc>', html)) == len(plots)


def test_the_page_opens_with_the_main_finding(page: Page) -> None:
    text = " ".join("".join(page.text).split())
    first = text.index("All 3 models agree with people beyond chance (r from")
    assert first < text.index("Where they differ from people")
    assert "alder agrees with people" in text


def test_agreement_indistinguishable_from_chance_is_stated(db: Database) -> None:
    people = (0.1, -0.2, 0.3, -0.4, 0.5, -0.6)
    truth = {(c, str(i)): v / k for k, c in enumerate("ABCDEF", 1) for i, v in enumerate(people)}
    values = [0.2, 0.1, -0.3, 0.2, 0.1, -0.1] * 6
    html = render_html(import_scores(db, truth, {("m", *c): v for c, v in zip(truth, values, strict=True)}))
    assert "cannot be told from no relation at all" in html


def test_heat_map_distinguishes_unasked_cells_from_failed_ones(db: Database) -> None:
    truth = {("Egypt", "a"): None, ("Egypt", "b"): 0.2, ("Egypt", "c"): 0.0}
    scores = {("m", "Egypt", "a"): 0.5, ("m", "Egypt", "b"): None, ("m", "Egypt", "c"): 0.34}
    html = render_html(import_scores(db, truth, scores))
    cells = re.findall(r'<td class="(\S+)" title="([^"]*)">([^<]*)</td>', html)
    assert cells == [
        ("na", "people were not asked", ""),
        ("no", "no usable answer", "×"),
        ("h2", "people 0.00, model 0.34", "+.34"),
    ]


def test_hostile_texts_are_escaped(db: Database) -> None:
    html = render_html(hostile_report(db))
    page = Page(html)
    assert page.open == page.broken == []
    assert {tag for tag, _ in page.elements} <= ALLOWED
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "style")]
        assert (attributes.get("href") or "#").startswith("#")
    text = "".join(page.text)
    assert "<script>alert(1)</script>" in text
    assert "{{ 7 * 7 }}" in text
    assert "[/INST] [bold red]x[/]" in text
    assert "\\u202edesrever" in text
    assert "␛[2J" in text


def test_no_control_or_bidi_character_gets_through(db: Database) -> None:
    html = render_html(hostile_report(db))
    assert not [c for c in html if not c.isprintable() and c not in "\n\t\u202f\u00a0"]


def test_empty_audit(db: Database) -> None:
    audits.save_audit(
        db, name="e", config=None, config_hash=None, survey=survey_of({("Egypt", "a"): 0.0}), environment={}
    )
    page = Page(render_html(build_report(db, "e")))
    text = "".join(page.text)
    assert "No scores have been measured" in text
    assert "has not run to its end" in text
    assert page.open == page.broken == []


@pytest.mark.parametrize(
    "size", [{"models": 1}, {"models": 2, "countries": 1, "topics": 1}, {"models": 7, "topics": 2}]
)
def test_any_size(db: Database, size: dict[str, int]) -> None:
    populate(db, name="sized", **size)
    page = Page(render_html(build_report(db, "sized")))
    assert page.open == page.broken == []


def test_imported_scores(db: Database) -> None:
    truth = {("Egypt", str(i)): i / 10 for i in range(5)}
    html = render_html(import_scores(db, truth, {("m", *c): v / 2 for c, v in truth.items()}))
    assert "scores were imported" in html


def test_two_methods_are_named(db: Database) -> None:
    truth = {("Egypt", str(i)): i / 10 for i in range(5)}
    import_scores(db, truth, {("m", *c): v for c, v in truth.items()})
    audit = audits.get_audit(db, "imported")
    rows = [CellScore("m", Cell(*c), "logprob", -v, n_ok=1, n_planned=1) for c, v in truth.items()]
    results.save_scores(db, audit.id, rows)
    html = render_html(build_report(db, "imported"))
    assert "m (direct)" in html
    assert "m (logprob)" in html


def test_every_cause_has_a_colour(html: str) -> None:
    for outcome in Outcome:
        name = "ok" if outcome is Outcome.OK else f"loss-{outcome}"
        assert f"rect.{name} {{" in html


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_heat_map_colours_have_enough_contrast(html: str, theme: str) -> None:
    """WCAG 2.2, 1.4.3: a contrast of at least 4.5 to 1."""
    style = html[html.index("<style>") : html.index("</style>")]
    light, dark = style.split("@media (prefers-color-scheme: dark)")[:2]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", light))
    if theme == "dark":
        colours |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", dark))
    for name in ("n4", "n3", "n2", "n1", "z", "p1", "p2", "p3", "p4"):
        ink = str(colours.get(f"on-{name}", colours["ink"]))
        assert _contrast(colours[name], ink) >= 4.5, name
    for ink, background in (("ink", "paper"), ("muted", "paper"), ("accent", "paper"), ("alert", "alert-soft")):
        assert _contrast(colours[ink], colours[background]) >= 4.5, ink


def _contrast(colour: str, background: str) -> float:
    low, high = sorted(map(_luminance, (colour, background)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_right_to_left_names_are_isolated() -> None:
    assert _isolate_rtl("valid of نموذج-أ (59%), b (61%)") == "valid of <bdi>نموذج-أ</bdi> (59%), b (61%)"
    assert _isolate_rtl("العالم العربي less أوروبا") == "<bdi>العالم العربي</bdi> less <bdi>أوروبا</bdi>"
    assert _isolate_rtl("a < b & <bdi>שלום</bdi>") == "a &lt; b &amp; &lt;bdi&gt;<bdi>שלום</bdi>&lt;/bdi&gt;"
    assert _isolate_rtl("only \u202eLatin") == "only \\u202eLatin"
