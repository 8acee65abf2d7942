"""The full report of the worked example is short, says nothing twice, and still has every estimate of the JSON report.

`golden/databases/worked_example.tar.xz` holds its audit: `auditor demo` made it, and the database has been compressed.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from html import unescape
from pathlib import Path

import pytest
from pydantic import BaseModel

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Footnoted, List, ListItem, Paragraph, Table
from auditor.reports.document.blocks import flatten_inline, iterate_blocks
from auditor.reports.output import render_report
from auditor.reports.sections.report import build_report_document
from auditor.storage.database import open_database
from tests.support.document_figures import assert_figures_are_shown, iterate_cells

ARCHIVE = Path(__file__).with_name("golden") / "databases" / "worked_example.tar.xz"
NAME = "simulated-demo"
MAX_VISIBLE_WORDS = 5_500
MAX_WORDS = 8_500
MIN_REPEATED_WORDS = 8
NOT_IN_TABLES = re.compile(
    r"_simultaneous$|^\.conflicts\.(third_quartile|settled|within_noise)$|^\.(cultural_findings|shortfalls|refusals)\."
    r"|^\.(countries|topics)\.(mae_ratio|pearson_r)$"
)
"""Estimates that sentences or heat maps have: intervals that hold jointly and ratios, of which the largest is named; r
by country; shares of conflicts; selected findings; and refusals, whose tables are left out where there is none."""
_HIDDEN = re.compile(r"<(style|svg|title)\b.*?</\1>", re.DOTALL)
_TAG = re.compile(r"<(/?)(\w+)([^>]*)>|([^<]+)")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("worked example")
    shutil.unpack_archive(ARCHIVE, folder, filter="data")
    storage = f"sqlite:///{folder}/audits.db"
    with open_database(storage) as db:
        return build_report(db, NAME)


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


def iterate_estimates(node: object, path: str = "") -> Iterator[tuple[str, Estimate]]:
    """Every estimate within a part of a report, with its path without positions."""
    if isinstance(node, Estimate):
        yield path, node
    if isinstance(node, BaseModel):
        for name in type(node).model_fields:
            yield from iterate_estimates(getattr(node, name), f"{path}.{name}")
    elif is_dataclass(node):
        for field in fields(node):
            yield from iterate_estimates(getattr(node, field.name), f"{path}.{field.name}")
    elif isinstance(node, dict):
        for value in node.values():
            yield from iterate_estimates(value, path)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from iterate_estimates(value, path)


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


def test_every_estimate_is_printed_with_its_n_and_interval_in_every_form(report: Report) -> None:
    document = build_report_document(report)
    assert_figures_are_shown(document)
    shown = set()
    for table in iterate_blocks(document):
        if isinstance(table, Table):
            for _, _, cell in iterate_cells(table):
                figure = cell.figure if isinstance(cell, Footnoted) else cell
                if isinstance(figure, Estimate):
                    shown.add((figure.value, figure.ci_low, figure.ci_high, figure.n))
    missing = Counter(
        path
        for path, estimate in iterate_estimates(report)
        if estimate.value is not None
        and not NOT_IN_TABLES.search(path)
        and (estimate.value, estimate.ci_low, estimate.ci_high, estimate.n) not in shown
    )
    assert missing == {}
