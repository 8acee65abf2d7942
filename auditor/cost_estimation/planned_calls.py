"""What an estimate is made of: calls of one model at one stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor.config import ModelSection
from auditor.domain import Call, Purpose
from auditor.reports.cost.forecast import ForecastRange

MAX_EXAMPLES = 40
"""Cells, questions or pairs whose prompts are built, evenly spread over all."""


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """Calls of one model at one stage.

    Attributes:
        calls: low, expected, high.
        examples: some of the calls, built.
        words: words that an answer is expected to have.
    """

    model: ModelSection
    purpose: Purpose
    calls: ForecastRange
    examples: Sequence[Call]
    expected_words: float
