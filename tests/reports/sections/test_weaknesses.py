"""Weaknesses of the models are named where a threshold is passed, and are apart from the reasons for caution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest

from auditor.metrics.intervals.estimate import BoundedEstimate, Estimate, Tested
from auditor.reports.data.agreement.cultural_findings import CulturalFinding, Shortfall, ShortfallsReport, Threshold
from auditor.reports.data.coverage.lost_samples import LostSamples, WorstCaseDifferences
from auditor.reports.data.report_schema import Report
from auditor.reports.document import List
from auditor.reports.sections.agreement import build_agreement_section
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.regions import build_regions_section
from auditor.reports.sections.weaknesses import (
    WEAKNESS_CHECKS,
    build_findings_block,
    describe_cultural_finding,
    list_weaknesses,
)
from tests.reports.sections.node_text import blocks_of, text_of
from tests.support.known import known
from tests.support.report_changes import change

NOTHING: dict[str, Any] = {"shortfalls": ShortfallsReport(compared=1, rows=[]), "regions__gaps": []}


def fall_short(*rows: tuple[Threshold, Estimate, str | None, str]) -> Callable[[Report], Report]:
    """Figures beyond a threshold, with their topic and model."""
    shortfalls = [
        Shortfall(model=model, method="direct", threshold=threshold, topic=topic, figure=figure)
        for threshold, figure, topic, model in rows
    ]
    return lambda report: change(report, **NOTHING | {"shortfalls": ShortfallsReport(compared=40, rows=shortfalls)})


def set_gap(field: str, value: float, p_value: float, bound_low: float | None = None) -> Callable[[Report], Report]:
    """One gap between regions, with bounds of lost samples from `bound_low` to 0.3 if that is given."""
    tests = dict.fromkeys(("mae_gap", "bias_gap"), Tested(0.0, 9, -0.1, 0.1, adjusted_p_value=1.0))
    tests[field] = Tested(value, 9, value - 0.1, value + 0.1, adjusted_p_value=p_value)
    bounds = BoundedEstimate(value, 9, reason="too few", bound_low=bound_low, bound_high=0.3)
    worst_case = None if bound_low is None else WorstCaseDifferences(mae=bounds, pearson_r=bounds)
    return lambda report: change(
        report, **NOTHING | {"regions__gaps": [change(report.regions.gaps[0], **tests, worst_case=worst_case)]}
    )


CASES = {
    "_describe_regions": (
        "The mean absolute error is larger in Non-Western than in Western countries for alder (by 0.20).",
        set_gap("mae_gap", 0.2, 0.004), set_gap("mae_gap", 0.2, 0.04),
    ),
    "_describe_regions whose sign is known": (
        "The mean absolute error is larger in Non-Western than in Western countries for alder (by 0.20).",
        set_gap("mae_gap", 0.2, 0.004, 0.1), set_gap("mae_gap", 0.2, 0.004, -0.1),
    ),
    "_describe_regions by bias": (
        "Scores are more permissive, relative to people’s, in Western than in Non-Western countries for alder (by "
        "0.30).",
        set_gap("bias_gap", -0.3, 0.001), set_gap("bias_gap", -0.3, 0.001, 0.1),
    ),
    "_describe_topics": (
        "The mean absolute error is above 0.4 for alder (on 2 topics, most on divorce: 0.90, at least 0.80), birch (on "
        "divorce: 0.90, at least 0.80).",
        fall_short(
            ("topic error", Estimate(0.9, 9, 0.8, 1.0), "divorce", "alder"),
            ("topic error", Estimate(0.6, 9, 0.5, 0.7), "theft", "alder"),
            ("topic error", Estimate(0.9, 9, 0.8, 1.0), "divorce", "birch"),
        ),
        fall_short(("variance", Estimate(0.2, 9, 0.13, 0.3), None, "alder")),
    ),
    "_describe_variance": (
        "The mean variance of the samples of a cell is above 0.12 for alder (0.20, at least 0.13).",
        fall_short(("variance", Estimate(0.2, 9, 0.13, 0.3), None, "alder")), fall_short(),
    ),
    "_describe_peer_agreement": (
        "Less than 70% of the verdicts are VALID for alder (60% of 600 verdicts, at most 68%).",
        fall_short(("valid share", Estimate(0.6, 600, 0.5, 0.68), None, "alder")), fall_short(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
def test_a_weakness_is_named_where_there_is_one_and_nowhere_else(report: Report, kind: str) -> None:
    sentence, has, lacks = CASES[kind]
    weak = has(report)
    assert list_weaknesses(weak) == [sentence]
    assert sentence not in list_cautions(weak)
    assert sentence not in list_weaknesses(lacks(report))


def test_every_check_has_a_case_in_which_it_must_speak_and_one_in_which_it_must_not() -> None:
    assert {kind.split()[0] for kind in CASES} == {check.__name__ for check in WEAKNESS_CHECKS}


def test_weaknesses_are_in_the_section_on_agreement_and_gaps_of_5_percent_in_that_on_regions(report: Report) -> None:
    sentence, has, _ = CASES["_describe_topics"]
    [section] = [b for b in build_agreement_section(has(report)).blocks if getattr(b, "id", "") == "weaknesses"]  # type: ignore[union-attr]
    assert sentence in text_of(section)
    words = "statistically distinguishable from zero at the 1% level (1 comparison, Holm)"
    assert words in text_of(build_regions_section(set_gap("mae_gap", 0.2, 0.04)(report)))


def test_the_section_on_regions_concludes_nothing_from_a_gap_that_lost_samples_could_reverse(report: Report) -> None:
    gaps = (set_gap("mae_gap", 0.2, 0.004, bound_low) for bound_low in (0.1, -0.1))
    known, unknown = (text_of(build_regions_section(set_one(report))) for set_one in gaps)
    assert "The mean absolute error differs between regions for alder." in known
    assert "differs between regions for" not in unknown
    assert "(1 comparison, Holm), but for alder, where lost samples could reverse it." in unknown


def test_more_than_four_names_are_counted(report: Report) -> None:
    rows = [("variance", Estimate(0.2 + i / 10, 9, 0.15 + i / 10, 0.9), None, f"m{i}") for i in range(6)]
    [sentence] = list_weaknesses(fall_short(*rows)(report))  # type: ignore[arg-type]
    assert "for m5 (0.70, at least 0.65), m4 (0.60, at least 0.55), m3" in sentence
    assert sentence.endswith("and 2 more models.")


FINDINGS: list[tuple[dict[str, Any], str]] = [
    (
        {"kind": "topic", "name": "divorce", "bias": Estimate(0.3, 10, 0.1, 0.5), "n_same_sign": 9},
        "is more permissive than people on divorce, in 9 of 10 countries (mean difference = +0.30, 95% CI +0.10 to "
        "+0.50)",
    ),
    (
        {"kind": "country", "name": "Egypt", "bias": Estimate(-0.3, 8, -0.5, -0.1), "n_same_sign": 8},
        "is stricter than people in Egypt, on 8 of 8 topics (mean difference = −0.30, 95% CI −0.50 to −0.10)",
    ),
    (
        {
            "kind": "country", "name": "Japan", "bias": Estimate(0.3, 10, 0.2, 0.4), "n_same_sign": 10,
            "n_places": 12, "n_places_same_sign": 12,
        },
        "is more permissive than people in all 12 countries, with the strongest evidence in Japan (mean difference = "
        "+0.30, 95% CI +0.20 to +0.40)",
    ),
    (
        {
            "kind": "topic", "name": "divorce", "bias": Estimate(0.3, 10, 0.2, 0.4), "n_same_sign": 10,
            "n_places": 8, "n_places_same_sign": 3,
        },
        "is more permissive than people on 3 of 8 topics, with the strongest evidence on divorce (mean difference = "
        "+0.30, 95% CI +0.20 to +0.40)",
    ),
    (
        {
            "kind": "distance", "name": "Nigeria", "mae": Estimate(0.4, 8, 0.3, 0.5),
            "mae_ratio": Tested(3.1, 8, 2.0, 4.8, p_value=1e-4, adjusted_p_value=0.01),
            "lost_samples": LostSamples(planned=8, lost=2, share=0.25),
        },
        "is further from people in Nigeria than in its other countries (mean absolute error = 0.40, 95% CI 0.30 to "
        "0.50; 3.10 times that of the others, 95% CI 2.00 to 4.80). Of the planned samples for Nigeria, 25% have no "
        "usable score",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("finding", "text"), FINDINGS)
def test_a_cultural_finding_is_a_sentence_with_its_intervals(finding: dict[str, Any], text: str) -> None:
    no_loss = LostSamples(planned=10, lost=0, share=0.0)
    row = {"model": "m", "method": "direct", "margin": 0.1, "lost_samples": no_loss, **finding}
    assert describe_cultural_finding(CulturalFinding.model_validate(row)) == text


def test_every_kind_of_cultural_finding_has_a_sentence() -> None:
    """Whether a difference is one is tested in `tests/reports/data/agreement/test_cultural_findings.py`."""
    assert {finding["kind"] for finding, _ in FINDINGS} == set(
        get_args(CulturalFinding.model_fields["kind"].annotation)
    )


@pytest.mark.parametrize(
    ("update", "text", "n_findings"),
    [
        ({}, "", 3),
        ({"rows": []}, "No difference is statistically distinguishable from zero when all", 0),
        ({"rows": [], "reason": "few topics"}, "The audit is too small for a finding on one country or topic: few", 0),
    ],
)
def test_three_findings_are_shown_or_the_reason_why_there_is_none(
    report: Report, update: dict[str, Any], text: str, n_findings: int
) -> None:
    shown_findings = known(report.cultural_findings)
    findings = change(shown_findings, **{"rows": shown_findings.rows[:1] * 5} | update)
    block = known(build_findings_block(change(report, cultural_findings=findings)))
    assert text_of(block.blocks[0]).startswith(text)
    assert [len(shown.items) for shown in blocks_of(block, List)] == [n_findings] * (n_findings > 0)
    selected = f"selected from {findings.compared} mean differences, each for one country or one topic, and from "
    assert (f"{selected}{findings.compared_distances} distances in" in text_of(block)) is (n_findings > 0)
