"""The built-in moral questions: one file a foundation, each question with five other wordings, all written by hand.

A wording keeps what a "yes" would mean, so that answers to two wordings can be compared as they are.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Annotated

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from auditor.config.validation_messages import explain_validation_error
from auditor.domain.semantic import FOUNDATIONS, MoralQuestion
from auditor.errors import ConfigError
from auditor.input_files import parse_toml

NonEmptyText = Annotated[str, Field(min_length=1)]


class QuestionEntry(BaseModel):
    """One question of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: NonEmptyText
    topics: list[NonEmptyText] = []
    text: NonEmptyText
    paraphrases: list[NonEmptyText] = []


class QuestionFile(BaseModel):
    """A file of questions about one foundation, in one language."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    foundation: str = ""
    language: str = "en"
    question: Annotated[list[QuestionEntry], Field(min_length=1)]


@functools.cache
def load_built_in_questions() -> tuple[MoralQuestion, ...]:
    """All of them, the foundations in turn: the first few are about all six."""
    folder = resources.files("auditor.prompts") / "questions" / "en"
    files = [parse_questions((folder / f"{f}.toml").read_text(encoding="utf-8"), f"{f}.toml") for f in FOUNDATIONS]
    return tuple(question for turn in zip(*files, strict=True) for question in turn)


def parse_questions(text: str, source: str) -> tuple[MoralQuestion, ...]:
    """Read a TOML file of questions.

    Raises:
        ConfigError: it is not laid out as it must be; the message says where.
    """
    data = parse_toml(text, source, ConfigError)
    try:
        file = QuestionFile.model_validate(data)
    except pydantic.ValidationError as error:
        problem = explain_validation_error(error, data, QuestionFile)
        raise ConfigError(f"{source}: {problem}", "Each [[question]] has an id and a text.") from None
    return tuple(
        MoralQuestion(
            id=entry.id,
            text=entry.text,
            paraphrases=tuple(entry.paraphrases),
            foundation=file.foundation,
            topics=tuple(entry.topics),
            language=file.language,
        )
        for entry in file.question
    )
