"""The sections on a task compare accuracy with chance only as far as intervals allow, and list the hardest items."""

from __future__ import annotations

import pytest

from auditor.domain import AnswerKind, Cell
from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.reports.data.report_schema import Report
from auditor.reports.data.task import ScoreAccuracy, TaskItemReport, TaskModelRow, TaskReport
from auditor.reports.data.traces import TracePages
from auditor.reports.document import Figure, Link, Name, Section
from auditor.reports.sections.task import MAX_LISTED_ITEMS, build_items_section, build_task_section
from tests.reports.hostile_report import EVIL, NAME
from tests.reports.sections.block_access import cells_of
from tests.reports.sections.node_text import assert_consistent, findings_of, iterate_blocks, tables_of, text_of

MISSING = ShareEstimate(None, 0, reason="no item has a known truth")


def make_row(model: str, accuracy: ShareEstimate, **changes: object) -> TaskModelRow:
    row = TaskModelRow(
        model=model, planned=20, usable=20, accuracy=accuracy, bound_low=0.5, bound_high=0.6, commonest=accuracy,
        undecided=1, sample_agreement=MISSING, score=None,
    )  # fmt: skip
    return row.model_copy(update=changes)


def make_item(item: str, right: float | None, truth: str | None = "4") -> TaskItemReport:
    share = None if right is None else ShareEstimate(right, 3, 0.0, 1.0)
    return TaskItemReport(id=item, question=EVIL, truth=truth, right=share, answers={"m": "5", NAME: None})


def make_task(models: list[TaskModelRow], items: list[TaskItemReport] | None = None, **changes: object) -> TaskReport:
    task = TaskReport(
        source="sums.jsonl", kind=AnswerKind.CHOICE, range=None, tolerance=None, samples=2, chance=0.25, models=models,
        telling=None, items=[make_item("a", 0.5)] if items is None else items,
    )  # fmt: skip
    return task.model_copy(update=changes)


def build(report: Report, task: TaskReport) -> Section:
    section = build_task_section(report.model_copy(update={"task": task}))
    assert section is not None
    assert_consistent(section)
    return section


def build_items(report: Report, task: TaskReport) -> Section:
    section = build_items_section(report.model_copy(update={"task": task}))
    assert section is not None
    assert_consistent(section)
    return section


def test_an_audit_of_a_survey_has_no_such_sections(report: Report) -> None:
    assert build_task_section(report) is None
    assert build_items_section(report) is None


@pytest.mark.parametrize(
    ("accuracy", "comparison", "status"),
    [
        (ShareEstimate(0.8, 20, 0.6, 0.9), "80% of 20 answers (95% CI 60% to 90%), more often than by chance (25%)",
         "positive"),
        (ShareEstimate(0.1, 20, 0.0, 0.2), "10% of 20 answers (95% CI 0% to 20%), less often than by chance (25%)",
         "negative"),
        (ShareEstimate(0.3, 20, 0.1, 0.5),
         "30% of 20 answers (95% CI 10% to 50%), not statistically distinguishable from chance (25%)", "unclear"),
        (ShareEstimate(0.3, 2, reason="one item"), "30% of 2 answers (no 95% CI: one item)", "neutral"),
    ],
)  # fmt: skip
def test_accuracy_differs_from_chance_only_if_its_interval_does(
    report: Report, accuracy: ShareEstimate, comparison: str, status: str
) -> None:
    section = build(report, make_task([make_row("m", accuracy)]))
    assert findings_of(section) == [(f"m is correct in {comparison}.", status)]


def test_unusable_samples_bound_the_accuracy(report: Report) -> None:
    section = build(report, make_task([make_row("m", ShareEstimate(0.8, 20, 0.6, 0.9), usable=17)], chance=None))
    assert findings_of(section) == [
        (
            "m is correct in 80% of 20 answers (95% CI 60% to 90%); 3 of 20 samples are unusable: with them, accuracy "
            "would be between 50% and 60%.",
            "neutral",
        )
    ]


def test_models_are_listed_best_first_and_unknown_ones_last(report: Report) -> None:
    rows = [
        make_row(NAME, MISSING),
        make_row("b", ShareEstimate(0.3, 9, 0.2, 0.4)),
        make_row("c", ShareEstimate(0.6, 9, 0.5, 0.7)),
    ]
    findings = [text for text, _ in findings_of(build(report, make_task(rows)))]
    assert [text.split(" is correct")[0] for text in findings] == [
        "c", "b", f"{NAME} has no accuracy: no item has a known truth.",
    ]  # fmt: skip


def test_scores_have_their_distance_from_the_truth(report: Report) -> None:
    r, mae = Estimate(0.6, 10, 0.1, 0.9), Estimate(6.0, 10, 1.0, 11.0)
    score = ScoreAccuracy(pearson_r=r, spearman_rho=r, mae=mae, bias=mae, spread=mae)
    rows = [make_row("m", MISSING, score=score), make_row("n", MISSING)]
    section = build(report, make_task(rows, kind=AnswerKind.SCORE, range=(0, 200), tolerance=2, chance=None))
    assert findings_of(section)[0][0] == (
        "m differs from the truth by 6.00 on average (95% CI 1.00 to 11.00, 10 items); its scores correlate with the "
        "truth (r = 0.60, 95% CI 0.10 to 0.90)."
    )
    assert cells_of(tables_of(section)["task-accuracy"])[0] == [
        "m", MISSING, MISSING, 1, MISSING, 20, 20, r, r, mae, mae, mae
    ]  # fmt: skip
    assert "a number in a range from 0 to 200" in text_of(section)
    assert "differs from the known answer by at most 2." in text_of(section)
    assert not [block for block in iterate_blocks(section) if isinstance(block, Figure)]


@pytest.mark.parametrize(
    ("truths", "sentence"),
    [
        (("4", "5"), "The correct answer to each item is known."),
        (("4", None), "The correct answer is known for 1 item; accuracy is measured on these only."),
        ((None, None), "No correct answer is known, so accuracy is not available."),
    ],
)
def test_the_number_of_known_answers_is_stated(report: Report, truths: tuple[str | None, ...], sentence: str) -> None:
    items = [make_item(str(i), None, truth) for i, truth in enumerate(truths)]
    assert sentence in text_of(build(report, make_task([make_row("m", MISSING)], items)))


def test_items_are_listed_hardest_first_and_unknown_ones_last(report: Report) -> None:
    items = [make_item("easy", 1.0), make_item("unknown", None, None), make_item("hard", 0.1)]
    table = tables_of(build_items(report, make_task([make_row("m", MISSING), make_row(NAME, MISSING)], items)))[
        "task-items"
    ]
    assert table.rows == [
        ["hard", Name(EVIL), Name("4"), 0.1, Name("5"), None],
        ["easy", Name(EVIL), Name("4"), 1.0, Name("5"), None],
        ["unknown", Name(EVIL), "not known", None, Name("5"), None],
    ]


def test_a_long_list_of_items_says_that_it_is_cut(report: Report) -> None:
    items = [make_item(str(i), 0.5) for i in range(MAX_LISTED_ITEMS + 1)]
    section = build_items(report, make_task([], items))
    assert len(tables_of(section)["task-items"].rows) == MAX_LISTED_ITEMS
    assert "Listed are 60 items of 61; the JSON report has all." in text_of(section)


def test_items_link_to_their_answers(report: Report) -> None:
    pages = TracePages("t/index.html", {Cell("", "a"): "t/1-a.html"})
    task = make_task([], [make_item("a", 0.5), make_item("b", 0.5)])
    [table] = tables_of(build_items(report.with_trace_pages(pages), task)).values()
    assert [cells[0] for cells in cells_of(table)] == [Link("a", page="t/1-a.html"), "b"]
