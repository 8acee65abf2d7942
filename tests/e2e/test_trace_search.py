"""The search of all answers in a real browser: filters, texts, hostile texts, and a page without JavaScript."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.domain import Outcome
from auditor.exports.traces import INDEX_FILE, write_trace_pages
from auditor.storage import audits, results
from auditor.storage.database import open_database
from auditor.storage.records import save_records
from tests.reports.hostile_report import EVIL, hostile_report
from tests.support.chromium import Chromium, require_browser
from tests.support.synthetic_audit import populate

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


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    if reason := require_browser(needs_axe=False):
        pytest.skip(reason)
    with Chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


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
