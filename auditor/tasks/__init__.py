"""Tasks of a user's own: reading their items, and telling which answers are the same and which are right."""

from __future__ import annotations

from auditor.tasks.answers import canonical_answer, is_correct, most_common_answer, parse_number, parse_quantity
from auditor.tasks.loader import load_task, survey_from_task

__all__ = [
    "canonical_answer",
    "is_correct",
    "load_task",
    "most_common_answer",
    "parse_number",
    "parse_quantity",
    "survey_from_task",
]
