"""Reasons for caution are given where a threshold is passed, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.report_schema import Report
from auditor.reports.sections.caution import list_cautions


def _changed(report: Report, **parts: Any) -> Report:
    return report.model_copy(update=parts)


def test_each_check_gives_a_reason_for_caution(report: Report) -> None:
    audit = report.audit.model_copy(update={"complete": False, "stage": "review"})
    panel = report.panel.model_copy(update={"repeated": 2})
    cautions = " ".join(list_cautions(_changed(report, audit=audit, panel=panel)))
    assert "The audit is not complete (stage: review); every figure is provisional." in cautions
    assert "2 verdicts of" in cautions


def test_agreement_of_the_judges_at_or_below_chance_is_a_caution(report: Report) -> None:
    kappa = replace(report.panel.fleiss_kappa, value=0.26, ci_low=-0.18, ci_high=0.63)
    panel = report.panel.model_copy(update={"fleiss_kappa": kappa})
    cautions = " ".join(list_cautions(_changed(report, panel=panel)))
    assert "not statistically distinguishable from chance (Fleiss’ kappa = 0.26, 95% CI −0.18 to 0.63)" in cautions
    below = replace(kappa, value=-0.3, ci_low=-0.5, ci_high=-0.1)
    worse = _changed(report, panel=report.panel.model_copy(update={"fleiss_kappa": below}))
    assert "The agreement of the judges is below chance" in " ".join(list_cautions(worse))


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
        audit=report.audit.model_copy(
            update={
                "survey": report.audit.survey.model_copy(update={"clusters": "zone", "wordings": {"en": ["{topic}?"]}})
            }
        ),
    )
    [line] = list_cautions(report_without_figures)
    assert line.startswith("Intervals include the wording, but no other choices of the design")


def test_countries_in_fewer_than_six_zones_are_a_named_limit(report: Report) -> None:
    limit = f"Intervals take the countries as independent, since they are in {len(report.audit.survey.zones)} cultural"
    assert sum(caution.startswith(limit) for caution in list_cautions(report)) == 1
    by_zone = report.audit.survey.model_copy(update={"clusters": "zone"})
    clustered = _changed(report, audit=report.audit.model_copy(update={"survey": by_zone}))
    assert not any(caution.startswith(limit) for caution in list_cautions(clustered))


def test_a_family_of_topics_that_moves_the_error_out_of_its_interval_is_named(report: Report) -> None:
    row = next(row for row in report.sensitivity if row.figure == "mae")
    [alignment] = [a for a in report.alignment if (a.model, a.method) == (row.model, row.method)]
    moved = row.model_copy(
        update={"without": "topic family", "lowest": row.lowest.model_copy(update={"value": 0.0, "left_out": "taboo"})}
    )
    assert alignment.mae.ci_low is not None
    cautions = list_cautions(_changed(report, sensitivity=[moved]))
    assert sum(f"{row.model} (taboo)" in caution for caution in cautions) == 1
    assert not any("family of topics" in caution for caution in list_cautions(_changed(report, sensitivity=[row])))


def test_one_wording_is_a_choice_of_the_design_that_is_in_no_interval(report: Report) -> None:
    [line] = [caution for caution in list_cautions(report) if "choices of the design" in caution]
    assert "such as the wording, the direction" in line
    assert line.endswith("set survey.wordings, or run auditor experiment robustness.")
    several = report.audit.survey.model_copy(update={"wordings": {"en": ["{topic}?"]}})
    asked_in_several = _changed(report, audit=report.audit.model_copy(update={"survey": several}))
    assert not any("such as the wording" in caution for caution in list_cautions(asked_in_several))
    imported = _changed(report, audit=report.audit.model_copy(update={"imported": True}))
    assert not any("choices of the design" in caution for caution in list_cautions(imported))
