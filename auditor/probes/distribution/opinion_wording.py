"""Words of the questions about opinions on a survey's own scale."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources

from pydantic import BaseModel, ConfigDict

from auditor.errors import ConfigError

FILE_NAME = "distribution.toml"


class _Words(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModeWords(_Words):
    """A text for each way of asking, see `OpinionMode`."""

    verbalized: str
    sampled: str
    tokens: str


class EnglishWords(_Words):
    """Texts that other languages do not have.

    Attributes:
        group: respondents of a group, with the placeholders `{people}`, `{dimension}` and `{group}`.
        placebo: dimension and group of an attribute that says nothing about opinions.
        repair: asks once more for an answer that could not be read, with the placeholder `{problem}`.
    """

    group: str
    placebo: tuple[str, str]
    repair: str


class OpinionWording(_Words):
    """One language's texts.

    Attributes:
        question: with the placeholders `{people}`, `{topic}`, `{answers}` and `{task}`.
        country, anywhere: the respondents, with the placeholder `{country}`, and without a country.
        systems: system messages; that of `verbalized` has the placeholder `{n}`, the number of answers.
        tasks: the last line of the question.
        english: None in other languages.
    """

    question: str
    country: str
    anywhere: str
    systems: ModeWords
    tasks: ModeWords
    english: EnglishWords | None = None


@functools.cache
def load_opinion_wording(language: str) -> OpinionWording:
    """Load the texts of a language.

    Raises:
        ConfigError: there are none.
    """
    file = resources.files("auditor.prompts") / language / FILE_NAME
    if not file.is_file():
        raise ConfigError(
            f"the probe 'distribution' has no questions in the language '{language}'.",
            'Set language = "en", or remove the probe.',
        )
    return OpinionWording.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))


def load_english_words() -> EnglishWords:
    """Load the texts that only English has."""
    words = load_opinion_wording("en").english
    assert words is not None
    return words
