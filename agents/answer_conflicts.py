"""Conflicts of a task: two models that answer an item otherwise, and the verdicts that speak for an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from auditor.domain import Cell, CellScore, Conflict, ConflictKind


def find_answer_conflicts(scores: Iterable[CellScore], models: Sequence[str], cells: Sequence[Cell]) -> list[Conflict]:
    """Every pair of models whose commonest answers to an item differ; a model without one is in no conflict.

    Args:
        scores: of all models on all items.
        models, cells: in the order of the audit.
    """
    held = {(s.cell, s.model): s.answer for s in scores}
    return [
        Conflict(cell, left, right, None, None, ConflictKind.ANSWERS, answer_left=one, answer_right=other)
        for cell in cells
        for left, right in combinations(models, 2)
        for one, other in [(held.get((cell, left)), held.get((cell, right)))]
        if one is not None and other is not None and one != other
    ]


def add_answers(conflicts: Iterable[Conflict], scores: Iterable[CellScore]) -> list[Conflict]:
    """Conflicts of scores with both sides in the units of the task."""
    held = {(s.cell, s.model): s.answer for s in scores}
    return [
        replace(c, answer_left=held.get((c.cell, c.left)), answer_right=held.get((c.cell, c.right))) for c in conflicts
    ]


def commonest_answer_filter(
    scores: Iterable[CellScore], answers: Mapping[tuple[str, Cell, int], str]
) -> Callable[[tuple[str, Cell, int]], bool]:
    """Tells whether a sample, by model, item and number, gives its model's commonest answer.

    Only verdicts on such samples speak for the side that is in conflict.

    Args:
        scores: of one audit.
        answers: of every sample of it that could be read.
    """
    held = {(s.model, s.cell): s.answer for s in scores}
    return lambda key: key in answers and answers[key] == held.get(key[:2])
