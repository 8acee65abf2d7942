"""Schemas of models' structured answers, those of judges included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args

from pydantic import ConfigDict, Field, create_model, field_validator
from pydantic.json_schema import SkipJsonSchema

from auditor.config.base import Structure
from auditor.domain import OPTION_LETTERS, SCORE_MAX, SCORE_MIN
from auditor.domain.decisions import (
    LIMITED_SURVEY_REVIEW,
    LIMITED_TASK_REVIEW,
    SURVEY_REVIEW,
    TASK_REVIEW,
    aspect_questions,
)


def text_field(description: str) -> Any:
    """A pydantic field for a text that may not be empty; the description is sent to the model."""
    return Field(min_length=1, description=description)


def normalize_case(value: object) -> object:
    """A text in upper case without surrounding whitespace; other values are returned unchanged."""
    return value.strip().upper() if isinstance(value, str) else value


class MoralJudgement(Structure):
    """The three steps of a direct score."""

    norms: Annotated[str, text_field("The relevant norms of the country, in one sentence.")]
    reasoning: Annotated[str, text_field("Step-by-step reasoning, in one or two sentences.")]
    score: Annotated[float, Field(ge=SCORE_MIN, le=SCORE_MAX, description="From -1 (never) to 1 (always).")]


class ReasonedJudgement(MoralJudgement):
    """The three steps of a direct score."""

    reasoning: Annotated[str, text_field("Step-by-step reasoning.")]


class StepwiseJudgement(MoralJudgement):
    """The three steps of a direct score in the form of the paper, which limits no step."""

    norms: Annotated[str, text_field("Step 1: the norms of the country that bear on the question.")]
    reasoning: Annotated[str, text_field("Step 2: reasoning step by step from these norms to a judgement.")]


class TaskAnswer(Structure):
    """An answer to an item of a task, after a chain of thought."""

    reasoning: Annotated[str, text_field("Step-by-step reasoning.")]
    answer: Annotated[str, Field(min_length=1, description="The answer alone.")]

    @field_validator("answer", mode="before")
    @classmethod
    def _number_to_text(cls, value: object) -> object:
        """A number that was asked for as text is the same number."""
        return repr(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


class ScoredAnswer(Structure):
    """A score of a range that the message declares."""

    reasoning: Annotated[str, text_field("Step-by-step reasoning.")]
    answer: Annotated[float, Field(description="The score, a number.")]


def choice_schema_name(n_options: int) -> str:
    """Name of the schema for an answer that is the letter of one of `n_options` options."""
    return f"ChosenOf{n_options}"


def _create_choice_schema(n_options: int) -> type[Structure]:
    """Create the schema for an answer that is one option's letter.

    The letters are listed only in the JSON schema, where a grammar can enforce them; validation accepts any text.
    """
    letter = Annotated[
        str, Field(json_schema_extra={"enum": list(OPTION_LETTERS[:n_options])}, description="The letter.")
    ]
    return create_model(
        choice_schema_name(n_options), __base__=TaskAnswer, __doc__="One of the options.", answer=(letter, ...)
    )


Scale: TypeAlias = Literal["-1 to 1", "1 to 10", "words"]
"""Form of the scale on which a score is asked for."""
Reasoning: TypeAlias = Literal["before", "after", "none"]
"""Whether reasons are asked for before the score, after it, or not at all."""


def design_schema_name(reasoning: Reasoning, scale: Scale) -> str:
    """Name of the schema of a direct score with reasons before it, after it or without, on a scale."""
    return f"Score{reasoning.title()}On{_SCALE_NAMES[scale]}"


def _create_design_schema(reasoning: Reasoning, scale: Scale) -> type[Structure]:
    """Create a schema whose fields have the order in which they are asked for."""
    score: Any = Annotated[str, text_field("One of the answers of the question, word for word.")]
    if scale != "words":
        low, high = (SCORE_MIN, SCORE_MAX) if scale == "-1 to 1" else (1.0, 10.0)
        score = Annotated[float, Field(ge=low, le=high, description="On the scale of the question.")]
    reasons: dict[str, Any] = {
        "norms": (Annotated[str, text_field("The relevant norms of the country, in one sentence.")], ...),
        "reasoning": (Annotated[str, text_field("Step-by-step reasoning.")], ...),
    }
    before, after = (reasons if reasoning == place else {} for place in ("before", "after"))
    fields: dict[str, Any] = {**before, "score": (score, ...), **after}
    return create_model(design_schema_name(reasoning, scale), __base__=Structure, __doc__="A direct score.", **fields)


_SCALE_NAMES: Mapping[Scale, str] = {"-1 to 1": "Unit", "1 to 10": "Ten", "words": "Words"}
DESIGN_SCHEMAS: Mapping[str, type[Structure]] = {
    design_schema_name(reasoning, scale): _create_design_schema(reasoning, scale)
    for reasoning in get_args(Reasoning)
    for scale in _SCALE_NAMES
}
"""Schemas of the experiment `robustness` by name."""
ANSWER_SCHEMAS: tuple[type[Structure], ...] = (
    MoralJudgement,
    ReasonedJudgement,
    StepwiseJudgement,
    TaskAnswer,
    ScoredAnswer,
    *map(_create_choice_schema, range(2, len(OPTION_LETTERS) + 1)),
    *DESIGN_SCHEMAS.values(),
)


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
