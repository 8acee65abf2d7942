"""Accuracy is compared with chance, and verdicts with correctness, only as far as intervals and tests allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from auditor.domain import AnswerKind, Task
from auditor.metrics.intervals.estimate import Estimate, ShareEstimate, Tested, TestedShare
from auditor.metrics.people.over_models import ModelCorrelation
from auditor.reports.data.report_schema import Report
from auditor.reports.data.task import (
    PeerValidityReport,
    ScoreAccuracy,
    TaskItemReport,
    TaskModelRow,
    TaskReport,
    VerdictAccuracyRow,
)
from auditor.reports.document import Name, Section
from auditor.reports.sections.task import (
    MAX_LISTED_ITEMS,
    build_items_section,
    build_peer_validity_section,
    build_task_section,
)
from tests.reports.hostile_report import EVIL, NAME
from tests.reports.sections.node_text import assert_consistent, findings_of, tables_of, text_of, titled_cells_of
from tests.support.known import known
from tests.support.report_changes import change

MISSING = ShareEstimate(None, 0, reason="no item has a known truth")
RIGHT = ShareEstimate(0.8, 20, 0.6, 0.9)


def make_row(
    model: str, accuracy: ShareEstimate, adjusted_p_value: float | None = 0.01, **changes: Any
) -> TaskModelRow:
    row = TaskModelRow(
        model=model, planned=20, usable=20, accuracy=TestedShare(**asdict(accuracy), adjusted_p_value=adjusted_p_value),
        chance=0.25, bound_low=0.5, bound_high=0.6,
        commonest=accuracy, undecided=1, sample_agreement=MISSING, score=None,
    )  # fmt: skip
    return change(row, **changes)


def make_item(item: str, right: float | None, truth: str | None = "4") -> TaskItemReport:
    share = None if right is None else ShareEstimate(right, 3, 0.0, 1.0)
    return TaskItemReport(id=item, question=EVIL, truth=truth, right=share, answers={"m": "5", NAME: None})


def make_task(models: list[TaskModelRow], items: list[TaskItemReport] | None = None, **changes: Any) -> TaskReport:
    task = TaskReport(
        task=Task("sums.jsonl", AnswerKind.CHOICE, ""), samples=2, chance=0.25, models=models,
        telling=None, items=[make_item("a", 0.5)] if items is None else items,
    )  # fmt: skip
    return change(task, **changes)


def build(
    report: Report, task: TaskReport, builder: Callable[[Report], Section | None] = build_task_section
) -> Section:
    section = known(builder(change(report, task=task)))
    assert_consistent(section)
    return section


@pytest.mark.parametrize(
    ("accuracy", "p_value", "comparison", "status"),
    [
        (RIGHT, 0.04, "80% of 20 answers (95% CI 60% to 90%), more often than by chance (25%)", "positive"),
        (ShareEstimate(0.1, 20, 0.0, 0.2), 0.04,
         "10% of 20 answers (95% CI 0% to 20%), less often than by chance (25%)", "negative"),
        (ShareEstimate(0.3, 20, 0.1, 0.5), 0.6,
         "30% of 20 answers (95% CI 10% to 50%), not statistically distinguishable from chance (25%)", "unclear"),
        (RIGHT, 0.06,
         "80% of 20 answers (95% CI 60% to 90%), not statistically distinguishable from chance (25%)", "unclear"),
        (ShareEstimate(0.3, 2, reason="one item"), None, "30% of 2 answers (no 95% CI: one item)", "neutral"),
    ],
)  # fmt: skip
def test_accuracy_differs_from_chance_only_given_the_number_of_models(
    report: Report, accuracy: ShareEstimate, p_value: float | None, comparison: str, status: str
) -> None:
    section = build(report, make_task([make_row("m", accuracy, p_value)]))
    assert findings_of(section) == [(f"m is correct in {comparison}.", status)]


def test_unusable_samples_bound_the_accuracy(report: Report) -> None:
    [(finding, status)] = findings_of(build(report, make_task([make_row("m", RIGHT, None, usable=17, chance=None)])))
    assert status == "neutral"
    assert finding == (
        "m is correct in 80% of 20 answers (95% CI 60% to 90%); 3 of 20 samples are unusable: with them, accuracy "
        "would be between 50% and 60%."
    )


def test_models_are_listed_best_first_and_unknown_ones_last(report: Report) -> None:
    rows = [make_row(NAME, MISSING), make_row("b", ShareEstimate(0.3, 9, 0.2, 0.4)), make_row("c", RIGHT)]
    findings = [text.split(" is correct")[0] for text, _ in findings_of(build(report, make_task(rows)))]
    assert findings == ["c", "b", f"{NAME} has no accuracy: no item has a known truth."]


def test_scores_have_their_distance_from_the_truth(report: Report) -> None:
    r, mae = Estimate(0.6, 10, 0.1, 0.9), Estimate(6.0, 10, 1.0, 11.0)
    score = ScoreAccuracy(pearson_r=r, spearman_rho=r, mae=mae, bias=mae, spread=mae)
    rows = [make_row("m", MISSING, score=score), make_row("n", MISSING)]
    task = Task("sums.jsonl", AnswerKind.SCORE, "", (0, 200), tolerance=2)
    section = build(report, make_task(rows, task=task, chance=None))
    assert findings_of(section)[0][0] == (
        "m differs from the truth by 6.00 on average (95% CI 1.00 to 11.00, 10 items); correlation of its scores with "
        "the truth: r = 0.60, 95% CI 0.10 to 0.90."
    )
    assert "a number in a range from 0 to 200" in text_of(section)
    assert "differs from the known answer by at most 2." in text_of(section)


def test_scores_are_not_stated_to_correlate_with_the_truth_by_chance(report: Report) -> None:
    r, mae = Estimate(0.02, 10, -0.6, 0.7), Estimate(6.0, 10, 1.0, 11.0)
    score = ScoreAccuracy(pearson_r=r, spearman_rho=r, mae=mae, bias=mae, spread=mae)
    task = Task("sums.jsonl", AnswerKind.SCORE, "", (0, 200), tolerance=2)
    section = build(report, make_task([make_row("m", MISSING, score=score)], task=task, chance=None))
    assert "correlate with the truth" not in findings_of(section)[0][0]


def test_the_number_of_known_answers_is_stated(report: Report) -> None:
    for truths, sentence in (
        (("4", "5"), "The correct answer to each item is known."),
        (("4", None), "The correct answer is known for 1 item; accuracy is measured on these only."),
        ((None, None), "No correct answer is known, so accuracy is not available."),
    ):
        items = [make_item(str(i), None, truth) for i, truth in enumerate(truths)]
        assert sentence in text_of(build(report, make_task([make_row("m", MISSING)], items)))


def test_items_are_listed_hardest_first_and_unknown_ones_last(report: Report) -> None:
    items = [make_item("easy", 1.0), make_item("unknown", None, None), make_item("hard", 0.1)]
    task = make_task([make_row("m", MISSING), make_row(NAME, MISSING)], items)
    rows = titled_cells_of(tables_of(build(report, task, build_items_section))["task-items"])
    assert [(row["Item"], row["Correct answer"]) for row in rows] == [
        ("hard", Name("4")), ("easy", Name("4")), ("unknown", "not known"),
    ]  # fmt: skip
    assert {(row["Question"], row["m"], row[NAME]) for row in rows} == {(Name(EVIL), Name("5"), None)}
    many_items = make_task([], [make_item(str(i), 0.5) for i in range(MAX_LISTED_ITEMS + 1)])
    many = build(report, many_items, build_items_section)
    assert len(tables_of(many)["task-items"].rows) == MAX_LISTED_ITEMS
    assert "Listed are 60 items of 61; the JSON report has all." in text_of(many)


def test_no_section_without_verdicts_on_known_answers(report: Report) -> None:
    assert build_peer_validity_section(report) is None
    assert build_peer_validity_section(change(report, task=make_task([]))) is None


PAIR = "correct from incorrect answers"
CLOSENESS = "Closeness of an answer to the truth and its share of VALID verdicts"
MODELS = "Share of VALID and correctness of models"
FEW_MODELS = "an interval needs 8"


def make_test(value: float, n: int, ci_low: float, ci_high: float, adjusted_p_value: float) -> Tested:
    return Tested(value, n, ci_low, ci_high, adjusted_p_value=adjusted_p_value)


@pytest.mark.parametrize(
    ("changes", "finding", "status"),
    [
        ({"area": make_test(0.9, 9, 0.8, 0.95, 0.01)},
         f"Verdicts separate {PAIR} (AUC = 0.90, 95% CI 0.80 to 0.95).", "positive"),
        ({"area": make_test(0.2, 9, 0.1, 0.4, 0.01)},
         f"Verdicts separate {PAIR} in the wrong direction (AUC = 0.20, 95% CI 0.10 to 0.40).", "negative"),
        ({"area": make_test(0.6, 9, 0.4, 0.8, 0.4)},
         f"Verdicts are not shown to separate {PAIR} better than chance (AUC = 0.60, 95% CI 0.40 to 0.80).", "unclear"),
        ({"area": Tested(0.6, 9, reason="one item")},
         f"How well the judges’ verdicts separate {PAIR}: AUC = 0.60, no 95% CI: one item.", "neutral"),
        ({"area": Tested(None, 0, reason="no pair")},
         f"How well the judges’ verdicts separate {PAIR}: AUC not available: no pair.", "neutral"),
        ({"area": make_test(0.6, 9, 0.51, 0.7, 0.09)},
         f"Verdicts are not shown to separate {PAIR} better than chance (AUC = 0.60, 95% CI 0.51 to 0.70; not beyond "
         "chance given all tests of this kind, p = 0.09).", "unclear"),
        ({"closeness": make_test(0.8, 60, 0.6, 0.9, 0.001)},
         f"{CLOSENESS} are positively correlated (ρ = 0.80, 95% CI 0.60 to 0.90, 60 answers).", "positive"),
        ({"closeness": make_test(-0.8, 60, -0.9, -0.6, 0.001)},
         f"{CLOSENESS} are negatively correlated (ρ = −0.80, 95% CI −0.90 to −0.60, 60 answers).", "negative"),
        ({"closeness": make_test(0.1, 60, -0.1, 0.3, 0.3)},
         f"{CLOSENESS}: the correlation is not statistically distinguishable from zero (ρ = 0.10, 95% CI −0.10 to "
         "0.30, 60 answers).", "unclear"),
        ({"models": ModelCorrelation(0.9, 6, reason=FEW_MODELS, p_value=0.02, adjusted_p_value=0.04, models=6)},
         f"{MODELS} are positively correlated (r = 0.90, p = 0.020, 6 models; no 95% CI: an interval needs 8).",
         "positive"),
        ({"models": ModelCorrelation(-0.5, 9, -0.9, 0.2, None, ("model",), p_value=0.2, adjusted_p_value=0.4,
                                     models=9)},
         f"{MODELS}: the correlation is not statistically distinguishable from zero (r = −0.50, 95% CI −0.90 to 0.20, "
         "p = 0.200, 9 models).", "unclear"),
        ({"models": ModelCorrelation(-0.9, 9, -0.97, -0.6, None, ("family",), p_value=0.001, adjusted_p_value=0.002,
                                     models=14)},
         f"{MODELS} are negatively correlated (r = −0.90, 95% CI −0.97 to −0.60, p = 0.001, 14 models of 9 families).",
         "negative"),
        ({"verdicts": [VerdictAccuracyRow(said="VALID", n=30, accuracy=ShareEstimate(0.9, 30, 0.8, 1.0)),
                       VerdictAccuracyRow(said="INVALID", n=10, accuracy=ShareEstimate(0.2, 10, 0.1, 0.4))],
          "difference": Estimate(0.7, 40, 0.5, 0.9)},
         "90% of the VALID verdicts are on correct answers, and 20% of the INVALID ones: a difference of +70 "
         "percentage points (95% CI +50 to +90).", "neutral"),
        ({"models": ModelCorrelation(0.9, 6, reason=FEW_MODELS, p_value=0.02, adjusted_p_value=0.06, models=6)},
         f"{MODELS}: the correlation is not statistically distinguishable from zero (r = 0.90, p = 0.020, 6 models; no "
         "95% CI: an interval needs 8; not beyond chance given all tests of this kind, p = 0.06).", "unclear"),
        ({}, f"{MODELS}: r not available: no model has both; 0 models.", "neutral"),
    ],
)  # fmt: skip
def test_verdicts_predict_correctness_only_where_an_interval_or_a_test_says_so(
    report: Report, changes: dict[str, Any], finding: str, status: str
) -> None:
    validity = PeerValidityReport(
        answers=9, area=None, area_within=None, verdicts=[], difference=None, closeness=None, judges=[],
        models=ModelCorrelation(None, 0, reason="no model has both"),
    )  # fmt: skip
    section = build_peer_validity_section(change(report, task=make_task([], telling=change(validity, **changes))))
    assert_consistent(section)
    assert (finding, status) in findings_of(section)
