"""Opinions: models' answers on the scale of a survey, stated as shares or sampled, and the words of the questions."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict

from auditor.domain.records import CallKey, Key, LongText, Nullable, stored
from auditor.domain.terms import Cell, Outcome, Purpose
from auditor.errors import ConfigError

OPINION_PURPOSE = Purpose.declare("opinion")
"""An answer on a survey's own scale, or the shares of people's answers."""


class OpinionMode(StrEnum):
    """How a model was asked."""

    VERBALIZED = "verbalized"
    """It stated the shares of people's answers: what it knows."""
    SAMPLED = "sampled"
    """It answered as one person, several times: what it does."""
    TOKENS = "tokens"
    """Probabilities of the answers as the next token."""


class ScaleOrder(StrEnum):
    """The order in which the scale was shown."""

    UP = "up"
    """From the low end to the high one."""
    DOWN = "down"
    UNKNOWN = ""


PLACEBO = "placebo"
"""Dimension of an attribute that says nothing about opinions, such as the first letter of a surname."""
MAX_SUM_ERROR = 0.1
"""By how much stated shares may differ from 1 in total; they are then divided by their sum, and counted."""
NO_COUNTRY = ""
"""Country of an answer to a question that names none."""
MIN_GROUP_RESPONDENTS = 100
"""Default of the fewest respondents of a group in a cell; half of that effectively."""


@stored("opinion")
@dataclass(frozen=True, slots=True)
class Opinion:
    """One answer of a model about a cell, or about a group of the cell's people.

    Attributes:
        dimension, group: such as `sex` and `women`; empty for everyone.
        sample: number of the answer, from 0.
        shares: in the order of the scale, from low to high; a sampled answer has a single 1. None without an answer.
        n: number of answers behind the shares; None for shares that the model stated.
        is_rescaled: whether stated shares were divided by their sum.
        mass: with `tokens`, probability of all answers together, before it was divided by itself; else None.
        key, repair_key: of the call, and of the one that asked for the answer once more; None for imported answers.
        repeat_key, first_outcome: as in `Trace`.
    """

    model: Key[str]
    cell: Key[Cell]
    dimension: Key[str]
    group: Key[str]
    mode: Key[OpinionMode]
    scale_order: Key[ScaleOrder]
    sample: Key[int]
    outcome: Outcome
    shares: tuple[float, ...] | None
    n: int | None = None
    is_rescaled: Nullable[bool] = False
    mass: float | None = None
    key: Annotated[str | None, CallKey(OPINION_PURPOSE, "model")] = None
    repair_key: Annotated[str | None, CallKey(OPINION_PURPOSE, "model")] = None
    repeat_key: Annotated[str | None, CallKey(OPINION_PURPOSE, "model")] = None
    first_outcome: Outcome | None = None


@stored("survey_shares")
@dataclass(frozen=True, slots=True)
class SurveyShares:
    """The shares of people's answers that an audit compares with, as JSON."""

    shares: LongText[str]


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
