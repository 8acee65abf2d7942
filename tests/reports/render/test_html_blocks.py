"""Blocks of the page: what is set side by side, what is printed, and the status of findings."""

from __future__ import annotations

from auditor.reports.document import (
    Callout,
    Disclosure,
    HeatMap,
    List,
    ListItem,
    Name,
    Paragraph,
    Quote,
    Section,
    Strong,
    Tag,
    Text,
)
from auditor.reports.render.html import HtmlBlocks

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
