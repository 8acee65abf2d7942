"""A page has each model’s answers with result, verdicts and cost, and each different prompt once."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from auditor.domain import Cell, Message, Outcome, Ruling, TaskItem, Trace, Verdict
from auditor.reports.data.traces import CellTraces, TraceReport, TraceVerdict
from auditor.reports.document import Disclosure, Quote, Section
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.render.html import render_html
from auditor.reports.sections.traces.cell_page import (
    OUTCOME_LABELS,
    OUTCOME_SENTENCES,
    PageAudit,
    PageLinks,
    build_answer_blocks,
    build_cell_document,
    build_prompt_blocks,
    tag_answer,
    title_answer,
)
from auditor.storage.ledger import CallTranscript
from tests.reports.sections.node_text import text_of


def trace(**changes: Any) -> TraceReport:
    """An answer with a score."""
    shown = TraceReport(
        trace=Trace("m", Cell("Egypt", "divorce"), 1, Outcome.OK, 0.25, key="k"),
        survey=-0.5,
        correct_answer=None,
        transcript=CallTranscript(
            (Message("user", "How?"),), "So.", "stop", "m-1", 10, 20, 0.002, 2, "2026-01-02T03:04:05.678+00:00", 1.25
        ),
        first_text=None,
        verdicts=[],
    )
    for name in ("transcript", "trace"):  # in this order, since both have a text
        record = getattr(shown, name)
        changed = {field.name: changes.pop(field.name) for field in fields(record) if field.name in changes}
        shown = shown.model_copy(update={name: replace(record, **changed)})
    return shown.model_copy(update=changes)


def verdict(**changes: Any) -> TraceVerdict:
    """A judge's vote."""
    vote = Verdict(
        "oak", "m", Cell("Egypt", "divorce"), 1, Outcome.OK, Ruling.VALID, "It follows.", confidence=0.8,
        shortened=True, aspects={"cultural_accuracy": True, "score_fit": False},
    )  # fmt: skip
    return TraceVerdict(verdict=replace(vote, **changes))


def text_of_answer(shown: TraceReport) -> str:
    """The text of an answer's blocks."""
    return text_of(Section("a", title_answer(shown), build_answer_blocks(shown)))


def test_every_outcome_has_words() -> None:
    for outcome in set(Outcome) - {Outcome.OK}:
        text = text_of_answer(trace(outcome=outcome, score=None))
        assert f"no score: {OUTCOME_LABELS[outcome]}" in text
        assert OUTCOME_SENTENCES[outcome]
        assert OUTCOME_SENTENCES[outcome] in text


def test_an_imported_file_without_an_answer_does_not_blame_the_provider() -> None:
    text = text_of_answer(trace(outcome=Outcome.CLIENT_ERROR, score=None, key=None))
    assert "no score: no response" in text
    assert "The imported file has no answer here, or says that the call failed." in text
    assert "reject" not in text
    lost = verdict(outcome=Outcome.CLIENT_ERROR, ruling=None, key=None)
    assert "oak: no verdict (no response)" in text_of_answer(trace(verdicts=[lost]))
    assert OUTCOME_SENTENCES[Outcome.TIMEOUT] in text_of_answer(trace(outcome=Outcome.TIMEOUT, score=None, key=None))


def test_an_answer_has_its_result_verdicts_and_cost() -> None:
    refused = verdict(
        judge="elm", outcome=Outcome.REFUSED, ruling=None, aspects={}, confidence=None, justification=None
    )
    shown = trace(verdicts=[verdict(), verdict(judge="fir", ruling=Ruling.INVALID), refused])
    text = text_of_answer(shown)
    assert "m on divorce in Egypt, answer 2: score +0.25, people’s −0.50" in text
    assert "1 of 2 judges voted VALID:" in text
    expected = (
        "oak: VALID (met: Cultural accuracy; not met: Score fits the reasoning; confidence 0.80): “It follows.” "
        "(shortened)"
    )
    assert expected in text
    assert "fir: INVALID" in text
    assert "elm: no verdict (refused)" in text
    assert (
        "Cost $0.0020, 10 + 20 tokens, 2 requests, 1.2 s, 2026-01-02 03:04:05 UTC, model version m-1, "
        "finish reason stop."
    ) in text
    assert [tag.text for tag in tag_answer(shown)] == ["usable", "1 of 2 VALID"]


def test_missing_records_are_named() -> None:
    bare = trace(
        text=None, messages=(), cost_usd=None, prompt_tokens=None, attempts=0, started_at=None,
        finish_reason=None, served_model=None,
    )  # fmt: skip
    assert "The text of the answer is not recorded." in text_of_answer(bare)
    assert "Cost not known." in text_of_answer(bare)
    assert "not recorded" in text_of(Section("p", "", build_prompt_blocks(bare.transcript.messages)))


def test_a_repeated_question_shows_both_answers_and_a_failure_its_error() -> None:
    repaired = text_of_answer(trace(first_text="Hm.", text="0.25"))
    assert repaired.index("Hm.") < repaired.index("0.25", repaired.index("Hm."))
    assert "No such model" in text_of_answer(
        trace(outcome=Outcome.CLIENT_ERROR, score=None, text=None, error="No such model")
    )


def test_an_item_of_a_task_has_an_answer_instead_of_a_score() -> None:
    item = trace(cell=Cell("", "q1"), score=None, answer="42", survey=None, correct_answer="42")
    assert "m on q1, answer 2: answer 42" in text_of_answer(item)


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
