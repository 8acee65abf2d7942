"""The section on self-consistency has every figure of the report."""

from __future__ import annotations

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, Table
from auditor.reports.number_format import format_number
from auditor.reports.sections.self_comparisons import build_consistency_section
from tests.reports.sections.block_access import blocks_of, cells_of
from tests.reports.sections.node_text import text_of


def test_every_figure_is_in_the_table(report: Report) -> None:
    section = build_consistency_section(report)
    assert section is not None
    [table, correlations], [figure] = blocks_of(section, Table), blocks_of(section, Figure)
    assert cells_of(table) == [
        [
            *(row.model, row.cosine, row.chance, row.same_topic, row.above_chance),
            *(row.variance, row.sign_agreement, row.straddling),
        ]
        for row in report.self_consistency
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


def test_samples_above_chance_have_a_sentence(report: Report) -> None:
    """The fixture's reasonings about other cells have a similarity of 0.38."""
    assert {format_number(row.chance.value) for row in report.self_consistency} == {"0.38"}
    text = text_of(build_consistency_section(report))
    assert "by chance, it would be 0.38" in text
    assert "Samples of a cell are more alike than reasonings about other countries and topics." in text


def test_a_model_whose_reasonings_are_all_alike_is_not_praised(report: Report) -> None:
    first, *others = report.self_consistency
    alike = Estimate(0.0, 60, -0.01, 0.01)
    rows = [first.model_copy(update={"chance": first.cosine, "above_chance": alike}), *others]
    text = text_of(build_consistency_section(report.model_copy(update={"self_consistency": rows})))
    assert f"Samples of {first.model} are not shown to be more alike than reasonings about other countries" in text
    assert "perfectly consistent" not in text
