"""Reasons for caution are given where a threshold is passed, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from auditor.metrics.estimate import Estimate
from auditor.reports.data.report_schema import Report
from auditor.reports.sections.caution import list_cautions


def _changed(report: Report, **parts: Any) -> Report:
    return report.model_copy(update=parts)


def test_each_check_gives_a_reason_for_caution(report: Report) -> None:
    varying_consistency = report.self_consistency[0].model_copy(
        update={"variance": Estimate(value=0.2, n=9, ci_low=0.1, ci_high=0.3)}
    )
    low_agreement = report.peer_agreement[0].model_copy(
        update={"agreement": Estimate(value=0.6, n=9, ci_low=0.3, ci_high=0.8)}
    )
    estimate = Estimate(value=0.2, n=9, ci_low=0.1, ci_high=0.3)
    gap = report.regions.gaps[0].model_copy(update={"mae_gap": estimate, "worst_case": None, "adjusted_p_value": 0.04})
    troubled_report = _changed(
        report,
        audit=report.audit.model_copy(update={"complete": False, "stage": "review"}),
        self_consistency=[varying_consistency],
        peer_agreement=[low_agreement],
        regions=report.regions.model_copy(update={"gaps": [gap]}),
    )
    cautions = " ".join(list_cautions(troubled_report))
    assert "The audit is not complete (stage: review); every figure is provisional." in cautions
    assert "The mean variance of the samples of a cell is above 0.12 for alder (0.20)." in cautions
    assert "Less than 70% of the verdicts are VALID for alder (60% of 9)." in cautions
    assert "The mean absolute error is larger in Non-Western than in Western countries for alder (by 0.20)." in cautions


@pytest.mark.parametrize(("bound_low", "is_warned"), [(-0.1, False), (0.1, True)])
def test_a_gap_whose_sign_lost_samples_leave_open_is_no_caution(
    report: Report, bound_low: float, is_warned: bool
) -> None:
    gap = report.regions.gaps[0]
    assert gap.worst_case is not None
    bounded = replace(gap.worst_case.mae, value=0.2, reason="too few", bound_low=bound_low, bound_high=0.3)
    worst_case = gap.worst_case.model_copy(update={"mae": bounded})
    update = {"mae_gap": Estimate(0.2, 9, 0.1, 0.3), "worst_case": worst_case, "adjusted_p_value": 0.04}
    gap = gap.model_copy(update=update)
    changed = _changed(report, regions=report.regions.model_copy(update={"gaps": [gap]}))
    assert ("The mean absolute error is larger in" in " ".join(list_cautions(changed))) is is_warned


def test_caution_about_chance_agreement_counts_each_model_once_per_topic(report: Report) -> None:
    kappa = replace(report.panel.fleiss_kappa, value=0.26, ci_low=-0.18, ci_high=0.63)
    large_error = Estimate(value=0.9, n=9, ci_low=0.8, ci_high=1.0)
    topics = [
        report.topics[0].model_copy(update={"name": "divorce", "model": model, "method": method, "mae": large_error})
        for model in ("alder", "birch")
        for method in ("direct", "logprob")
    ]
    panel = report.panel.model_copy(update={"fleiss_kappa": kappa})
    cautions = " ".join(list_cautions(_changed(report, panel=panel, topics=topics)))
    assert "not statistically distinguishable from chance (Fleiss’ kappa = 0.26, 95% CI −0.18 to 0.63)" in cautions
    assert "divorce (2 models)" in cautions
    below = replace(kappa, value=-0.3, ci_low=-0.5, ci_high=-0.1)
    worse = _changed(report, panel=report.panel.model_copy(update={"fleiss_kappa": below}))
    assert "The agreement of the judges is below chance" in " ".join(list_cautions(worse))


def test_more_than_four_names_are_counted(report: Report) -> None:
    rows = [
        report.self_consistency[0].model_copy(
            update={"model": f"m{i}", "variance": Estimate(value=0.2 + i / 10, n=9, ci_low=0.1, ci_high=0.9)}
        )
        for i in range(6)
    ]
    cautions = " ".join(list_cautions(_changed(report, self_consistency=rows)))
    assert "for m5 (0.70), m4 (0.60), m3 (0.50), m2 (0.40) and 2 more models." in cautions


def test_missing_figures_give_no_reason_for_caution(report: Report) -> None:
    not_measured = Estimate(value=None, n=0, reason="not measured")
    report_without_figures = _changed(
        report,
        self_consistency=[row.model_copy(update={"variance": not_measured}) for row in report.self_consistency],
        peer_agreement=[],
        topics=[],
        alignment=[row.model_copy(update={"worst_case": None}) for row in report.alignment],
        regions=report.regions.model_copy(update={"gaps": []}),
        coverage=report.coverage.model_copy(update={"total": []}),
        panel=report.panel.model_copy(update={"fleiss_kappa": not_measured}),
    )
    assert list_cautions(report_without_figures) == []
