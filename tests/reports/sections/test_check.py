"""The document of a check has the verdict and a row for each gate."""

from __future__ import annotations

import pytest

from auditor.reports.data.gates.check import check_report
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Code, Name, Paragraph, Table
from auditor.reports.sections.check import NO_THRESHOLDS_NOTE, STATUS_LABELS, build_check_document
from tests.reports.data.gates.test_check import make_thresholds
from tests.reports.sections.node_text import assert_consistent


@pytest.mark.parametrize(
    ("thresholds", "verdict"),
    [
        ({"min_pearson": -1}, "passed (every gate that applies passed)."),
        ({"min_pearson": 1}, "failed (because of min_pearson)."),
        ({"max_cost_usd": 1000}, "undecided (not enough data to decide max_cost_usd)."),
    ],
)
def test_the_document_has_the_verdict_and_a_row_for_each_gate(
    report: Report, thresholds: dict[str, float], verdict: str
) -> None:
    alignment_row = report.alignment[0].model_copy(update={"model": "a|<b>"})
    check = check_report(report.model_copy(update={"alignment": [alignment_row]}), make_thresholds(**thresholds))
    document = build_check_document(check)
    assert_consistent(document)
    [lead] = document.opening
    assert isinstance(lead, Paragraph)
    assert lead.content == f"{report.audit.name}: {verdict}"
    [model_table], [table] = (section.blocks for section in document.sections)
    assert isinstance(model_table, Table)
    assert model_table.rows == [[Name(row.model), STATUS_LABELS[row.verdict], row.message] for row in check.models]
    assert isinstance(table, Table)
    assert len(table.rows) == len(check.gates)
    for row, gate in zip(table.rows, check.gates, strict=True):
        assert row == [Code(gate.name), Name(gate.subject), STATUS_LABELS[gate.verdict], gate.message]


def test_a_check_without_thresholds_says_that_only_coverage_was_tested(report: Report) -> None:
    _, note = build_check_document(check_report(report, make_thresholds())).opening
    assert note == Paragraph(NO_THRESHOLDS_NOTE)
