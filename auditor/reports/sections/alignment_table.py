"""The table of agreement with people: its columns, and the estimates in its cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from auditor.domain import Purpose
from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife_interval import MIN_UNITS
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Cell, Paragraph, Reason, Row, Table
from auditor.reports.sections.phrasing import SeriesLabels
from auditor.reports.sections.sampling_marks import SamplingMarks
from auditor.reports.sections.tables import tabulate


def _merge_missing(cells: Iterable[Cell]) -> list[Cell]:
    """Replace adjacent estimates that lack a value for the same reason by one cell with the reason."""
    merged: list[Cell] = []
    for reason, group in groupby(cells, _missing_reason):
        members = list(group)
        merged += [Reason(reason, len(members))] if reason is not None and len(members) > 1 else members
    return merged


def _missing_reason(cell: Cell) -> str | None:
    """The reason of an estimate without a value; None for other cells."""
    return cell.reason if isinstance(cell, Estimate) and cell.value is None else None


def build_alignment_table(report: Report, rows: Sequence[AlignmentRow], labels: SeriesLabels) -> Table:
    """The table of agreement with people, one row for each series of scores."""
    survey = report.audit.survey
    low_label, high_label = ("the low end", "the high end") if survey.topic_questions else survey.scale
    marks = SamplingMarks.of(report.sampling, Purpose.DIRECT)
    ceiling_note = "" if any(row.ceiling is not None for row in rows) else " (not available here)"
    caption = (
        f"Scores range from −1 ({low_label}) to +1 ({high_label}). MAE, RMSE: lower is better. r and ρ say how the "
        "model orders countries and topics (−1 to +1, higher is better); p tests r = 0. r without sampling noise is "
        "for unlimited samples per cell (Spearman’s correction). The highest r is what a perfect model is expected to "
        f"reach{ceiling_note}. Lost samples have no usable score."
        f"{marks.remark('Values of r without sampling noise')}"
    )
    derived = {"model": labels.label, **marks.derived}
    title = "Agreement with people"
    table = tabulate("alignment", title, caption, rows, AlignmentRow, derived, more_columns=marks.columns)
    merged_rows = [_merge_missing(row.cells) for row in table.rows if isinstance(row, Row)]
    return replace(table, rows=merged_rows, is_dense=True)


def build_alignment_remarks(report: Report) -> Paragraph:
    """Remarks on the columns of the alignment table."""
    survey = report.audit.survey
    n_not_asked = survey.cells - survey.asked
    not_asked = f"In {n_not_asked} cells, people were not asked." if n_not_asked else "People were asked in every cell."
    units = "zones" if survey.clusters == "zone" else "countries"
    return Paragraph(
        f"Cells without a score of people or of the model are dropped. {not_asked} Cells of one country or topic are "
        f"correlated, so the 95% CI is a two-way jackknife, which needs at least {MIN_UNITS} {units} and topics. That "
        "of the bias for these countries is over topics only: neighbours may share a bias that no interval shows.",
        "note",
    )
