"""User-defined tasks: loading their items, and comparing answers with each other and with the truth."""

from __future__ import annotations

from auditor.tasks.answers import canonical_answer, is_correct, most_common_answer, parse_number, parse_quantity
from auditor.tasks.loader import describe_answer_format, load_task, survey_from_task

__all__ = [
    "canonical_answer",
    "describe_answer_format",
    "is_correct",
    "load_task",
    "most_common_answer",
    "parse_number",
    "parse_quantity",
    "survey_from_task",
]
