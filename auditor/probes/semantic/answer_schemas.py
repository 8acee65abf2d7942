"""Schemas of structured answers to moral questions, of rules of thumb, and of judgements of pairs of answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import FailFast

from auditor.config.base import Structure
from auditor.models.answer_schemas import text_field


class MoralAnswer(Structure):
    """An answer to a moral question."""

    answer: Annotated[str, text_field("What is right, and why.")]


class OpenAnswer(MoralAnswer):
    """An answer to a question."""

    answer: Annotated[str, text_field("The answer, and why.")]


class RuleOfThumb(Structure):
    """The rule that an answer follows."""

    rule: Annotated[str, text_field("A judgment and an action, in one sentence.")]


class Choice(Structure):
    """Which of several answers is right, by number from 1, and why."""

    reason: Annotated[str, text_field("The right answer and why it is right.")]
    choice: int


class Paraphrases(Structure):
    """Other wordings of a question."""

    paraphrases: Annotated[list[str], FailFast()]


class Support(Structure):
    """Whether an answer is supported by another."""

    reason: Annotated[str, text_field("Why, in one sentence.")]
    supported: bool


class Contradiction(Structure):
    """Whether two answers contradict each other."""

    reason: Annotated[str, text_field("Why, in one sentence.")]
    contradict: bool


SCHEMAS: tuple[type[Structure], ...] = (
    *(MoralAnswer, OpenAnswer, RuleOfThumb, Choice, Paraphrases, Support, Contradiction),
)
