"""Summary tables that are printed at the end of a run; narrow enough for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.domain import Purpose
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Cell, Column, CountShare, Table
from auditor.reports.sections.alignment_table import two_way_r
from auditor.reports.sections.phrasing import SeriesLabels
from auditor.reports.sections.sampling_marks import NO_MARKS, SamplingMarks


def build_run_summary(report: Report) -> list[Table]:
    """Build a table for each probe that was run: the survey, the task, paraphrases and logic."""
    return [*_alignment_table(report), *_task_table(report), *_semantic_table(report), *_logic_table(report)]


def _build_columns(*titles: str, row_noun: str = "model", marks: SamplingMarks = NO_MARKS) -> list[Column]:
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
            None if row.pearson_r is None else two_way_r(row),
            row.p_value,
            row.mae,
            cosines.get((row.method, row.model)),
            peer_agreement.get(row.model),
            shares.get((row.method, row.model)),
            *marks.cells(row.model),
        ]
        for row in report.alignment
    ]
    columns = _build_columns("cells", "r (95% CI)", "p", "MAE", "self-cons.", "peers", marks=marks)
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
    columns = _build_columns("accuracy (95% CI)", "MAE", "samples agree", "peers", marks=marks)
    yield Table("task", "Answers to the items", "", columns, rows)


def _semantic_table(report: Report) -> Iterator[Table]:
    """Yield consistency under paraphrase; one row for each model."""
    if report.semantic is None:
        return
    marks = SamplingMarks.of(report.sampling, Purpose.MORAL)
    rows: list[list[Cell]] = [
        [
            row.model,
            row.consistency.n,
            None if row.consistency.value is None else row.consistency,
            row.shuffled.mean if row.length_matched.mean is None else row.length_matched.mean,
            CountShare(row.ok, row.planned),
            *marks.cells(row.model),
        ]
        for row in report.semantic.models
    ]
    columns = _build_columns("questions", "consistency (95% CI)", "by chance", marks=marks)
    yield Table("semantic", "Consistency under paraphrase", "", columns, rows)


def _logic_table(report: Report) -> Iterator[Table]:
    """Yield the logical consistency of preferences; one row for each judge."""
    if report.logic is None:
        return
    rows: list[list[Cell]] = [
        [
            row.judge,
            row.transitivity[0].share.value,
            row.commutativity.value,
            row.negation.value,
            row.self_agreement.value,
            row.human_agreement.value,
            CountShare(row.ok, row.questions),
        ]
        for row in report.logic.judges
    ]
    titles = ("transitivity", "commutativity", "negation", "self-agr.", "people")
    yield Table("logic", "Logical consistency", "", _build_columns(*titles, row_noun="judge"), rows)
