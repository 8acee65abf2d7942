"""The first page names the assumption of the intervals, and the ranges without one zone or family of topics."""

from __future__ import annotations

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.agreement.sensitivity import Figure, GroupNoun, LeftOutFigure, SensitivityRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Table
from auditor.reports.sections.report import build_report_document
from auditor.reports.sections.sensitivity import build_assumptions, build_sensitivity_section
from tests.reports.sections.alignment_rows import make_alignment_row
from tests.reports.sections.block_access import blocks_of, cells_of
from tests.reports.sections.node_text import text_of


def make_row(
    figure: Figure = "pearson_r", without: GroupNoun = "cultural zone", low: float = 0.41, model: str = "alder"
) -> SensitivityRow:
    """A row whose figure ranges from `low` to 0.55."""
    return SensitivityRow(
        model=model,
        method="direct",
        figure=figure,
        without=without,
        groups=6,
        fewest_left=4,
        lowest=LeftOutFigure(value=low, left_out="Confucian"),
        highest=LeftOutFigure(value=0.55, left_out="Latin America"),
    )


def with_rows(report: Report, *rows: SensitivityRow) -> Report:
    """The report with these rows."""
    return report.model_copy(update={"sensitivity": list(rows)})


def with_figures(report: Report) -> Report:
    """The report with one row for each of two models: r is 0.5, the mean absolute error 0.3, the bias 0."""
    bias = Estimate(0.0, 40, -0.1, 0.1)
    rows = [make_alignment_row(model=model, mae=Estimate(0.3, 40, 0.2, 0.4), bias=bias) for model in ("alder", "birch")]
    return report.model_copy(update={"alignment": rows})


def test_the_section_starts_with_the_largest_change_of_each_figure(report: Report) -> None:
    changed = with_rows(
        with_figures(report),
        make_row(low=0.41),
        make_row(low=0.3, model="birch"),
        make_row("mae", low=0.2),
        make_row("bias", low=-0.1),
        make_row(without="topic family"),
    )
    document = build_report_document(changed)
    by_id = {section.id: section for section in document.sections}
    assert "95% CIs treat the countries and topics as a random draw from similar ones." in text_of(by_id["answer"])
    text = text_of(by_id["sensitivity"].blocks[0])
    assert (
        "Leaving out one cultural zone changes r by at most 0.20 (birch), the mean absolute error by at most 0.25 "
        "(alder) and the bias by at most 0.55 (alder). Leaving out one topic family, which leaves at least 4 topics, "
        "changes r by at most 0.09 (alder)."
    ) in text


def test_without_families_the_change_without_one_topic_is_named(report: Report) -> None:
    changed = with_rows(with_figures(report), make_row(without="topic"))
    section = build_sensitivity_section(changed)
    assert section is not None
    assert text_of(section.blocks[0]).startswith("Leaving out one topic changes r by at most 0.09 (alder).")
    assert section.title == "How much do the results depend on one cultural zone, or one topic?"


def test_without_zones_the_assumption_remains_and_the_section_is_left_out(report: Report) -> None:
    bare = with_rows(report)
    assert "random draw" in text_of(build_assumptions(bare))
    assert build_sensitivity_section(bare) is None
    assert build_assumptions(bare.model_copy(update={"alignment": []})) == []


def test_the_table_names_what_is_left_out(report: Report) -> None:
    section = build_sensitivity_section(with_rows(report, make_row()))
    assert section is not None
    [table] = blocks_of(section, Table)
    assert cells_of(table) == [["alder", "r", "cultural zone", 6, 4, 0.41, "Confucian", 0.55, "Latin America"]]
