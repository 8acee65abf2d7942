"""Rows of a report with a test each: p-values adjusted for their number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan
from typing import TypeVar

from auditor.metrics.intervals.multiple_testing import adjust_tests, holm
from auditor.reports.data.report_model import ClaimTest, ReportModel

AnyRow = TypeVar("AnyRow", bound=ReportModel)


def adjust_rows(rows: Iterable[AnyRow], field: str, family: str) -> list[AnyRow]:
    """Copy the rows with the p-values of the tests in a field adjusted for all of them; see `adjust_tests`."""
    members = list(rows)
    tests = adjust_tests((getattr(row, field) for row in members), family)
    return [row.model_copy(update={field: test}) for row, test in zip(members, tests, strict=True)]


def adjust_claims(p_values: Sequence[float], family: str) -> list[ClaimTest]:
    """Tests of claims, adjusted for all of them (Holm); nan where a claim has no test."""
    return [
        ClaimTest(p_value=float(p_value), adjusted_p_value=float(adjusted), test_family=family)
        if not isnan(adjusted)
        else ClaimTest(p_value=None, adjusted_p_value=None)
        for p_value, adjusted in zip(p_values, holm(p_values), strict=True)
    ]
