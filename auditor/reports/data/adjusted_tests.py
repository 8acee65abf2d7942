"""Rows of a report with a test each: p-values adjusted for their number, and whether a sentence may name a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from auditor.metrics.confidence import SIGNIFICANCE_LEVEL
from auditor.metrics.multiple_testing import holm


class _TestedRow(Protocol):
    """A row with the p-value of a test, which may be None."""

    @property
    def p_value(self) -> float | None: ...
    @property
    def adjusted_p_value(self) -> float | None: ...
    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self: ...


AnyRow = TypeVar("AnyRow", bound=_TestedRow)


def adjust_rows(rows: Sequence[AnyRow]) -> list[AnyRow]:
    """Copy the rows with p-values adjusted for all of them (Holm): a false finding among them has a probability of 5%.

    Rows without a p-value are not counted, and have no adjusted one.
    """
    adjusted = holm([np.nan if row.p_value is None else row.p_value for row in rows])
    return [
        row if np.isnan(p_value) else row.model_copy(update={"adjusted_p_value": float(p_value)})
        for row, p_value in zip(rows, adjusted, strict=True)
    ]


def is_significant(row: _TestedRow) -> bool:
    """Whether a row differs from its null hypothesis, given the number of tests."""
    return row.adjusted_p_value is not None and row.adjusted_p_value < SIGNIFICANCE_LEVEL
