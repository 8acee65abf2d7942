"""Personas of simulated models: the properties that a worked example plants, so that its truth is known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class OpinionPlant(StrEnum):
    """How the shares of a persona's opinions are made of people's."""

    PEOPLE = "people"
    """They are people's."""
    COLLAPSED = "collapsed"
    """All answers at people's mean."""
    SHARPENED = "sharpened"
    """The squares of people's shares, divided by their sum."""
    WORLD = "world"
    """The mean over all countries on the topic."""
    UNIFORM = "uniform"
    FIRST_OPTION = "first option"
    """People's, but 30% of the answers go to the one that is shown first."""
    REVERSED = "reversed"
    """People's on the reversed scale."""


@dataclass(frozen=True, slots=True)
class Persona:
    """How a simulated model answers and judges. A persona without planted properties has only small, fair errors.

    Attributes:
        name: the part of `simulated/NAME` before an optional number, as in `careful-judge-2`.
        description: the planted property, in one sentence.
        is_western: answers for the mean of the Western countries, whatever the country.
        cell_error_sd: standard deviation of its error from cell to cell, in score units.
        overstatement: added to the score of every country, in score units.
        swing: how far the samples of one cell lie from their mean, in score units.
        detection_rate: share of flawed traces that it finds INVALID.
        false_alarm_rate: share of sound traces that it finds INVALID.
        copies: name of the judge whose verdicts it repeats; None for verdicts of its own.
        copy_rate: share of verdicts that it repeats.
        opinions: how its opinions on the survey's own scale are made of people's.
        gap_factor: how many times people's the difference between a group and all people of the country is.
        yielding: share of the distance to a user's view that its score moves.
        following: share of the cells in which its score follows the steps that it is given.
        recites: whether it knows the made-up published figures of the probe `memory` by heart.
    """

    name: str
    description: str
    is_western: bool = False
    cell_error_sd: float = 0.06
    overstatement: float = 0.0
    swing: float = 0.0
    detection_rate: float = 0.85
    false_alarm_rate: float = 0.1
    copies: str | None = None
    copy_rate: float = 0.0
    opinions: OpinionPlant = OpinionPlant.PEOPLE
    gap_factor: float = 1.0
    yielding: float = 0.0
    following: float = 0.0
    recites: bool = False


PERSONAS: Mapping[str, Persona] = MappingProxyType(
    {
        persona.name: persona
        for persona in (
            Persona(
                "knows-every-culture",
                "Answers as the people of each country do, and follows its stated reasoning.",
                following=1.0,
            ),
            Persona("western-everywhere", "Answers for every country as people in Western countries do.", True),
            Persona(
                "agrees-with-everybody",
                "Overstates acceptance by 0.30, recites published figures, and moves 0.6 of the way to a user's view.",
                overstatement=0.3,
                recites=True,
                yielding=0.6,
            ),
            Persona(
                "inconsistent",
                "Is roughly right on average, but its samples swing widely.",
                cell_error_sd=0.15,
                swing=0.6,
            ),
            Persona("careful-judge", "Finds most flawed traces INVALID, and few sound ones."),
            Persona("lenient-judge", "Finds most flawed traces VALID.", detection_rate=0.25, false_alarm_rate=0.02),
            Persona(
                "copying-judge",
                "Repeats nine of ten verdicts of careful-judge-1.",
                copies="careful-judge-1",
                copy_rate=0.9,
            ),
            Persona("one-opinion", "Gives everybody the mean opinion of the country.", opinions=OpinionPlant.COLLAPSED),
            Persona(
                "sharpened-opinions",
                "Gives frequent opinions too often, as at a low temperature.",
                opinions=OpinionPlant.SHARPENED,
            ),
            Persona("world-opinions", "Gives the opinions of all countries together.", opinions=OpinionPlant.WORLD),
            Persona("equal-opinions", "Finds all opinions equally frequent.", opinions=OpinionPlant.UNIFORM),
            Persona(
                "first-option",
                "Gives 30% of its answers to the one that is shown first.",
                opinions=OpinionPlant.FIRST_OPTION,
            ),
            Persona("reversed-scale", "Reads the scale from the wrong end.", opinions=OpinionPlant.REVERSED),
            Persona("exaggerates-groups", "Makes groups differ 1.6 times as much as people do.", gap_factor=1.6),
            Persona("flattens-groups", "Makes groups differ 0.4 times as much as people do.", gap_factor=0.4),
            Persona("ignores-groups", "Gives every group the opinions of its country.", gap_factor=0.0),
            Persona("ignores-its-reasoning", "Scores what the question suggests, whatever its steps."),
            Persona("half-follows-its-reasoning", "Follows its steps in half of the cells.", following=0.5),
            Persona("inverts-groups", "Makes groups differ in the wrong direction.", gap_factor=-1.0),
        )
    }
)
"""All personas, by name."""
_NUMBERED_NAME = re.compile(r"(?P<persona>[a-z-]+?)(?:-\d+)?")


def find_persona(name: str) -> Persona | None:
    """The persona of a simulated model's name; None if there is none.

    Args:
        name: a persona's name, with or without a number. Models of one persona with different numbers err
            independently, as `careful-judge-1` and `careful-judge-2` do.
    """
    match = _NUMBERED_NAME.fullmatch(name)
    return PERSONAS.get(match["persona"]) if match else None
