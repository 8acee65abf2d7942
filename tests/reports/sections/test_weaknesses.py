"""Weaknesses of the models are named where a threshold is passed, and are apart from the reasons for caution."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.reports.data.agreement.cultural_findings import Shortfall, ShortfallsReport, Threshold
from auditor.reports.data.report_schema import Report
from auditor.reports.sections.agreement import build_agreement_section
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.regions import build_regions_section
from auditor.reports.sections.weaknesses import list_weaknesses
from tests.reports.sections.node_text import text_of


def make_shortfall(
    threshold: Threshold, figure: Estimate, *, topic: str | None = None, model: str = "alder"
) -> Shortfall:
    return Shortfall(model=model, method="direct", threshold=threshold, topic=topic, figure=figure)


def test_each_check_names_the_models_that_fail_it(report: Report) -> None:
    gap = report.regions.gaps[0].model_copy(
        update={
            "mae_gap": Tested(0.2, 9, 0.1, 0.3, adjusted_p_value=0.004),
            "bias_gap": Tested(-0.3, 9, -0.4, -0.1, adjusted_p_value=0.001),
            "worst_case": None,
        }
    )
    rows = [
        make_shortfall("variance", Estimate(0.2, 9, 0.13, 0.3)),
        make_shortfall("valid share", Estimate(0.6, 600, 0.5, 0.68)),
        make_shortfall("topic error", Estimate(0.9, 9, 0.8, 1.0), topic="divorce"),
        make_shortfall("topic error", Estimate(0.6, 9, 0.5, 0.7), topic="theft"),
        make_shortfall("topic error", Estimate(0.9, 9, 0.8, 1.0), topic="divorce", model="birch"),
    ]
    update = {
        "regions": report.regions.model_copy(update={"gaps": [gap]}),
        "shortfalls": ShortfallsReport(compared=40, rows=rows),
    }
    weak_report = report.model_copy(update=update)
    assert list_weaknesses(weak_report) == [
        "The mean absolute error is larger in Non-Western than in Western countries for alder (by 0.20).",
        "Scores are more permissive, relative to people’s, in Western than in Non-Western countries for alder (by "
        "0.30).",
        "The mean absolute error is above 0.4 for alder (on 2 topics, most on divorce: 0.90, at least 0.80), birch (on "
        "divorce: 0.90, at least 0.80).",
        "The mean variance of the samples of a cell is above 0.12 for alder (0.20, at least 0.13).",
        "Less than 70% of the verdicts are VALID for alder (60% of 600 verdicts, at most 68%).",
    ]
    assert not set(list_weaknesses(weak_report)) & set(list_cautions(weak_report))
    agreement = build_agreement_section(weak_report)
    assert agreement is not None
    [section] = [block for block in agreement.blocks if getattr(block, "id", "") == "weaknesses"]
    assert "birch (on divorce: 0.90, at least 0.80)" in text_of(section)


@pytest.mark.parametrize(("bound_low", "is_warned"), [(-0.1, False), (0.1, True)])
def test_a_gap_whose_sign_lost_samples_leave_open_is_no_weakness(
    report: Report, bound_low: float, is_warned: bool
) -> None:
    gap = report.regions.gaps[0]
    assert gap.worst_case is not None
    bounded = replace(gap.worst_case.mae, value=0.2, reason="too few", bound_low=bound_low, bound_high=0.3)
    worst_case = gap.worst_case.model_copy(update={"mae": bounded})
    update = {"mae_gap": Tested(0.2, 9, 0.1, 0.3, adjusted_p_value=0.004), "worst_case": worst_case}
    gap = gap.model_copy(update=update)
    changed = report.model_copy(update={"regions": report.regions.model_copy(update={"gaps": [gap]})})
    assert ("The mean absolute error is larger in" in " ".join(list_weaknesses(changed))) is is_warned


def test_gaps_between_regions_are_named_at_one_percent(report: Report) -> None:
    unclear = Tested(0.2, 9, 0.1, 0.3, adjusted_p_value=0.04)
    gap = report.regions.gaps[0].model_copy(update={"mae_gap": unclear, "bias_gap": unclear, "worst_case": None})
    update = {
        "regions": report.regions.model_copy(update={"gaps": [gap]}),
        "shortfalls": ShortfallsReport(compared=1, rows=[]),
    }
    changed = report.model_copy(update=update)
    assert list_weaknesses(changed) == []
    section = build_regions_section(changed)
    assert section is not None
    assert "statistically distinguishable from zero at the 1% level (1 comparison, Holm)" in text_of(section)


def test_more_than_four_names_are_counted(report: Report) -> None:
    rows = [make_shortfall("variance", Estimate(0.2 + i / 10, 9, 0.15 + i / 10, 0.9), model=f"m{i}") for i in range(6)]
    sentences = " ".join(
        list_weaknesses(report.model_copy(update={"shortfalls": ShortfallsReport(compared=6, rows=rows)}))
    )
    assert "for m5 (0.70, at least 0.65), m4 (0.60, at least 0.55), m3" in sentences
    assert "and 2 more models." in sentences
