"""The full report of the worked example is short and says nothing twice; it has every estimate (test_report.py).

`golden/databases/worked_example.tar.xz` holds its audit: `auditor demo` made it, and the database has been compressed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from html import unescape

import pytest

from auditor.reports.data.report_schema import Report
from auditor.reports.document import List, ListItem, Paragraph
from auditor.reports.document.blocks import flatten_inline, iterate_blocks
from auditor.reports.output import render_report
from auditor.reports.sections.report import build_report_document

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
