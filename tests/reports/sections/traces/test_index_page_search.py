"""The search of all answers has a filter for each thing that answers differ in, and a record for each answer."""

from __future__ import annotations

import pytest

from auditor.domain import Cell, Outcome
from auditor.reports.data.traces import CellTraces
from auditor.reports.sections.traces.index_page import build_records, build_search
from auditor.storage.count_queries import OutcomeCount
from tests.reports.sections.traces.test_cell_page_answer import trace as make_trace, verdict as make_verdict


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
        ([True, True], "all VALID"),
        ([True, False], "VALID and INVALID"),
        ([False, None], "all INVALID"),
        ([None], "no verdict"),
        ([], "no verdict"),
    ],
)
def test_verdicts_that_differ_are_a_choice(votes: list[bool | None], label: str) -> None:
    search = build_search(["m"], [Cell("Egypt", "x")], [OutcomeCount("m", "Egypt", "x", "ok", 1)])
    trace = make_trace(model="m", cell=Cell("Egypt", "x"), verdicts=[make_verdict(valid=vote) for vote in votes])
    (record,) = build_records(CellTraces(Cell("Egypt", "x"), None, None, [trace], {}), search, "1.html")
    assert search.filters[-1].options[record.choices[-1]] == label
