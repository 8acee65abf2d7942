"""Pages of the judge experiments: each headline follows from the intervals, and every figure has its n."""

from __future__ import annotations

from auditor.metrics.estimate import Estimate
from auditor.reports.data.panel.schema import FaultDetectionRow, PositionBiasRow, RestatementShiftRow, SelfReviewRow
from auditor.reports.data.report_schema import Report
from auditor.reports.experiments import judge_pages as judges
from auditor.reports.pages.report_page import ReportPage, render_page_html, render_page_markdown

HOSTILE = "<b>judge|a</b>"


def make_estimate(value: float | None, half: float = 0.1, n: int = 40) -> Estimate:
    if value is None:
        return Estimate(value=None, n=0, reason="nothing was given")
    return Estimate(value=value, n=n, ci_low=value - half, ci_high=value + half)


def checked_headline(page: ReportPage) -> str:
    """The page's headline, after checks that HTML and Markdown render and that the hostile name is escaped in both."""
    html, markdown = render_page_html(page), render_page_markdown(page)
    assert HOSTILE not in html
    assert HOSTILE not in markdown
    for text in (html, markdown):
        assert "None" not in text
        assert "nan" not in text
    return page.headline


def make_shift(judge: str, value: float | None) -> RestatementShiftRow:
    return RestatementShiftRow(
        judge=judge,
        valid=make_estimate(0.7),
        restated=make_estimate(0.5),
        shift=make_estimate(value),
        changed=make_estimate(0.2),
    )


def test_only_significant_judge_drift_is_reported() -> None:
    page = judges.judge_drift_page(
        "may", "june", [make_shift("a", -0.3), make_shift("b", 0.05), make_shift(HOSTILE, 0.2), make_shift("d", None)]
    )
    assert checked_headline(page) == f"2 of 3 judges have become another: a (stricter), {HOSTILE} (milder)."
    [table] = page.sections[0].tables
    assert table.rows[0][-2:] == ["−0.30 (−0.40 to −0.20)", "40"]
    assert table.rows[3][-2:] == ["nothing was given", "0"]
    assert len(page.sections[0].plots) == 1
    page_without_shift = judges.judge_drift_page("may", "june", [make_shift("a", 0.01)])
    assert checked_headline(page_without_shift) == "Of 1 judges, none is shown to have become milder or stricter."
    assert (
        checked_headline(judges.judge_drift_page("may", "june", []))
        == "No trace was judged by the same judge in both audits."
    )


def test_position_bias_is_tested_against_one_half(report: Report) -> None:
    position_rows = [
        PositionBiasRow(judge=name, first=make_estimate(first), stable=make_estimate(0.9))
        for name, first in (("a", 0.5), (HOSTILE, 0.8))
    ]
    self_reviews = [
        SelfReviewRow(judge=name, valid=make_estimate(0.9), preference=make_estimate(p))
        for name, p in (("a", 0.3), ("b", -0.3))
    ]
    panel = report.panel.model_copy(update={"positions": position_rows, "own_traces": self_reviews})
    headline = checked_headline(judges.judge_bias_page("x", panel))
    assert headline == f"1 of 2 judges prefer a place: {HOSTILE}. 1 of 2 judges are milder with themselves: a."


def test_the_fault_page_quotes_the_certificate(report: Report) -> None:
    row = FaultDetectionRow(
        judge=HOSTILE,
        fault="Western norm",
        detected=make_estimate(0.9),
        false_alarms=make_estimate(0.2),
        difference=make_estimate(0.7),
    )
    panel = report.panel.model_copy(
        update={"faults": [row], "certificate": ["Of 1 pair of a judge and a planted fault …"]}
    )
    assert checked_headline(judges.fault_injection_page("x", panel)) == "Of 1 pair of a judge and a planted fault …"
    empty_panel = report.panel.model_copy(update={"certificate": []})
    assert checked_headline(judges.fault_injection_page("x", empty_panel)) == "No fault was planted."
