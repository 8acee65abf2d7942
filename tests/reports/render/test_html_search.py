"""The search of a page: its policy allows its script alone, its records are data, and other pages have neither."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re

from auditor.reports.document import Document, Search, SearchFilter, SearchRecord, Tag
from auditor.reports.render.html import CONTENT_SECURITY_POLICY, load_search_script, render_html, write_search_page
from tests.reports.hostile_report import EVIL, NAME
from tests.support.html_page import Page, assert_well_formed_and_inert

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
    assert read_policy(html) == CONTENT_SECURITY_POLICY
    assert "script-src" not in CONTENT_SECURITY_POLICY


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
