"""The section on coverage counts every loss by its cause."""

from __future__ import annotations

from auditor.reports.data.coverage.counts import FinishReasonRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import BarSegment, CountShare, Disclosure, Table
from auditor.reports.sections.coverage import build_coverage_section
from tests.reports.sections.block_access import blocks_of, cells_of
from tests.reports.sections.node_text import text_of


def test_every_row_adds_up_and_its_bar_has_the_same_counts(report: Report) -> None:
    section = build_coverage_section(report)
    assert section is not None
    tables = blocks_of(section, Table)
    assert [table.id for table in tables] == [
        "coverage-total", "coverage-by-model", "coverage-by-judge", "coverage-by-country", "coverage-by-topic",
    ]  # fmt: skip
    coverage = report.coverage
    groups = (coverage.total, coverage.models, coverage.judges, coverage.countries, coverage.topics)
    for table, unsorted_rows in zip(tables, groups, strict=True):
        rows = unsorted_rows
        if table.max_rows is not None:
            rows = sorted(unsorted_rows, key=lambda row: row.ok / row.planned)
        for cells, row in zip(cells_of(table), rows, strict=True):
            counts = dict(zip((column.title for column in table.columns), cells, strict=True))
            assert counts["Share"] == CountShare(row.ok, row.planned)
            losses = {title: n for title, n in counts.items() if str(title).lower().replace(" ", "_") in row.losses}
            assert len(losses) == len(row.losses)
            assert [counts["Planned"], counts["Usable"]] == [row.planned, row.ok]
            bar = counts["Breakdown"]
            assert isinstance(bar, list)
            assert BarSegment("ok", row.ok) in bar
            assert sum(segment.n for segment in bar) == row.planned
            assert {segment.series for segment in bar} <= {series for series, _ in table.legend}


def test_only_the_total_and_the_models_are_open(report: Report) -> None:
    section = build_coverage_section(report)
    assert section is not None
    assert [disclosure.is_open for disclosure in blocks_of(section, Disclosure)] == [True, True, False, False, False]


def test_groups_without_missing_answers_are_one_sentence(report: Report) -> None:
    groups = {
        name: [row.model_copy(update={"ok": row.planned, "losses": {}, "missing": 0}) for row in rows]
        for name, rows in (("judges", report.coverage.judges), ("countries", report.coverage.countries))
    }
    section = build_coverage_section(report.model_copy(update={"coverage": report.coverage.model_copy(update=groups)}))
    assert section is not None
    assert [table.id for table in blocks_of(section, Table)] == [
        "coverage-total", "coverage-by-model", "coverage-by-topic",
    ]  # fmt: skip
    assert "All planned answers of each judge and country are usable." in text_of(section)


def test_undocumented_finish_reasons_and_marked_traces_are_stated(report: Report) -> None:
    rows = [FinishReasonRow(name="alder", reason="eos<b>", answers=2)]
    coverage = report.coverage.model_copy(
        update={
            "undocumented_finish_reasons": rows,
            "shortened_traces": {"birch": 1200, "cedar": 1},
            "addressing_traces": {"birch": 1},
        }
    )
    section = build_coverage_section(report.model_copy(update={"coverage": coverage}))
    assert section is not None
    text = text_of(section)
    assert "Some finish reasons are not documented: alder: “eos<b>” (2 answers)." in text
    assert "1\u202f201 traces longer than probes.review.max_trace_chars (birch: 1\u202f200, cedar: 1)." in text
    assert "1 usable trace (birch: 1). To read them: auditor traces --addressing-judge." in text


def test_without_planned_answers_there_is_no_section(report: Report) -> None:
    coverage = report.coverage.model_copy(update={"total": []})
    assert build_coverage_section(report.model_copy(update={"coverage": coverage})) is None
