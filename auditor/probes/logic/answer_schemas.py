"""Schemas of structured answers about two items."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import field_validator

from auditor.config.base import Structure
from auditor.models.answer_schemas import normalize_case, text_field


class Preference(Structure):
    """Which of two items, or neither."""

    answer: Literal["A", "B", "TIE"]

    _normalize_answer = field_validator("answer", mode="before")(normalize_case)


class ReasonedPreference(Structure):
    """Which of two items, after a chain of thought."""

    reasoning: Annotated[str, text_field("Step-by-step reasoning.")]
    answer: Literal["A", "B", "TIE"]

    _normalize_answer = field_validator("answer", mode="before")(normalize_case)


class BinaryPreference(Structure):
    """Which of two items."""

    answer: Literal["A", "B"]

    _normalize_answer = field_validator("answer", mode="before")(normalize_case)


class ReasonedBinaryPreference(Structure):
    """Which of two items, after a chain of thought."""

    reasoning: Annotated[str, text_field("Step-by-step reasoning.")]
    answer: Literal["A", "B"]

    _normalize_answer = field_validator("answer", mode="before")(normalize_case)


SCHEMAS: tuple[type[Structure], ...] = (Preference, ReasonedPreference, BinaryPreference, ReasonedBinaryPreference)
