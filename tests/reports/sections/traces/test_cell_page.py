"""A page has each model's answers, and each different prompt once."""

from __future__ import annotations

from auditor.domain import Cell, Message, Outcome, SentencePairScore, TaskItem
from auditor.reports.data.traces import CellTraces, SentencePairTrace
from auditor.reports.document import Disclosure, Name, Quote, Table
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.html import render_html
from auditor.reports.sections.traces.cell_page import PageAudit, PageLinks, build_cell_document
from tests.reports.sections.traces.test_cell_page_answer import trace

GERMAN = (Message("system", "Du"), Message("user", "Wie?"))


def test_each_different_prompt_is_shown_once() -> None:
    traces = [trace(), trace(sample=2), trace(model="n", messages=GERMAN), trace(model="n", sample=2, messages=())]
    cell_traces = CellTraces(Cell("Egypt", "divorce"), -0.5, None, traces, {"m": 0.3, "n": None})
    document = build_cell_document(cell_traces, PageAudit("a"), PageLinks(index="index.html"))
    assert [section.id for section in document.sections] == ["model-1", "model-2", "asked"]
    blocks = [*iterate_blocks(document)]
    assert [block.is_open for block in blocks if isinstance(block, Disclosure)] == [True, False, True, False]
    prompts = [block.text for block in blocks if isinstance(block, Quote) and block.heading != "Answer"]
    assert prompts == ["How?", "Du", "Wie?"]
    html = render_html(document)
    assert html.count('href="#prompt-1"') == 2
    assert html.count('href="#prompt-2"') == 1
    assert "What the model was asked is not recorded." in html
    assert "2 answers, 2 usable. Score +0.30, people’s −0.50." in html
    assert "Open conflicts" not in html


def test_an_item_has_its_text_options_and_correct_answer() -> None:
    item = TaskItem("q1", "Which?", "Once.", ("yes", "no"), "yes")
    answer = trace(cell=Cell("", "q1"), score=None, answer="yes", survey=None, correct_answer="yes")
    document = build_cell_document(
        CellTraces(item.cell, None, item, [answer], {"m": None}), PageAudit("a", 1, True), PageLinks()
    )
    html = render_html(document)
    assert "Once.\nWhich?\nA) yes\nB) no" in html
    assert ("correct answer", "yes") in next(block.items for block in document.opening if hasattr(block, "items"))
    assert "1 conflict of this audit is open." in html
    assert "worked example with simulated models" in document.kind
    assert "made by a program, not by a language model" in html


def test_comparisons_of_sentences_are_a_table_with_what_was_sent() -> None:
    cell = Cell("Egypt", "divorce")
    scores = [
        SentencePairScore("m", cell, 0, "right", "wrong", Outcome.OK, -0.25),
        SentencePairScore("m", cell, 1, "good", "bad", Outcome.NOT_MEASURABLE),
    ]
    comparisons = [SentencePairTrace(scores[0], "In Egypt divorce is"), SentencePairTrace(scores[1], "")]
    document = build_cell_document(
        CellTraces(cell, None, None, [], {}, comparisons), PageAudit("a"), PageLinks(index="index.html")
    )
    assert [section.id for section in document.sections] == ["logprob"]
    [table] = [block for block in iterate_blocks(document) if isinstance(block, Table)]
    assert [[str(value) for value in row[3:]] for row in table.rows if isinstance(row, tuple)] == [
        [str(Name("wrong")), "-0.25", "usable"],
        [str(Name("bad")), "None", "not measurable"],
    ]
    html = render_html(document)
    assert "In Egypt divorce is" in html
    assert "−0.25" in html
