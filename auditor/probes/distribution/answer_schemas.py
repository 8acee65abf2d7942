"""Schemas of structured answers on a survey's own scale."""

from __future__ import annotations

from typing import Annotated

from pydantic import FailFast, Field, create_model, field_validator

from auditor.config.base import Structure


class OpinionAnswer(Structure):
    """The number of one answer of a survey."""

    answer: Annotated[int, Field(description="The number of the answer.")]

    @field_validator("answer", mode="before")
    @classmethod
    def _text_to_number(cls, value: object) -> object:
        """A whole number that was given as text is the same number; "5-6" and 7.5 are none."""
        return int(value) if isinstance(value, str) and value.strip().isdecimal() else value


class OpinionCounts(Structure):
    """How many of 100 people chose each answer of a survey, in the order in which the answers are listed."""

    counts: Annotated[list[Annotated[int, Field(ge=0, le=100)]], FailFast()]


def counts_schema_name(n_answers: int) -> str:
    """Name of the schema for the numbers of people who chose each of `n_answers` answers."""
    return f"CountsOf{n_answers}"


def _create_counts_schema(n_answers: int) -> type[OpinionCounts]:
    """Create the schema for the counts of `n_answers` answers.

    Their number is only in the JSON schema, where a grammar can enforce it; validation accepts any, since the problem
    is then described better.
    """
    length = {"minItems": n_answers, "maxItems": n_answers}
    counts = Annotated[
        list[Annotated[int, Field(ge=0, le=100)]],
        FailFast(),
        Field(json_schema_extra=length, description="How many of 100 people chose each answer."),
    ]
    name = counts_schema_name(n_answers)
    return create_model(name, __base__=OpinionCounts, __doc__="Counts of answers.", counts=(counts, ...))


def counts_schema(n_answers: int) -> type[OpinionCounts]:
    """The schema for the counts of `n_answers` answers, from 2 to `MAX_COUNTS`."""
    return COUNTS_SCHEMAS[n_answers - 2]


MAX_COUNTS = 20
"""Most answers of a survey that models are asked about; as many next tokens have a known log-probability."""
COUNTS_SCHEMAS: tuple[type[OpinionCounts], ...] = tuple(map(_create_counts_schema, range(2, MAX_COUNTS + 1)))
SCHEMAS: tuple[type[Structure], ...] = (OpinionAnswer, *COUNTS_SCHEMAS)
