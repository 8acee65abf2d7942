"""The page: well-formed, without network, accessible, readable colours, and a search without other scripts."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import sys
from pathlib import Path

import pytest

from auditor.reports.document import (
    Callout,
    Disclosure,
    Document,
    Figure,
    HeatMap,
    List,
    ListItem,
    Name,
    Paragraph,
    Quote,
    Search,
    SearchFilter,
    SearchRecord,
    Section,
    Strong,
    Tag,
    Text,
)
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render import html as html_module
from auditor.reports.render.html import HtmlBlocks, load_search_script, render_html, write_search_page
from tests.reports.hostile_report import EVIL, NAME
from tests.support.html_page import Page, assert_well_formed_and_inert
from tests.support.known import known
from tests.support.sample_document import sample_document


@pytest.fixture(scope="module")
def html() -> str:
    return render_html(sample_document())


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_page_is_well_formed_and_needs_no_network_and_no_script(html: str, page: Page) -> None:
    assert_well_formed_and_inert(html)
    policy = known(next(m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"))
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
    for words in ("0.781¹<small>", "0.41²<small>", "78,7"):
        assert words in text


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


def test_a_document_without_sections_or_texts_is_a_page() -> None:
    assert_well_formed_and_inert(render_html(Document("", "", "", [])))
    html = render_html(Document("kind", "title", "", [Section("a", "A", [Paragraph("")], "A")]))
    assert_well_formed_and_inert(html)
    assert "<nav" not in html


def test_pages_without_figures_do_not_load_the_plot_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "auditor.reports.render.figures", None)
    assert "title" in render_html(Document("kind", "title", "", [Section("a", "A", [Paragraph("b")])]))


BLOCKS = HtmlBlocks({})
HEAT_MAP = HeatMap("Map", [], [], (0.1,), "low", "high", show_legend=False)


def test_findings_have_the_class_of_their_status_and_plain_lists_none() -> None:
    items: list[ListItem | Text] = [ListItem([Strong(Name("a")), " agrees."], "positive"), "b"]
    assert BLOCKS.render([List(items, is_findings=True)]) == (
        '<ul class="findings"><li class="positive"><strong><bdi>a</bdi></strong> agrees.</li>\n'
        '<li class="neutral">b</li></ul>'
    )
    assert BLOCKS.render([List(items)]).count("class=") == 0


def test_consecutive_quotes_are_side_by_side() -> None:
    html = BLOCKS.render([Quote("a", "x\n<y>"), Quote("b", "z", "note"), Paragraph("p"), Quote("c", "w")])
    assert html.count('<div class="sides">') == 2
    assert '<blockquote dir="auto">x\n&lt;y&gt;</blockquote>' in html
    assert html.index("z</blockquote>") < html.index('<p class="note">note</p>') < html.index("<p>p</p>")


def test_disclosures_of_heat_maps_are_side_by_side() -> None:
    html = BLOCKS.render([Disclosure("a", [HEAT_MAP]), Disclosure("b", [HEAT_MAP]), Disclosure("c", [Paragraph("p")])])
    assert html.count('<div class="plates">') == 1
    assert html.index("<span>b</span>") < html.index("</div>\n<details") < html.index("<span>c</span>")


def test_disclosures_say_whether_they_are_open_and_printed() -> None:
    body: list[Paragraph] = [Paragraph("p")]
    assert '<details class="plate" open>' in BLOCKS.render([Disclosure("a", body, is_open=True)])
    assert '<details class="plate print-closed">' in BLOCKS.render([Disclosure("a", body, in_print="closed")])
    html = BLOCKS.render([Disclosure("a", body, Name("d"), [Tag("open", "open")], in_print="hidden")])
    assert '<details class="row print-hidden">' in html
    assert '<span class="detail"><bdi>d</bdi></span> <span class="tag open">open</span></summary>' in html


def test_sections_within_sections_have_deeper_headings() -> None:
    html = BLOCKS.render([Section("a", "A", [Section("b", "B", [Section("c", "C", [])])], is_landscape=True)])
    assert '<section id="a" class="wide">\n<h2>A</h2>' in html
    assert '<section id="b">\n<h3>B</h3>' in html
    assert '<section id="c">\n<h4>C</h4>' in html


def test_callouts_without_a_title_have_none() -> None:
    assert BLOCKS.render([Callout("", [Paragraph("p")])]) == '<div class="callout" role="note"><p>p</p></div>'
    assert '<p class="title">T</p>' in BLOCKS.render([Callout("T", [])])


STYLESHEET = Path(html_module.__file__).with_name("page.css").read_text(encoding="utf-8")
MIN_CONTRAST = 4.5
TEXT_ON_BACKGROUND = [
    ("ink", "paper"), ("muted", "paper"), ("accent", "paper"), ("ink", "alert-soft"), ("muted", "alert-soft"),
    ("alert", "alert-soft"), ("accent", "alert-soft"), ("muted", "faint"), ("accent", "accent-soft"),
]  # fmt: skip
SHADES = ("n4", "n3", "n2", "n1", "z", "p1", "p2", "p3", "p4")


def read_colors(theme: str) -> dict[str, str]:
    """Colours of a theme by the name of their variable."""
    light, dark = STYLESHEET.split("@media screen and (prefers-color-scheme: dark)")
    pattern = re.compile(r"--([\w-]+): (#[0-9a-f]{3,6})")
    return dict(pattern.findall(light)) | (dict(pattern.findall(dark)) if theme == "dark" else {})


def contrast(color: str, background: str) -> float:
    """Contrast ratio of two colours."""
    low, high = sorted(map(luminance, (color, background)))
    return (high + 0.05) / (low + 0.05)


def luminance(color: str) -> float:
    """Relative luminance of a colour in hexadecimal digits."""
    digits = color[1:] if len(color) == 7 else "".join(2 * char for char in color[1:])
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_enough_contrast(theme: str) -> None:
    colors = read_colors(theme)
    for text, background in TEXT_ON_BACKGROUND:
        assert contrast(colors[text], colors[background]) >= MIN_CONTRAST, (text, background)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_values_in_heat_maps_have_enough_contrast(theme: str) -> None:
    colors = read_colors(theme)
    for shade in SHADES:
        assert contrast(colors.get(f"on-{shade}", colors["ink"]), colors[shade]) >= MIN_CONTRAST, shade


def test_every_shade_and_series_has_a_colour() -> None:
    for step in range(-4, 5):
        assert f".h{step} {{ background:" in STYLESHEET
    for i in range(11):
        assert f".c{i} {{ background:" in STYLESHEET


def test_every_variable_that_is_used_is_defined_in_both_themes() -> None:
    used = set(re.findall(r"var\(--([\w-]+)\)", STYLESHEET))
    dark_block = STYLESHEET.split("@media screen and (prefers-color-scheme: dark)")[1].split("\n}\n")[0]
    used -= {"n", "page"}  # numbers for print
    assert used <= set(read_colors("light"))
    assert used <= set(re.findall(r"--([\w-]+):", dark_block))


def test_no_type_on_screen_is_smaller_than_9_px() -> None:
    screen_rules = STYLESHEET.split("@media print")[0]
    sizes_rem = [float(size) for size in re.findall(r"font(?:-size)?: (\d*\.\d+)rem", screen_rules)]
    table, interval, note_mark = (
        float(re.findall(rf"^{selector} {{.*?font-size: (\d*\.\d+)r?em", screen_rules, re.MULTILINE)[0])
        for selector in ("table", "small", "sup")
    )
    assert 16 * min(sizes_rem) >= 9
    assert 16 * table * interval * note_mark >= 9


SEARCH = Search("Search", "Text", [SearchFilter("Model", ["a", NAME]), SearchFilter("Topic", ["x"])])
DOCUMENT = Document("Kind", "Title", "", [], search=SEARCH)


def write_page(groups: list[list[SearchRecord]]) -> str:
    """The page of a search with these groups of records."""
    file = io.StringIO()
    with write_search_page(DOCUMENT, file) as writer:
        for group in groups:
            writer.write(group)
    return file.getvalue()


def read_policy(html: str) -> str:
    """The content security policy of a page."""
    return next(str(meta["content"]) for meta in Page(html).all("meta") if "http-equiv" in meta)


def read_data(html: str) -> list[object]:
    """The blocks of data in a page."""
    return [json.loads(text) for text in re.findall(r'<script type="application/json" [^>]*>(.*?)</script>', html)]


def test_the_policy_allows_the_script_of_the_page_alone_and_no_connection() -> None:
    html = write_page([[SearchRecord(["a"], "", [], "text", [0, 0], "1.html")]])
    (script,) = Page(html).scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    directives = dict(part.strip().split(" ", 1) for part in read_policy(html).split(";"))
    assert directives["default-src"] == directives["connect-src"] == directives["form-action"] == "'none'"
    assert directives["script-src"] == f"'sha256-{digest}'"


def test_the_script_takes_texts_as_texts_only_and_makes_no_request() -> None:
    sinks = r"innerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|srcdoc|eval\(|Function\(|setAttribute"
    assert not re.search(sinks, load_search_script())
    assert not re.search(r"fetch|XMLHttp|WebSocket|import\b|sendBeacon|\.src\b", load_search_script())


def test_a_page_without_a_search_has_no_script_and_its_policy_none() -> None:
    html = render_html(Document("Kind", "Title", "", []))
    assert Page(html).all("script") == []
    assert read_policy(html) == (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_records_are_written_by_group_with_their_choices_at_the_end() -> None:
    record = SearchRecord(["a", "x"], "detail", [Tag("usable", "positive")], "a text", [0, 0], "1.html")
    html = write_page([[record, record], [], [SearchRecord([NAME], "", [], "", [1, 0], "2.html")]])
    first, second, index = read_data(html)
    assert first == [[["a", "x"], "detail", [["usable", "positive"]], "a text", "1.html"]] * 2
    assert isinstance(second, list)
    assert len(second) == 1
    assert index == {"sizes": [2, 1], "choices": [[0, 0, 1], [0, 0, 0]]}


def test_hostile_texts_cannot_end_their_block_and_are_visible() -> None:
    text = f"</script><script>alert(1)</script><!--<script>{EVIL}"
    html = write_page([[SearchRecord([NAME, EVIL], EVIL, [Tag(EVIL)], text, [1, 0], "1.html")]])
    assert_well_formed_and_inert(html, script=load_search_script())
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", html)
    assert "\\u003c/script>\\u003cscript>alert(1)" in html
    assert html.count("<script") == 3  # two blocks of data, one script
