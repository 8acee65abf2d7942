"""Schemas of judges' structured answers: verdicts on traces, and what experiments on judges ask."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import ConfigDict, Field, create_model, field_validator
from pydantic.json_schema import SkipJsonSchema

from auditor.domain.review_aspects import (
    LIMITED_SURVEY_REVIEW,
    LIMITED_TASK_REVIEW,
    SURVEY_REVIEW,
    TASK_REVIEW,
    aspect_questions,
)
from auditor.models.answer_schemas import Structure, normalize_case, text_field

MAX_WORDS_FIELD = "{max_words}"
"""Stands in a field's description for the limit on words of the request."""

Confidence = Annotated[int, Field(ge=0, le=100)] | SkipJsonSchema[None]


def _require_all_properties(schema: dict[str, Any]) -> None:
    """Mark every property of a JSON schema as required and remove defaults, as providers' strict modes demand."""
    schema["required"] = list(schema["properties"])
    for field in schema["properties"].values():
        field.pop("default", None)


def _normalize_percent(value: object) -> object:
    """Convert a float confidence to whole percent: 80.0 and 0.8 become 80, 1.0 becomes 100.

    Integers are percent already, so 1 stays 1. Other values are returned unchanged, for validation to reject.
    """
    if not isinstance(value, float) or not 0 <= value <= 100:
        return value
    return round(100 * value) if value <= 1 else round(value)


class Review(Structure):
    """What the schemas of judges' verdicts have in common: all but the aspects. Their limit on words is the default."""

    justification: Annotated[str, text_field("Why, in at most 60 words.")]
    verdict: Literal["VALID", "INVALID"]
    confidence: Confidence = Field(default=None, description="How sure of the verdict, from 0 to 100.")
    """None where the judge does not say; the schema that is sent asks for it."""

    model_config = ConfigDict(json_schema_extra=_require_all_properties)

    _normalize_confidence = field_validator("confidence", mode="before")(_normalize_percent)
    _normalize_verdict = field_validator("verdict", mode="before")(normalize_case)


class LimitedReview(Review):
    """The same with the limit on words of the request."""

    justification: Annotated[str, text_field(f"Why, in at most {MAX_WORDS_FIELD} words.")]


def _create_review_schema(name: str, base: type[Review], description: str, *, for_task: bool) -> type[Review]:
    """Create the schema of a judge's verdict, which rates every aspect before it rules."""
    ratings: dict[str, Any] = {question.key: (bool, ...) for question in aspect_questions(for_task=for_task).values()}
    aspects: Any = create_model(f"{name}Aspects", __base__=Structure, **ratings)
    bases: Any = (base, aspects)  # pydantic puts the fields of the last base first
    review_schema: Any = create_model(name, __base__=bases, __doc__=description)
    return cast(type[Review], review_schema)


OF_TRACE, OF_ANSWER = "A judge's verdict on a trace.", "A judge's verdict on the reasoning behind an answer."
TraceReview = _create_review_schema(SURVEY_REVIEW, Review, OF_TRACE, for_task=False)
AnswerReview = _create_review_schema(TASK_REVIEW, Review, OF_ANSWER, for_task=True)
LimitedTraceReview = _create_review_schema(LIMITED_SURVEY_REVIEW, LimitedReview, OF_TRACE, for_task=False)
LimitedAnswerReview = _create_review_schema(LIMITED_TASK_REVIEW, LimitedReview, OF_ANSWER, for_task=True)


class BlindGuess(Structure):
    """Which of the listed countries, practices and analysts a judge takes a trace to be about and by, by number."""

    country: int
    practice: int
    analyst: int


class AuthorGuess(Structure):
    """Which of the listed analysts a judge takes an answer to an item to be by, by number."""

    analyst: int


class Restated(Structure):
    """A trace in other words."""

    text: Annotated[str, text_field("The same content in plain words.")]


class SidePreference(Structure):
    """Which of two traces a judge finds better reasoned."""

    reason: Annotated[str, text_field("Why, in one sentence.")]
    better: Literal["FIRST", "SECOND"]

    _normalize_better = field_validator("better", mode="before")(normalize_case)


REVIEW_SCHEMAS: tuple[type[Structure], ...] = (
    *(TraceReview, AnswerReview, LimitedTraceReview, LimitedAnswerReview),
    *(AuthorGuess, BlindGuess, Restated, SidePreference),
)
