"""Weaknesses of the models are named where a threshold is passed, and are apart from the reasons for caution."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.metrics.estimate import Estimate, Tested
from auditor.reports.data.report_schema import Report
from auditor.reports.sections.agreement import build_agreement_section
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.weaknesses import list_weaknesses
from tests.reports.sections.node_text import text_of


def test_each_check_names_the_models_that_fail_it(report: Report) -> None:
    varying_consistency = report.self_consistency[0].model_copy(
        update={"variance": Estimate(value=0.2, n=9, ci_low=0.1, ci_high=0.3)}
    )
    low_agreement = report.peer_agreement[0].model_copy(
        update={"agreement": Estimate(value=0.6, n=9, ci_low=0.3, ci_high=0.8)}
    )
    estimate = Tested(0.2, 9, 0.1, 0.3, adjusted_p_value=0.04)
    gap = report.regions.gaps[0].model_copy(update={"mae_gap": estimate, "worst_case": None})
    large_error = Estimate(value=0.9, n=9, ci_low=0.8, ci_high=1.0)
    topics = [
        report.topics[0].model_copy(update={"name": "divorce", "model": model, "method": method, "mae": large_error})
        for model in ("alder", "birch")
        for method in ("direct", "logprob")
    ]
    update = {
        "self_consistency": [varying_consistency],
        "peer_agreement": [low_agreement],
        "regions": report.regions.model_copy(update={"gaps": [gap]}),
        "topics": topics,
    }
    weak_report = report.model_copy(update=update)
    assert list_weaknesses(weak_report) == [
        "The mean absolute error is larger in Non-Western than in Western countries for alder (by 0.20).",
        "The measured mean absolute error is above 0.4 for alder (1 of 1 topic, most on divorce: 0.90), birch (1 of 1 "
        "topic, most on divorce: 0.90).",
        "The mean variance of the samples of a cell is above 0.12 for alder (0.20).",
        "Less than 70% of the verdicts are VALID for alder (60% of 9 verdicts).",
    ]
    assert not set(list_weaknesses(weak_report)) & set(list_cautions(weak_report))
    agreement = build_agreement_section(weak_report)
    assert agreement is not None
    [section] = [block for block in agreement.blocks if getattr(block, "id", "") == "weaknesses"]
    assert "for alder (1 of 1 topic, most on divorce: 0.90)" in text_of(section)


@pytest.mark.parametrize(("bound_low", "is_warned"), [(-0.1, False), (0.1, True)])
def test_a_gap_whose_sign_lost_samples_leave_open_is_no_weakness(
    report: Report, bound_low: float, is_warned: bool
) -> None:
    gap = report.regions.gaps[0]
    assert gap.worst_case is not None
    bounded = replace(gap.worst_case.mae, value=0.2, reason="too few", bound_low=bound_low, bound_high=0.3)
    worst_case = gap.worst_case.model_copy(update={"mae": bounded})
    update = {"mae_gap": Tested(0.2, 9, 0.1, 0.3, adjusted_p_value=0.04), "worst_case": worst_case}
    gap = gap.model_copy(update=update)
    changed = report.model_copy(update={"regions": report.regions.model_copy(update={"gaps": [gap]})})
    assert ("The mean absolute error is larger in" in " ".join(list_weaknesses(changed))) is is_warned


def test_more_than_four_names_are_counted(report: Report) -> None:
    rows = [
        report.self_consistency[0].model_copy(
            update={"model": f"m{i}", "variance": Estimate(value=0.2 + i / 10, n=9, ci_low=0.1, ci_high=0.9)}
        )
        for i in range(6)
    ]
    sentences = " ".join(list_weaknesses(report.model_copy(update={"self_consistency": rows})))
    assert "for m5 (0.70), m4 (0.60), m3 (0.50), m2 (0.40) and 2 more models." in sentences


def test_missing_figures_are_no_weakness(report: Report) -> None:
    not_measured = Estimate(value=None, n=0, reason="not measured")
    rows = [row.model_copy(update={"variance": not_measured}) for row in report.self_consistency]
    update = {
        "self_consistency": rows,
        "peer_agreement": [],
        "topics": [],
        "regions": report.regions.model_copy(update={"gaps": []}),
    }
    assert list_weaknesses(report.model_copy(update=update)) == []
