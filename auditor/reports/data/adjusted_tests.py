"""Rows of a report with a test each: p-values adjusted for their number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.reports.data.report_model import ReportModel

AnyRow = TypeVar("AnyRow", bound=ReportModel)


def adjust_rows(rows: Iterable[AnyRow], field: str, family: str) -> list[AnyRow]:
    """Copy the rows with the p-values of the tests in a field adjusted for all of them; see `adjust_tests`."""
    members = list(rows)
    tests = adjust_tests((getattr(row, field) for row in members), family)
    return [row.model_copy(update={field: test}) for row, test in zip(members, tests, strict=True)]
