"""Documents of the judge experiments: each finding follows from adjusted p-values, and every figure has its n."""

from __future__ import annotations

from auditor.metrics.intervals.estimate import TestedShare
from auditor.metrics.judges.accuracy import JudgeDifference
from auditor.reports.data.panel.certificate import describe_fault_detection
from auditor.reports.data.panel.schema import FaultDetectionRow, PositionBiasRow, RestatementShiftRow, SelfReviewRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure
from auditor.reports.sections.experiments import judges
from tests.probes.semantic.experiments.test_sections_section_consistency import HOSTILE, checked_finding, make_estimate
from tests.reports.sections.node_text import cells_of, iterate_nodes, tables_of
from tests.support.report_changes import change


def make_share(value: float, adjusted_p_value: float | None = None) -> TestedShare:
    ends = value - 0.1, value + 0.1
    return TestedShare(value, 40, *ends, p_value=adjusted_p_value, adjusted_p_value=adjusted_p_value)


def make_shift(judge: str, value: float | None, adjusted_p_value: float | None = None) -> RestatementShiftRow:
    return RestatementShiftRow(
        judge=judge,
        valid=make_share(0.7),
        restated=make_share(0.5),
        shift=make_estimate(value, adjusted_p_value=adjusted_p_value),
        changed=make_share(0.2),
    )


def make_difference(value: float, adjusted_p_value: float) -> JudgeDifference:
    return JudgeDifference(
        value, 40, value - 0.1, value + 0.1, resampled=("country", "topic"), adjusted_p_value=adjusted_p_value
    )


def figures_of(node: object) -> list[Figure]:
    return [block for block in iterate_nodes(node) if isinstance(block, Figure)]


def test_only_significant_judge_drift_is_reported() -> None:
    rows = [
        make_shift("a", -0.3, 0.01),
        make_shift("b", 0.2, 0.06),
        make_shift(HOSTILE, 0.2, 0.04),
        make_shift("d", None),
    ]
    document = judges.build_judge_drift_document("may", "june", rows)
    assert checked_finding(document) == (
        f"2 of 3 judges are shown to have become more lenient or stricter: a (stricter), {HOSTILE} (more lenient)."
    )
    [table] = tables_of(document).values()
    assert cells_of(table) == [
        [row.judge, row.valid, row.restated, row.changed, row.shift, row.shift.adjusted_p_value] for row in rows
    ]
    assert len(figures_of(document)) == 1
    without_shift = judges.build_judge_drift_document("may", "june", [make_shift("a", 0.01, 0.9)])
    assert checked_finding(without_shift) == (
        "No judge is shown to have become more lenient or stricter (1 judge measured)."
    )
    nothing = judges.build_judge_drift_document("may", "june", [])
    assert checked_finding(nothing) == "No trace was judged by the same judge in both audits."
    assert nothing.sections == []


def test_judges_are_named_for_a_bias_only_after_correction(report: Report) -> None:
    position_rows = [
        PositionBiasRow(judge=name, first=make_share(0.8, adjusted_p_value), stable=make_share(0.9))
        for name, adjusted_p_value in (("a", 0.06), (HOSTILE, 0.04))
    ]
    self_reviews = [
        SelfReviewRow(judge=name, valid=make_share(0.9), preference=make_difference(value, p_value))
        for name, value, p_value in (("a", 0.3, 0.0), ("b", -0.3, 0.01), ("c", 0.3, 0.1))
    ]
    padded = [
        change(report.panel.judges[0], judge=name, padding=make_difference(0.2, p_value))
        for name, p_value in (("a", 0.01), ("b", 0.06))
    ]
    panel = change(report.panel, positions=position_rows, own_traces=self_reviews, judges=padded)
    document = judges.build_judge_bias_document("x", panel)
    assert checked_finding(document) == (
        f"1 of 2 judges is shown to prefer one position: {HOSTILE}. "
        "1 of 3 judges is shown to be more lenient with own traces: a. "
        "1 of 2 judges is shown to change its verdicts when a trace is padded: a."
    )
    assert set(tables_of(document)) == {"padding", "position-bias", "own-traces"}
    unpadded = {"own_traces": [], "judges": report.panel.judges}
    positions_only = judges.build_judge_bias_document("x", change(panel, **unpadded))
    assert [section.id for section in positions_only.sections] == ["positions"]


def test_the_finding_on_faults_is_that_of_the_certificate(report: Report) -> None:
    row = FaultDetectionRow(
        judge=HOSTILE,
        fault="Western norm",
        detected=make_share(0.9),
        false_alarms=make_share(0.2),
        difference=make_estimate(0.7, adjusted_p_value=0.01),
    )
    panel = change(report.panel, faults=[row])
    document = judges.build_fault_injection_document("x", panel)
    assert checked_finding(document) == describe_fault_detection(panel)
    assert checked_finding(document).startswith("Detection beyond false alarms is shown for 1 of 1 pair")
    for difference, p_value in ((0.7, 0.06), (0.7, None), (-0.7, 0.01)):
        undetected = change(row, difference=make_estimate(difference, adjusted_p_value=p_value))
        finding = checked_finding(judges.build_fault_injection_document("x", change(panel, faults=[row, undetected])))
        assert f"Not shown to be detected: Western norm ({HOSTILE})" in finding
        assert ("P-values are adjusted for 2 tests (Holm)." in finding) is (
            undetected.difference.adjusted_p_value is not None
        )
    no_faults = judges.build_fault_injection_document("x", change(report.panel, faults=[]))
    assert checked_finding(no_faults) == "No fault was injected."
