"""Summary tables that are printed at the end of a run; narrow enough for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.config.sections import DEFAULT_MIN_COVERAGE
from auditor.domain import Purpose
from auditor.reports.data.agreement.alignment import rank_by_error
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Cell, Column, CountShare, Table
from auditor.reports.number_format import format_percent
from auditor.reports.sections.phrasing import SeriesLabels
from auditor.reports.sections.probe_sections import build_probe_tables
from auditor.reports.sections.requests import NO_MARKS, SamplingMarks


def build_summary_columns(*titles: str, row_noun: str = "model", marks: SamplingMarks = NO_MARKS) -> list[Column]:
    """Columns of numbers, and of estimates without their n where the title announces an interval.

    `marks` adds a column with the sampling settings, where these make the figures incomparable.
    """
    measures = [
        Column(title, "estimate", show_n=False)
        if title.endswith("(95% CI)")
        else Column(title, "number", style="p_value" if title == "p" else "decimal")
        for title in titles
    ]
    return [Column(row_noun, "name"), *measures, Column("usable", "share"), *marks.columns]


def build_run_summary(report: Report) -> list[Table]:
    """Build a table for each probe that was run: the survey, the task, and probes with a stage of their own."""
    return [*_alignment_table(report), *_task_table(report), *build_probe_tables(report)]


def describe_low_coverage(report: Report, min_coverage: float | None) -> Iterator[str]:
    """Yield a warning on each model with too few usable answers for `auditor check`.

    Args:
        min_coverage: the configuration's requirement; None for the default one.
    """
    threshold = DEFAULT_MIN_COVERAGE if min_coverage is None else min_coverage
    for row in report.coverage.models:
        if row.stage != "review" and row.planned and row.ok / row.planned < threshold:
            share = f"{format_percent(row.ok, row.planned)}, below {threshold:.0%} (min_coverage)"
            yield f"Too few {row.counted_label} of {row.name} are usable: {share}."


def _alignment_table(report: Report) -> Iterator[Table]:
    """Yield agreement with people; one row for each series of scores, with the interval over countries and topics."""
    labels, marks = SeriesLabels.of(report), SamplingMarks.of(report.sampling, Purpose.DIRECT)
    cosines = {(row.method, row.model): row.cosine.value for row in report.self_consistency}
    peer_agreement = {row.model: row.agreement.value for row in report.peer_agreement}
    shares = {(row.method, row.name): CountShare(row.ok, row.planned) for row in report.coverage.models}
    rows: list[list[Cell]] = [
        [
            labels.label(row),
            row.n,
            None if row.mae.value is None else row.mae,
            row.concordance.value,
            None if row.pearson_r.value is None else row.pearson_r,
            cosines.get((row.method, row.model)),
            peer_agreement.get(row.model),
            shares.get((row.method, row.model)),
            *marks.cells(row.model),
        ]
        for row in sorted(report.alignment, key=rank_by_error)
    ]
    columns = build_summary_columns(
        "cells", "MAE (95% CI)", "concordance", "r (95% CI)", "consistency", "share VALID", marks=marks
    )
    if rows:
        yield Table("alignment", "Agreement with people", "", columns, rows)


def _task_table(report: Report) -> Iterator[Table]:
    """Yield the answers to the items of a task; one row for each model."""
    if report.task is None:
        return
    marks = SamplingMarks.of(report.sampling, Purpose.DIRECT)
    peer_agreement = {row.model: row.agreement.value for row in report.peer_agreement}
    shares = {row.name: CountShare(row.ok, row.planned) for row in report.coverage.models if row.stage == "direct"}
    rows: list[list[Cell]] = [
        [
            row.model,
            None if row.accuracy.value is None else row.accuracy,
            row.score.mae.value if row.score else None,
            row.sample_agreement.value,
            peer_agreement.get(row.model),
            shares.get(row.model),
            *marks.cells(row.model),
        ]
        for row in report.task.models
    ]
    columns = build_summary_columns("accuracy (95% CI)", "MAE", "samples agree", "share VALID", marks=marks)
    yield Table("task", "Answers to the items", "", columns, rows)
