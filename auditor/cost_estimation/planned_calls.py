"""Calls of one model at one stage, the input of a cost estimate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from auditor.config import ModelSection
from auditor.domain import Call, Purpose
from auditor.reports.data.cost.forecast import ForecastRange

T = TypeVar("T")
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


def sample_evenly(items: Sequence[T], max_items: int = MAX_EXAMPLES) -> Sequence[T]:
    """At most `max_items` items, such as cells or questions, at equal distances."""
    return items[:: max(1, len(items) // max_items)][:max_items]


def merge_planned_calls(planned_calls: Iterable[PlannedCalls]) -> list[PlannedCalls]:
    """Add up the calls of one model for one purpose, such as answers for an audit and for an experiment on it."""
    merged: dict[tuple[str, Purpose], PlannedCalls] = {}
    for planned in planned_calls:
        key = (planned.model.name, planned.purpose)
        if earlier := merged.get(key):
            calls, examples = earlier.calls + planned.calls, [*earlier.examples, *planned.examples]
            planned = replace(earlier, calls=calls, examples=examples)
        merged[key] = planned
    return list(merged.values())
