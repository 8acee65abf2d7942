"""Tasks of a user's own: reading their items, and telling which answers are the same and which are right."""

from __future__ import annotations

from auditor.tasks.answers import canonical, commonest, is_right, number_of, plain_number
from auditor.tasks.loader import load_task, survey_of_task

__all__ = ["canonical", "commonest", "is_right", "load_task", "number_of", "plain_number", "survey_of_task"]
