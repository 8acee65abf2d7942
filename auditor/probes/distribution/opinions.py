"""Opinions: models' answers on the scale of a survey, stated as shares or sampled as single answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from auditor.domain.records import CallKey, Key, LongText, Nullable, stored
from auditor.domain.terms import Cell, Outcome, Purpose

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
