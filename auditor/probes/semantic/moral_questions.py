"""The built-in moral questions: one file per foundation, each question with five paraphrases, all written by hand.

A paraphrase keeps the meaning of "yes" and "no", so that answers to different wordings can be compared directly.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Annotated

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from auditor.config.validation_messages import explain_validation_error
from auditor.errors import ConfigError
from auditor.input_files import parse_toml
from auditor.probes.semantic.records import FOUNDATIONS, MoralQuestion

NonEmptyText = Annotated[str, Field(min_length=1)]


class QuestionEntry(BaseModel):
    """One question of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: NonEmptyText
    topics: list[NonEmptyText] = []
    text: NonEmptyText
    paraphrases: list[NonEmptyText] = []
    country: str = ""


class QuestionFile(BaseModel):
    """A file of questions about one foundation, in one language."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    foundation: str = ""
    language: str = "en"
    question: Annotated[list[QuestionEntry], Field(min_length=1)]


@functools.cache
def load_built_in_questions() -> tuple[MoralQuestion, ...]:
    """Load all built-in questions, alternating between the six foundations."""
    folder = resources.files("auditor.prompts") / "questions" / "en"
    questions_by_foundation = [
        parse_questions((folder / f"{foundation}.toml").read_text(encoding="utf-8"), f"{foundation}.toml")
        for foundation in FOUNDATIONS
    ]
    return tuple(
        question
        for next_of_each_foundation in zip(*questions_by_foundation, strict=True)
        for question in next_of_each_foundation
    )


def parse_questions(text: str, source: str) -> tuple[MoralQuestion, ...]:
    """Parse a TOML file of questions.

    Args:
        text: contents of the file.
        source: name of the file, for error messages.

    Raises:
        ConfigError: the file is invalid; the message names the place.
    """
    toml_table = parse_toml(text, source, ConfigError)
    try:
        file = QuestionFile.model_validate(toml_table)
    except pydantic.ValidationError as error:
        problem = explain_validation_error(error, toml_table, QuestionFile)
        raise ConfigError(f"{source}: {problem}", "Each [[question]] has an id and a text.") from None
    return tuple(
        MoralQuestion(
            id=entry.id,
            text=entry.text,
            paraphrases=tuple(entry.paraphrases),
            foundation=file.foundation,
            topics=tuple(entry.topics),
            language=file.language,
            country=entry.country,
        )
        for entry in file.question
    )
