"""The section on refusals states their share and where they are most frequent."""

from __future__ import annotations

from auditor.metrics.intervals.estimate import ShareEstimate
from auditor.reports.data.coverage.build import ReaskRow, RefusalRow, RefusalsReport
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Figure, Table
from auditor.reports.sections.coverage import MAX_PLOTTED_ROWS, build_refusals_section
from tests.reports.sections.block_access import blocks_of
from tests.reports.sections.node_text import text_of


def refusals_of(value: float, n_topics: int = 1) -> RefusalsReport:
    """Refusals with equal shares everywhere."""
    share = ShareEstimate(value, 200, value / 2, value * 2)
    topics = [RefusalRow(name=f"topic {i}", share=share) for i in range(n_topics)]
    rows = [RefusalRow(name=name, share=share) for name in ("m", "Egypt")]
    return RefusalsReport(total=share, models=rows[:1], countries=rows[1:], topics=topics)


def section_text(report: Report, **changes: object) -> str:
    """The sentences of the section on a report with these changes."""
    section = build_refusals_section(report.model_copy(update=changes))
    assert section is not None
    return text_of(section)


def test_the_share_and_the_most_refused_groups_are_stated(report: Report) -> None:
    text = section_text(report, refusals=refusals_of(0.125))
    assert "12.5% of 200 answers are refusals (95% CI 6.2% to 25.0%)." in text
    assert (
        "Refusals are most frequent for topic 0 (12.5%: 25 of 200 answers) and Egypt (12.5%: 25 of 200 answers)."
        in text
    )


def test_no_refusal_is_stated_without_tables(report: Report) -> None:
    section = build_refusals_section(report.model_copy(update={"refusals": refusals_of(0.0), "repairs": []}))
    assert section is not None
    assert [text_of(block) for block in section.blocks] == ["There are no refusals among 200 answers.finding"]


def test_a_missing_interval_has_its_reason(report: Report) -> None:
    refusals = refusals_of(0.5).model_copy(update={"total": ShareEstimate(0.5, 4, reason="an interval needs 5 cells")})
    assert "50.0% of 4 answers are refusals (no 95% CI: an interval needs 5 cells)." in section_text(
        report, refusals=refusals
    )


def test_answers_that_were_asked_for_again_are_counted(report: Report) -> None:
    text = section_text(report, repairs=[ReaskRow(model="alder", asked=3, read=2)])
    assert "alder: 3 answers could not be read at first" in text
    assert "2 then had a score" in text


def test_plots_have_the_largest_shares_and_tables_all(report: Report) -> None:
    section = build_refusals_section(report.model_copy(update={"refusals": refusals_of(0.1, MAX_PLOTTED_ROWS + 5)}))
    assert section is not None
    assert [(table.id, len(table.rows)) for table in blocks_of(section, Table)] == [
        ("share-refused-by-model", 1),
        ("share-refused-by-topic", MAX_PLOTTED_ROWS + 5),
        ("share-refused-by-country", 1),
    ]
    figures = blocks_of(section, Figure)
    assert [figure.id for figure in figures] == ["refusals-by-topic", "refusals-by-country"]
    assert figures[0].description.count("topic") == MAX_PLOTTED_ROWS


def test_without_recorded_answers_there_is_no_section(report: Report) -> None:
    assert build_refusals_section(report.model_copy(update={"refusals": None})) is None
