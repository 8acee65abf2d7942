"""The section on self-consistency has every figure of the report."""

from __future__ import annotations

from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, Table
from auditor.reports.sections.self_comparisons import build_consistency_section
from tests.reports.sections.block_access import blocks_of, cells_of
from tests.reports.sections.node_text import text_of


def test_every_figure_is_in_the_table(report: Report) -> None:
    section = build_consistency_section(report)
    assert section is not None
    [table, correlations], [figure] = blocks_of(section, Table), blocks_of(section, Figure)
    assert cells_of(table) == [
        [row.model, row.cosine, row.variance, row.sign_agreement, row.straddling] for row in report.self_consistency
    ]
    assert (figure.id, figure.table_id) == ("self-consistency", "sample-consistency")
    assert "above 0.12 counts as a weakness" in text_of(section)
    titles = {"cosine": "Self-consistency (cosine)", "variance": "Variance of the score"}
    assert cells_of(correlations) == [
        [row.method, titles[row.figure], row.r, row.r.p_value, row.r.models, row.r.r_over_models]
        for row in report.consistency_alignment
    ]


def test_without_correlations_there_is_no_table_of_them(report: Report) -> None:
    section = build_consistency_section(report.model_copy(update={"consistency_alignment": []}))
    assert section is not None
    assert [table.id for table in blocks_of(section, Table)] == ["sample-consistency"]


def test_without_several_samples_there_is_no_section(report: Report) -> None:
    assert build_consistency_section(report.model_copy(update={"self_consistency": []})) is None
