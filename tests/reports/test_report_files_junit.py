"""The result of the gates as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from auditor.reports.data.gates.check import check_report
from auditor.reports.data.report_schema import Report
from auditor.reports.report_files import render_junit
from auditor.text_safety import escape_invisible
from tests.reports.data.gates.test_check_gate_check import make_thresholds


def test_junit_is_valid_xml_with_one_case_per_gate_for_any_model_name(report: Report) -> None:
    nasty = 'a"<b>&\x1b[0m\ud800'
    row = report.alignment[0].model_copy(update={"model": nasty})
    check = check_report(
        report.model_copy(update={"alignment": [row]}), make_thresholds(min_pearson=1, max_cost_usd=1000)
    )
    suite, models = ElementTree.fromstring(render_junit(check).encode("utf-8"))
    assert [case.attrib["name"] for case in models] == [escape_invisible(row.model) for row in check.models]
    assert [case.tag for case in models.iter() if case.tag == "failure"] == ["failure"]
    assert len(suite) == len(check.gates) == int(suite.attrib["tests"])
    assert [case.tag for case in suite.iter() if case.tag in ("failure", "error")] == ["failure", "error"]
    assert any('a"<b>&' in case.attrib["name"] for case in suite)
