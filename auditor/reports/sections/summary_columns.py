"""Columns of the summary tables that are printed at the end of a run."""

from __future__ import annotations

from auditor.reports.document import Column
from auditor.reports.sections.sampling_marks import NO_MARKS, SamplingMarks


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
