"""Experiments on judges as pages: each answer says what the intervals show and no more, and every figure has its n."""

from __future__ import annotations

from auditor.reports.experiments import judge_pages as judges
from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.report_page import ReportPage, render_page_html, render_page_markdown
from auditor.reports.panel.schema import FaultDetectionRow, PositionBiasRow, RestatementShiftRow, SelfReviewRow
from auditor.reports.report_schema import Report

HOSTILE = "<b>judge|a</b>"


def e(value: float | None, half: float = 0.1, n: int = 40) -> Estimate:
    if value is None:
        return Estimate(value=None, n=0, reason="nothing was given")
    return Estimate(value=value, n=n, ci_low=value - half, ci_high=value + half)


def told(page: ReportPage) -> str:
    """The answer; both forms can be made, and what models are called is no markup in either."""
    html, markdown = render_page_html(page), render_page_markdown(page)
    assert HOSTILE not in html
    assert HOSTILE not in markdown
    for text in (html, markdown):
        assert "None" not in text
        assert "nan" not in text
    return page.headline


def shift(judge: str, value: float | None) -> RestatementShiftRow:
    return RestatementShiftRow(judge=judge, valid=e(0.7), restated=e(0.5), shift=e(value), changed=e(0.2))


def test_only_a_shift_that_is_more_than_chance_is_told() -> None:
    page = judges.judge_drift_page(
        "may", "june", [shift("a", -0.3), shift("b", 0.05), shift(HOSTILE, 0.2), shift("d", None)]
    )
    assert told(page) == f"2 of 3 judges have become another: a (stricter), {HOSTILE} (milder)."
    [grid] = page.sections[0].tables
    assert grid.rows[0][-2:] == ["−0.30 (−0.40 to −0.20)", "40"]
    assert grid.rows[3][-2:] == ["nothing was given", "0"]
    assert len(page.sections[0].plots) == 1
    none = judges.judge_drift_page("may", "june", [shift("a", 0.01)])
    assert told(none) == "Of 1 judges, none is shown to have become milder or stricter."
    assert told(judges.judge_drift_page("may", "june", [])) == "No trace was judged by the same judge in both audits."


def test_a_preference_for_a_place_is_away_from_a_half_and_not_from_zero(report: Report) -> None:
    places = [
        PositionBiasRow(judge=name, first=e(first), stable=e(0.9)) for name, first in (("a", 0.5), (HOSTILE, 0.8))
    ]
    own = [SelfReviewRow(judge=name, valid=e(0.9), preference=e(p)) for name, p in (("a", 0.3), ("b", -0.3))]
    part = report.panel.model_copy(update={"positions": places, "own_traces": own})
    answer = told(judges.judge_bias_page("x", part))
    assert answer == f"1 of 2 judges prefer a place: {HOSTILE}. 1 of 2 judges are milder with themselves: a."


def test_planted_faults_say_what_the_certificate_says(report: Report) -> None:
    row = FaultDetectionRow(
        judge=HOSTILE, fault="Western norm", detected=e(0.9), false_alarms=e(0.2), difference=e(0.7)
    )
    part = report.panel.model_copy(
        update={"faults": [row], "certificate": ["Of 1 pair of a judge and a planted fault …"]}
    )
    assert told(judges.fault_injection_page("x", part)) == "Of 1 pair of a judge and a planted fault …"
    nothing = report.panel.model_copy(update={"certificate": []})
    assert told(judges.fault_injection_page("x", nothing)) == "No fault was planted."
