"""The first page names the assumption of the intervals, and the ranges without one zone or family of topics."""

from __future__ import annotations

from auditor.reports.data.agreement.sensitivity import Figure, GroupNoun, LeftOutFigure, SensitivityRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Disclosure, List, Table
from auditor.reports.sections.report import build_report_document
from auditor.reports.sections.sensitivity import build_assumptions, build_sensitivity_section
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
        lowest=LeftOutFigure(value=low, left_out="Confucian"),
        highest=LeftOutFigure(value=0.55, left_out="Latin America"),
    )


def with_rows(report: Report, *rows: SensitivityRow) -> Report:
    """The report with these rows."""
    return report.model_copy(update={"sensitivity": list(rows)})


def test_the_first_page_has_the_assumption_and_each_range(report: Report) -> None:
    changed = with_rows(
        report, make_row(), make_row("mae", low=0.2), make_row("bias", low=-0.1), make_row(without="topic family")
    )
    text = text_of(build_report_document(changed).sections[0])
    assert "95% CIs take countries and topics as exchangeable: as draws from others like these." in text
    assert (
        "without one cultural zone: r 0.41 to 0.55, mean absolute error 0.20 to 0.55, "
        "bias \N{MINUS SIGN}0.10 to +0.55; without one topic family: r 0.41 to 0.55"
    ) in text


def test_ranges_of_many_models_are_folded(report: Report) -> None:
    rows = [make_row(model=f"model {i}") for i in range(7)]
    blocks = build_assumptions(with_rows(report, *rows))
    assert any(isinstance(block, Disclosure) for block in blocks)
    assert not any(isinstance(block, List) for block in blocks)


def test_without_zones_the_assumption_remains_and_the_section_is_left_out(report: Report) -> None:
    bare = with_rows(report)
    assert "exchangeable" in text_of(build_assumptions(bare))
    assert build_sensitivity_section(bare) is None
    assert build_assumptions(bare.model_copy(update={"alignment": []})) == []


def test_the_table_names_what_is_left_out(report: Report) -> None:
    section = build_sensitivity_section(with_rows(report, make_row()))
    assert section is not None
    [table] = blocks_of(section, Table)
    assert cells_of(table) == [["alder", "r", "cultural zone", 6, 0.41, "Confucian", 0.55, "Latin America"]]
