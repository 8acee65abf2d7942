"""Calls of one model at one stage, the input of a cost estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor.config import ModelSection
from auditor.domain import Call, Cell, Purpose
from auditor.reports.data.cost.forecast import ForecastRange

MAX_EXAMPLES = 40
"""Maximum number of cells, questions or pairs whose prompts are built, at equal distances among all."""


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """Calls of one model at one stage, for an estimate of their tokens and cost.

    Attributes:
        model: the model's section of the configuration.
        purpose: what the calls are for.
        calls: number of calls: low, expected, high.
        examples: some of the calls, from whose prompts the mean size is computed.
        expected_words: expected number of words in the prose of an answer.
    """

    model: ModelSection
    purpose: Purpose
    calls: ForecastRange
    examples: Sequence[Call]
    expected_words: float


def sample_evenly(cells: Sequence[Cell], max_cells: int = MAX_EXAMPLES) -> Sequence[Cell]:
    """At most `max_cells` cells at equal distances."""
    return cells[:: max(1, len(cells) // max_cells)][:max_cells]
