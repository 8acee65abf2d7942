"""The list and the search of all answers: links by place and outcome, and a filter for what answers differ in."""

from __future__ import annotations

import pytest

from auditor.domain import AnswerKind, Cell, Outcome, Ruling, Task, TaskItem
from auditor.reports.data.traces import CellTraces
from auditor.reports.document import Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.html import render_html
from auditor.reports.sections.traces.cell_page import PageAudit
from auditor.reports.sections.traces.index_page import (
    MAX_LINKS_PER_OUTCOME,
    build_index_document,
    build_records,
    build_search,
)
from auditor.storage.count_queries import OutcomeCount
from tests.reports.sections.traces.test_cell_page import trace as make_trace, verdict as make_verdict


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


def test_answers_are_filtered_by_model_place_outcome_and_verdicts() -> None:
    cells = [Cell("Egypt", "x"), Cell("Japan", "x")]
    counts = [OutcomeCount("b", *cells[0], "ok", 1), OutcomeCount("a", *cells[1], "refused", 1)]
    search = build_search(["a", "b", "unused"], cells, counts)
    options = {search_filter.label: list(search_filter.options) for search_filter in search.filters}
    assert list(options) == ["Model", "Country", "Topic", "Outcome", "Verdicts"]
    assert options["Model"] == ["a", "b"]
    assert options["Country"] == ["Egypt", "Japan"]
    assert options["Outcome"] == ["usable", "refused"]
    traces = [
        make_trace(
            model="a", cell=cells[1], sample=0, outcome=Outcome.REFUSED, score=None, text=None, error="HTTP 500"
        ),
        make_trace(model="b", cell=cells[1], sample=2, text="Because."),
    ]
    first, second = build_records(CellTraces(cells[1], None, None, traces, {}), search, "2.html")
    assert (first.title, first.text, first.page) == (("a", "x", "Japan", "answer 1"), "HTTP 500", "2.html#model-1")
    assert (second.title, second.text, second.page) == (("b", "x", "Japan", "answer 3"), "Because.", "2.html#model-2")
    assert first.choices[:4] == (0, 1, 0, 1)
    assert second.choices[:4] == (1, 1, 0, 0)


def test_an_audit_of_a_task_has_a_filter_by_item() -> None:
    search = build_search(["m"], [Cell("", "q1"), Cell("", "q2")], [OutcomeCount("m", "", "q2", "ok", 1)])
    assert [search_filter.label for search_filter in search.filters] == ["Model", "Item", "Outcome", "Verdicts"]
    trace = make_trace(model="m", cell=Cell("", "q2"), sample=0)
    (record,) = build_records(CellTraces(Cell("", "q2"), None, None, [trace], {}), search, "2.html")
    assert record.title == ("m", "q2", "answer 1")
    assert record.choices[:3] == (0, 1, 0)


@pytest.mark.parametrize(
    ("votes", "label"),
    [
        ([Ruling.VALID, Ruling.VALID], "all VALID"),
        ([Ruling.VALID, Ruling.INVALID], "VALID and INVALID"),
        ([Ruling.INVALID, None], "all INVALID"),
        ([None], "no verdict"),
        ([], "no verdict"),
    ],
)
def test_verdicts_that_differ_are_a_choice(votes: list[Ruling | None], label: str) -> None:
    search = build_search(["m"], [Cell("Egypt", "x")], [OutcomeCount("m", "Egypt", "x", "ok", 1)])
    trace = make_trace(model="m", cell=Cell("Egypt", "x"), verdicts=[make_verdict(ruling=vote) for vote in votes])
    (record,) = build_records(CellTraces(Cell("Egypt", "x"), None, None, [trace], {}), search, "1.html")
    assert search.filters[-1].options[record.choices[-1]] == label
