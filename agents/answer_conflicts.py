"""Conflicts of a task: models that answer an item differently, and which samples represent a model's answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from auditor.domain import Cell, CellScore, Conflict, ConflictKind


def find_answer_conflicts(scores: Iterable[CellScore], models: Sequence[str], cells: Sequence[Cell]) -> list[Conflict]:
    """Find the pairs of models whose most common answers to an item differ: one open conflict per item and pair.

    A model without a most common answer is in no conflict.

    Args:
        scores: of all models on all items.
        models, cells: in the order of the audit.
    """
    commonest_answers = {(score.cell, score.model): score.answer for score in scores}
    return [
        Conflict(
            cell, left, right, None, None, ConflictKind.ANSWERS, answer_left=left_answer, answer_right=right_answer
        )
        for cell in cells
        for left, right in combinations(models, 2)
        for left_answer, right_answer in [(commonest_answers.get((cell, left)), commonest_answers.get((cell, right)))]
        if left_answer is not None and right_answer is not None and left_answer != right_answer
    ]


def add_answers(conflicts: Iterable[Conflict], scores: Iterable[CellScore]) -> list[Conflict]:
    """Return the conflicts with both models' answers to the item, in the units of the task; None if there is none."""
    commonest_answers = {(score.cell, score.model): score.answer for score in scores}
    return [
        replace(
            conflict,
            answer_left=commonest_answers.get((conflict.cell, conflict.left)),
            answer_right=commonest_answers.get((conflict.cell, conflict.right)),
        )
        for conflict in conflicts
    ]


def commonest_answer_filter(
    scores: Iterable[CellScore], answers: Mapping[tuple[str, Cell, int], str]
) -> Callable[[tuple[str, Cell, int]], bool]:
    """Build a predicate: whether a sample (model, item, number) gives its model's most common answer.

    Only verdicts on such samples count for the model's side of a conflict.

    Args:
        scores: all scores of an audit.
        answers: by sample (model, item, number), all answers that could be parsed.
    """
    commonest_answers = {(score.model, score.cell): score.answer for score in scores}
    # The first two parts of a sample's key are the model and the cell.
    return lambda sample_key: sample_key in answers and answers[sample_key] == commonest_answers.get(sample_key[:2])
