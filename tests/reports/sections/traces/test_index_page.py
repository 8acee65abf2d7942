"""The list of pages has links by country and topic, or by item, and to the answers that are not usable."""

from __future__ import annotations

from auditor.domain import AnswerKind, Cell, Task, TaskItem
from auditor.reports.document import Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.html import render_html
from auditor.reports.sections.traces.cell_page import PageAudit
from auditor.reports.sections.traces.index_page import MAX_LINKS_PER_OUTCOME, build_index_document
from auditor.storage.count_queries import OutcomeCount


def test_pages_are_listed_by_country_topic_and_outcome() -> None:
    pages = {Cell("Egypt", "divorce"): "1.html", Cell("Egypt", "x"): "2.html", Cell("Japan", "x"): "3.html"}
    counts = [OutcomeCount("m", *cell, "ok", 2) for cell in pages] + [OutcomeCount("m", "Japan", "x", "refused", 3)]
    document = build_index_document(PageAudit("a"), pages, counts, None, n_omitted_cells=2)
    assert [section.id for section in document.sections] == ["countries", "topics", "outcomes"]
    html = render_html(document)
    assert '<a href="1.html">divorce</a> · <a href="2.html">x</a>' in html
    assert '<a href="2.html">Egypt</a> · <a href="3.html">Japan</a>' in html
    assert '<a href="3.html">x, Japan</a>' in html
    assert html.count('href="3.html"') == 3
    assert "2 cells have no page" in html


def test_items_are_listed_and_links_by_outcome_are_limited() -> None:
    items = {f"q{i}": TaskItem(f"q{i}", f"Which {i}?") for i in range(MAX_LINKS_PER_OUTCOME + 5)}
    pages = {item.cell: f"{item.id}.html" for item in items.values()}
    counts = [OutcomeCount("m", "", item_id, "timeout", 1) for item_id in items]
    document = build_index_document(PageAudit("a"), pages, counts, Task("f", AnswerKind.EXACT, "d", items=items))
    assert [table.id for table in iterate_blocks(document) if isinstance(table, Table)] == ["items", "outcomes"]
    html = render_html(document)
    assert html.count('<a href="q1.html">q1</a>') == 2
    assert "Which 3?" in html
    assert " and 5 more" in html
