"""Reports and the search of all answers in a real browser: accessible, readable on a phone and on paper, in light and
in dark, and no hostile text runs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from html import unescape
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest

from auditor.domain import Outcome
from auditor.exports.traces import INDEX_FILE, write_trace_pages
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.document import List, ListItem, Paragraph
from auditor.reports.document.blocks import flatten_inline, iterate_blocks
from auditor.reports.output import render_report
from auditor.reports.sections.report import build_report_document
from auditor.storage import audits, results
from auditor.storage.database import open_database
from auditor.storage.records import save_records
from tests.reports.hostile_report import EVIL, hostile_report
from tests.support.chromium import REQUIRED_VARIABLE, Chromium, require_browser
from tests.support.synthetic_audit import populate

WIDTHS = (390, 1280)
PAGES = ("full", "brief", "single", "hostile")
TRACE_PAGES = ("cell", "cells", "hostile cell", "hostile cells")
PAGES_WITHOUT_PLOTS = ("brief", *TRACE_PAGES)
"""Pages of `report --traces`: one cell, and the list of all cells with the search; the same with hostile texts."""
MIN_FONT_SIZE_PX = 8.0

SIDEWAYS_SCRIPT = """(() => {
  const names = e => e.tagName + '.' + e.getAttribute('class') + '#' + e.id;
  const wide = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1
    && !e.closest('.scroll') && !e.closest('svg'));
  const scrolling = [...document.querySelectorAll('figure')].filter(e => e.scrollWidth > e.clientWidth + 1);
  return [...wide, ...scrolling].map(names);
})()"""
CLIPPED_SCRIPT = """(() => {
  const style = e => getComputedStyle(e);
  const hinted = e => style(e).backgroundAttachment.includes('local') && style(e).overflowX === 'auto';
  const clipped = [...document.querySelectorAll('main *')].filter(e => e.clientWidth
    && e.scrollWidth > e.clientWidth + 1 && style(e).overflowX !== 'visible'
    && !e.closest('svg') && !e.closest('.hidden') && !hinted(e));
  return clipped.map(e => e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 60));
})()"""
"""Elements whose content is cut, or scrolls without a hint at the edge."""
NARROW_SCRIPT = """(() => [...document.querySelectorAll('main :is(td, p, li)')].filter(e => {
  const words = e.innerText.trim().split(/\\s+/).length, range = document.createRange();
  range.selectNodeContents(e);
  const lines = new Set([...range.getClientRects()].map(r => Math.round(r.bottom / 4))).size;
  return e.checkVisibility() && words >= 8 && words < 2 * lines;
}).map(e => e.tagName + ': ' + e.innerText.slice(0, 80)))()"""
"""Cells and paragraphs with a word or two on each line."""
BROKEN_SCRIPT = """(() => {
  const broken = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; node = walker.nextNode();) if (node.parentElement.closest('summary'))
    for (const word of node.data.matchAll(/\\p{L}{4,20}/gu)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(r => Math.round(r.bottom / 4))).size > 1) broken.push(word[0]);
    }
  return broken;
})()"""
"""Words of headings that are broken over two lines."""
EMPTY_HEADINGS_SCRIPT = """[...document.querySelectorAll('details > .body')].filter(e => !e.offsetParent
  && e.parentElement.offsetParent).map(e => e.parentElement.innerText)"""
OPEN_ALL_SCRIPT = "for (const node of document.querySelectorAll('details')) node.open = true"
SMALL_TEXT_SCRIPT = """[...document.querySelectorAll('svg text')].filter(t => t.getBoundingClientRect().width > 0)
  .map(t => [parseFloat(getComputedStyle(t).fontSize), t.getScreenCTM()]).map(([s, m]) => s * Math.hypot(m.a, m.b))
  .filter(size => size < %s)"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The report of the synthetic audit, its brief report, that of one model, one of hostile texts, and traces."""
    folder = tmp_path_factory.mktemp("pages")
    with open_database(f"sqlite:///{folder}/audit.db") as db:
        name = populate(db, models=4, countries=6, topics=5).name
        report = build_report(db, name)
        single = build_report(db, populate(db, models=1, name="single").name)
        texts = {
            "full": render_report(report, "html"), "brief": render_report(report, "html", is_brief=True),
            "single": render_report(single, "html"), "hostile": render_report(hostile_report(db), "html"),
        }  # fmt: skip
        traces = write_trace_pages(db, name, folder / "traces", "full.html", max_pages=3)
        hostile = write_trace_pages(db, "hostile", folder / "hostile-traces", max_pages=1)
    for page, text in texts.items():
        (folder / f"{page}.html").write_text(text, encoding="utf-8")
    paths = {page: folder / f"{page}.html" for page in texts}
    for page, written in (("cell", traces), ("hostile cell", hostile)):
        paths[page] = folder / unquote(next(iter(written.links.by_cell.values())))
    return paths | {"cells": folder / traces.links.index, "hostile cells": folder / hostile.links.index}


@pytest.fixture(scope="module")
def axe() -> None:
    if reason := require_browser():
        pytest.skip(reason)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    if reason := require_browser(needs_axe=False):
        pytest.skip(reason)
    with Chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.mark.parametrize(
    ("name", "width", "is_dark"),
    [
        *((name, width, width == WIDTHS[0]) for name in ("full", "cell", "cells") for width in WIDTHS),
        *(("brief", 390, True), ("hostile", 390, True), ("hostile cells", 390, True)),
        *(("single", 1280, False), ("hostile cell", 1280, False)),
    ],
)
@pytest.mark.usefixtures("axe")
def test_axe_has_no_serious_finding(
    chromium: Chromium, pages: dict[str, Path], name: str, width: int, is_dark: bool
) -> None:
    chromium.open(pages[name], width, is_dark=is_dark)
    chromium.evaluate(OPEN_ALL_SCRIPT)
    violations = [
        f"{violation['id']}: {node['html'][:200]}: {node['failureSummary']}"
        for violation in chromium.run_axe()
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
    assert violations == []


@pytest.mark.usefixtures("axe")
def test_axe_notices_a_fault(chromium: Chromium, pages: dict[str, Path], tmp_path: Path) -> None:
    faulty = pages["brief"].read_text(encoding="utf-8").replace('<html lang="en">', "<html>")
    (tmp_path / "faulty.html").write_text(faulty, encoding="utf-8")
    chromium.open(tmp_path / "faulty.html", 1280)
    assert "html-has-lang" in {violation["id"] for violation in chromium.run_axe()}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [*PAGES, *TRACE_PAGES])
def test_pages_are_readable(chromium: Chromium, pages: dict[str, Path], name: str, width: int) -> None:
    """Only tables scroll sideways and none is clipped; labels and columns are wide enough, and headings in order."""
    chromium.open(pages[name], width)
    levels = chromium.evaluate("[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(h => Number(h.tagName[1]))")
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(level <= previous + 1 for previous, level in pairwise(levels))
    chromium.evaluate(OPEN_ALL_SCRIPT)
    assert chromium.evaluate("document.documentElement.scrollWidth") <= width
    assert chromium.evaluate(SIDEWAYS_SCRIPT) == []
    assert chromium.evaluate("document.querySelectorAll('svg text').length") > 10 or name in PAGES_WITHOUT_PLOTS
    assert chromium.evaluate(SMALL_TEXT_SCRIPT % MIN_FONT_SIZE_PX) == []
    if name in ("full", "single", "hostile"):
        assert chromium.evaluate(CLIPPED_SCRIPT) == []
    if name in ("full", "single"):  # names of the hostile report cannot be broken
        assert chromium.evaluate(NARROW_SCRIPT) == []


def test_the_policy_of_the_page_holds(chromium: Chromium, pages: dict[str, Path]) -> None:
    chromium.open(pages["hostile"], 1280)
    blocked = chromium.evaluate(
        "new Promise(resolve => {"
        "document.addEventListener('securitypolicyviolation', e => resolve(e.violatedDirective));"
        "const image = new Image(); image.src = 'http://127.0.0.1:9/x.png'; document.body.append(image); })"
    )
    assert blocked == "img-src"


def test_the_brief_report_is_one_printed_page(chromium: Chromium, pages: dict[str, Path]) -> None:
    chromium.open(pages["brief"], 1280)
    assert count_pages(chromium.print_pdf()) == 1
    chromium.open(pages["full"], 1280)
    assert count_pages(chromium.print_pdf()) > 5


def test_a_phone_breaks_no_word_of_a_conflict(chromium: Chromium, pages: dict[str, Path]) -> None:
    chromium.open(pages["full"], 390)
    cell, sides = "Nigeria · homosexuality", "western-everywhere +0.54 / inconsistent −0.99"
    chromium.evaluate(
        "const [title, detail] = document.querySelectorAll('.row > summary > span');"
        f"[title.textContent, detail.textContent] = {json.dumps([cell, sides])}"
    )
    assert chromium.evaluate(BROKEN_SCRIPT) == []


def test_paper_has_no_heading_without_its_content(chromium: Chromium, pages: dict[str, Path]) -> None:
    chromium.open(pages["full"], 1280)
    assert chromium.evaluate("document.querySelectorAll('.print-closed').length")
    chromium.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert chromium.evaluate(EMPTY_HEADINGS_SCRIPT) == []
    finally:
        chromium.call("Emulation.setEmulatedMedia", media="")


def test_a_missing_browser_fails_where_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv(REQUIRED_VARIABLE, raising=False)
    assert "chromium is not installed" in (require_browser() or "")
    monkeypatch.setenv(REQUIRED_VARIABLE, "1")
    with pytest.raises(RuntimeError, match="chromium is not installed"):
        require_browser()


def count_pages(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))


MAX_VISIBLE_WORDS = 5_500
MAX_WORDS = 8_500
MIN_REPEATED_WORDS = 8
_HIDDEN = re.compile(r"<(style|svg|title)\b.*?</\1>", re.DOTALL)
_TAG = re.compile(r"<(/?)(\w+)([^>]*)>|([^<]+)")


@pytest.fixture
def report(whole_report: Callable[[str], Report]) -> Report:
    return whole_report("worked example")


def count_words(html: str) -> tuple[int, int]:
    """Words of a page that are visible when it is opened, and all of them; labels of charts are left out."""
    n_visible = n_all = 0
    closed: list[bool] = []
    in_summary = False
    for end, tag, attributes, text in _TAG.findall(_HIDDEN.sub("", html)):
        if tag == "details":
            closed = closed[:-1] if end else [*closed, " open" not in attributes]
        elif tag == "summary":
            in_summary = not end
        n = len(unescape(text).split())
        n_all += n
        n_visible += n if sum(closed) - in_summary <= 0 else 0
    return n_visible, n_all


def test_words_are_counted_as_a_reader_sees_them() -> None:
    html = "<title>no</title><p>one two</p><details><summary>three</summary><p>four</p></details><details open><p>five"
    assert count_words(html) == (4, 5)


def test_the_full_report_is_short(report: Report) -> None:
    n_visible, n_all = count_words(render_report(report, "html"))
    assert n_visible <= MAX_VISIBLE_WORDS
    assert n_all <= MAX_WORDS


def test_no_text_is_repeated_and_no_markup_is_literal(report: Report) -> None:
    texts: list[str] = []
    for block in iterate_blocks(build_report_document(report)):
        match block:
            case Paragraph():
                texts.append(flatten_inline(block.content))
            case List():
                texts += [flatten_inline(item.content if isinstance(item, ListItem) else item) for item in block.items]
    repeated = [text for text, n in Counter(texts).items() if n > 1 and len(text.split()) >= MIN_REPEATED_WORDS]
    assert repeated == []
    html = re.sub(r"<(style|svg)\b.*?</\1>", "", render_report(report, "html"), flags=re.DOTALL)
    assert "`" not in html
    assert "\\_" not in html


STATUS = "document.getElementById('search-status').textContent"
ROWS = "[...document.querySelectorAll('#search-results summary')].map(row => row.innerText)"
CHOOSE = """(([label, option]) => {
  const labels = [...document.querySelectorAll('#search-form label')];
  const field = labels.find(node => node.firstChild.textContent.startsWith(label)).querySelector('select, input');
  if (field.tagName === 'INPUT') field.value = option;
  else field.value = [...field.options].find(node => node.text === option).value;
  field.dispatchEvent(new Event('input', {bubbles: true}));
})(%s)"""
VIOLATIONS = (
    "window.violations = []; document.addEventListener('securitypolicyviolation', e => violations.push(e.blockedURI))"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of the synthetic audit in `pages`, and of hostile texts in `hostile`."""
    folder = tmp_path_factory.mktemp("search")
    with open_database(f"sqlite:///{folder}/audit.db") as db:
        populate(db, models=2, countries=3, topics=3, judges=1)
        write_trace_pages(db, "population", folder / "pages")
        hostile_report(db)
        audit = audits.get_audit(db, "hostile")
        first = results.load_traces(db, audit.id)[0]
        text = f"</script><script>alert(1)</script><img src=x onerror=alert(2)>{EVIL}"
        save_records(db, audit.id, [type(first)(first.model, first.cell, 1, Outcome.OK, 0.0, text)])
        write_trace_pages(db, "hostile", folder / "hostile")
    return folder


def choose(chromium: Chromium, expected_status: str, **options: str) -> list[str]:
    """Choose options by the beginning of their labels, and return the titles of the answers that are shown."""
    chromium.evaluate(f"{STATUS} = ''" if options else "0")
    for label, option in options.items():
        chromium.evaluate(CHOOSE % json.dumps([label, option]))
    chromium.wait_for(f"{STATUS} === {json.dumps(expected_status)}")
    rows: list[str] = chromium.evaluate(ROWS)
    return rows


def test_answers_are_filtered_and_searched(chromium: Chromium, folder: Path) -> None:
    with open_database(f"sqlite:///{folder}/audit.db", create=False) as db:
        traces = results.load_traces(db, audits.get_audit(db, "population").id)
    n = len(traces)
    chromium.open(folder / "pages" / INDEX_FILE, 1280)
    choose(chromium, f"Found: {n} of {n}")
    of_model = [trace for trace in traces if trace.model == "alder"]
    choose(chromium, f"Found: {len(of_model)} of {n}", Model="alder")
    in_brazil = [trace for trace in of_model if trace.cell.country == "Brazil"]
    choose(chromium, f"Found: {len(in_brazil)} of {n}", Country="Brazil")
    usable = [trace for trace in in_brazil if trace.outcome is Outcome.OK]
    rows = choose(chromium, f"Found: {len(usable)} of {n}", Outcome="usable")
    assert 0 < len(rows) == len(usable) < len(in_brazil)
    assert all(row.startswith("alder · ") and "Brazil" in row for row in rows)
    matching = [trace for trace in usable if "norms: in brazil" in str(trace.text).lower()]
    choose(chromium, f"Found: {len(matching)} of {n}", Text="  NORMS: in brazil ")
    assert chromium.evaluate("[...document.querySelectorAll('mark')].map(m => m.textContent)")[0] == "Norms: in Brazil"
    assert choose(chromium, f"Found: 0 of {n}", Text="Norms. in") == []  # no pattern, but a text
    chromium.evaluate("document.querySelector('#search-form button').click()")
    choose(chromium, f"Found: {n} of {n}")
    n_of_topic = sum(trace.cell.topic == "divorce" for trace in traces)
    choose(chromium, f"Found: {n_of_topic} of {n}", Topic="divorce")


def test_verdicts_are_filtered_and_a_result_leads_to_its_page(chromium: Chromium, folder: Path) -> None:
    chromium.open(folder / "pages" / INDEX_FILE, 1280)
    chromium.wait_for(f"{STATUS}.startsWith('Found')")
    chromium.evaluate(CHOOSE % json.dumps(["Verdicts", "all INVALID"]))
    chromium.wait_for(f"{ROWS}.length > 0 && {ROWS}.every(row => row.includes('0 of 1 VALID'))")
    targets = chromium.evaluate("[...document.querySelectorAll('#search-results a')].map(a => a.getAttribute('href'))")
    assert {target.split("#")[0] for target in targets} <= {path.name for path in (folder / "pages").iterdir()}
    chromium.evaluate("document.querySelector('#search-results a').click()")
    chromium.wait_for("document.querySelector('h2:target, section:target h2') !== null")


def test_hostile_texts_are_shown_and_none_runs(chromium: Chromium, folder: Path) -> None:
    chromium.record_requests()
    n_requests = len(chromium.requested_urls)
    script = f"{VIOLATIONS}; window.nRun = 0; window.alert = () => nRun++"
    chromium.call("Page.enable")
    added = chromium.call("Page.addScriptToEvaluateOnNewDocument", source=script)
    page = folder / "hostile" / INDEX_FILE
    chromium.open(page, 390)
    choose(chromium, "Found: 1 of 13", Text="</script><script>alert(1)</script><IMG src=x onerror")
    chromium.evaluate("document.querySelector('#search-results summary').click()")
    text = chromium.evaluate("document.querySelector('#search-results blockquote').textContent")
    assert text.startswith("</script><script>alert(1)</script><img src=x onerror=alert(2)></style></title>")
    assert "\\u202edesrever" in text
    assert not {"\x1b", "\u202e", "\u2066"} & set(chromium.evaluate("document.body.textContent"))
    elements = chromium.evaluate("[...document.querySelectorAll('#search *')].map(node => node.tagName)")
    assert not {"SCRIPT", "IMG", "SVG", "IFRAME", "STYLE"} & set(elements)
    assert (chromium.evaluate("nRun"), chromium.evaluate("violations")) == (0, [])
    assert chromium.requested_urls[n_requests:] == [page.resolve().as_uri()]
    added_script = "const node = document.createElement('script'); node.append('nRun++'); document.body.append(node)"
    assert chromium.evaluate(f"{added_script}; nRun") == 0
    markup = "try { document.body.innerHTML = '<p>'; 'set' } catch { 'refused' }"
    assert chromium.evaluate(markup) == "refused"
    connection = "fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')"
    assert chromium.evaluate(connection) == "refused"
    assert chromium.evaluate("violations").count("http://127.0.0.1:9/") == 1
    chromium.call("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])


def test_without_javascript_the_pages_are_listed(chromium: Chromium, folder: Path) -> None:
    chromium.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chromium.open(folder / "pages" / INDEX_FILE, 390)
        assert chromium.evaluate("document.getElementById('search').checkVisibility()") is False
        assert chromium.evaluate("document.querySelectorAll('#countries a').length") > 5
        assert chromium.evaluate("document.body.innerText.includes('By country')")
    finally:
        chromium.call("Emulation.setScriptExecutionDisabled", value=False)
