"""The section on peer validity says that verdicts predict correctness only where an interval does."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.metrics.people.over_models import ModelCorrelation
from auditor.reports.data.report_schema import Report
from auditor.reports.data.task import JudgeValidityRow, PeerValidityReport, VerdictAccuracyRow
from auditor.reports.document import Section
from auditor.reports.sections.task import build_peer_validity_section
from tests.reports.hostile_report import NAME
from tests.reports.sections.block_access import cells_of
from tests.reports.sections.node_text import assert_consistent, findings_of, tables_of
from tests.reports.sections.test_task import make_task

MISSING = ModelCorrelation(None, 0, reason="no model has both")


def build(report: Report, **changes: object) -> Section:
    validity = PeerValidityReport(
        answers=9, area=None, area_within=None, verdicts=[], difference=None, closeness=None, models=MISSING, judges=[]
    ).model_copy(update=changes)
    section = build_peer_validity_section(report.model_copy(update={"task": make_task([], telling=validity)}))
    assert section is not None
    assert_consistent(section)
    return section


def test_no_section_without_verdicts_on_known_answers(report: Report) -> None:
    assert build_peer_validity_section(report) is None
    assert build_peer_validity_section(report.model_copy(update={"task": make_task([])})) is None


@pytest.mark.parametrize(
    ("area", "finding", "status"),
    [
        (Estimate(0.9, 9, 0.8, 0.95), "Verdicts separate {} (AUC = 0.90, 95% CI 0.80 to 0.95).", "positive"),
        (
            Estimate(0.2, 9, 0.1, 0.4),
            "Verdicts separate {} in the wrong direction (AUC = 0.20, 95% CI 0.10 to 0.40).",
            "negative",
        ),
        (
            Estimate(0.6, 9, 0.4, 0.8),
            "Verdicts are not shown to separate {} better than chance (AUC = 0.60, 95% CI 0.40 to 0.80).",
            "unclear",
        ),
        (
            Estimate(0.6, 9, reason="one item"),
            "How well the judges’ verdicts separate {}: AUC = 0.60, no 95% CI: one item.",
            "neutral",
        ),
        (
            Estimate(None, 0, reason="no pair"),
            "How well the judges’ verdicts separate {}: AUC not available: no pair.",
            "neutral",
        ),
    ],
)
def test_verdicts_separate_answers_only_if_the_interval_excludes_chance(
    report: Report, area: Estimate, finding: str, status: str
) -> None:
    assert findings_of(build(report, area=area))[0] == (finding.format("correct from incorrect answers"), status)


@pytest.mark.parametrize(
    ("correlation", "finding"),
    [
        (Estimate(0.8, 60, 0.6, 0.9), "are positively correlated (ρ = 0.80, 95% CI 0.60 to 0.90, 60 answers)."),
        (Estimate(-0.8, 60, -0.9, -0.6), "are negatively correlated (ρ = −0.80, 95% CI −0.90 to −0.60, 60 answers)."),
    ],
)
def test_closeness_is_correlated_only_if_the_interval_excludes_zero(
    report: Report, correlation: Estimate, finding: str
) -> None:
    subject = "Closeness of an answer to the truth and its share of VALID verdicts"
    texts = [text for text, _ in findings_of(build(report, closeness=correlation))]
    assert texts == [
        f"{subject} {finding}",
        "Share of VALID and correctness of models: r not available: no model has both; 0 models.",
    ]
    [unclear, _] = findings_of(build(report, closeness=Estimate(0.1, 60, -0.1, 0.3)))
    assert unclear == (
        f"{subject}: the correlation is not statistically distinguishable from zero "
        "(ρ = 0.10, 95% CI −0.10 to 0.30, 60 answers).",
        "unclear",
    )


def test_accuracy_by_verdict_and_by_judge_is_shown(report: Report) -> None:
    valid, invalid, difference = (
        ShareEstimate(0.9, 30, 0.8, 1.0),
        ShareEstimate(0.2, 10, 0.1, 0.4),
        Estimate(0.7, 40, 0.5, 0.9),
    )
    section = build(
        report,
        verdicts=[
            VerdictAccuracyRow(said="VALID", n=30, accuracy=valid),
            VerdictAccuracyRow(said="INVALID", n=10, accuracy=invalid),
        ],
        difference=difference,
        judges=[JudgeValidityRow(judge=NAME, right=valid, wrong=invalid, difference=difference)],
    )  # fmt: skip
    assert findings_of(section)[0] == (
        "90% of the answers judged VALID are correct, and 20% of those judged INVALID: a difference of +70 percentage "
        "points (95% CI +50 to +90).",
        "positive",
    )
    assert cells_of(tables_of(section)["verdict-accuracy"]) == [["VALID", valid], ["INVALID", invalid]]
    assert cells_of(tables_of(section)["judge-validity"]) == [[NAME, valid, invalid, difference]]


@pytest.mark.parametrize(
    ("correlation", "finding", "status"),
    [
        (
            ModelCorrelation(0.9, 6, reason="too few models: an interval needs at least 8", p_value=0.02, models=6),
            " are positively correlated (r = 0.90, p = 0.020, 6 models; no 95% CI: too few models: an interval needs "
            "at least 8).",
            "positive",
        ),
        (
            ModelCorrelation(-0.5, 9, -0.9, 0.2, None, ("model",), p_value=0.2, models=9),
            ": the correlation is not statistically distinguishable from zero (r = −0.50, 95% CI −0.90 to 0.20, "
            "p = 0.200, 9 models).",
            "unclear",
        ),
        (
            ModelCorrelation(-0.9, 9, -0.97, -0.6, None, ("family",), p_value=0.001, models=14),
            " are negatively correlated (r = −0.90, 95% CI −0.97 to −0.60, p = 0.001, 14 models of 9 families).",
            "negative",
        ),
    ],
)
def test_models_are_correlated_only_if_the_permutation_test_says_so(
    report: Report, correlation: ModelCorrelation, finding: str, status: str
) -> None:
    [item] = findings_of(build(report, models=correlation))[-1:]
    assert item == (f"Share of VALID and correctness of models{finding}", status)
