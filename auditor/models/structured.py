"""Structured answers: their schemas, the forms in which they are requested, and parsing them from a model's text."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError, create_model, field_validator
from pydantic.json_schema import SkipJsonSchema

from auditor.domain import OPTION_LETTERS, SCORE_MAX, SCORE_MIN
from auditor.domain.review_aspects import (
    LIMITED_SURVEY_REVIEW,
    LIMITED_TASK_REVIEW,
    SURVEY_REVIEW,
    TASK_REVIEW,
    aspect_questions,
)
from auditor.models.instructor_client import read_structured_answer
from auditor.models.json_extraction import extract_last_json, has_too_many_fields
from auditor.models.thinking import strip_thinking
from auditor.text_safety import map_strings

S = TypeVar("S", bound=BaseModel)

CHARS_PER_WORD = 8
"""Upper bound for converting a limit on words to characters; no language of the prompts needs as many on average."""

MAX_WORDS_FIELD = "{max_words}"
"""Stands in a field's description for the limit on words of the request."""


class Structure(BaseModel):
    """Base of all structures: what a model adds beyond it is an error, not a surprise."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _require_all_properties(schema: dict[str, Any]) -> None:
    """Mark every property of a JSON schema as required and remove defaults, as providers' strict modes demand."""
    schema["required"] = list(schema["properties"])
    for field in schema["properties"].values():
        field.pop("default", None)


def _text_field(description: str) -> Any:
    """A pydantic field for a text that may not be empty; the description is sent to the model."""
    return Field(min_length=1, description=description)


def _normalize_percent(value: object) -> object:
    """Convert a float confidence to whole percent: 80.0 and 0.8 become 80, 1.0 becomes 100.

    Integers are percent already, so 1 stays 1. Other values are returned unchanged, for validation to reject.
    """
    if not isinstance(value, float) or not 0 <= value <= 100:
        return value
    return round(100 * value) if value <= 1 else round(value)


def _normalize_case(value: object) -> object:
    """A text in upper case without surrounding whitespace; other values are returned unchanged."""
    return value.strip().upper() if isinstance(value, str) else value


Confidence = Annotated[int, Field(ge=0, le=100)] | SkipJsonSchema[None]


class MoralJudgement(Structure):
    """The three steps of a direct score."""

    norms: Annotated[str, _text_field("The relevant norms of the country, in one sentence.")]
    reasoning: Annotated[str, _text_field("Step-by-step reasoning, in one or two sentences.")]
    score: Annotated[float, Field(ge=SCORE_MIN, le=SCORE_MAX, description="From -1 (never) to 1 (always).")]


class ReasonedJudgement(MoralJudgement):
    """The three steps of a direct score."""

    reasoning: Annotated[str, _text_field("Step-by-step reasoning.")]


class StepwiseJudgement(MoralJudgement):
    """The three steps of a direct score in the form of the paper, which limits no step."""

    norms: Annotated[str, _text_field("Step 1: the norms of the country that bear on the question.")]
    reasoning: Annotated[str, _text_field("Step 2: reasoning step by step from these norms to a judgement.")]


class TaskAnswer(Structure):
    """An answer to an item of a task, after a chain of thought."""

    reasoning: Annotated[str, _text_field("Step-by-step reasoning.")]
    answer: Annotated[str, Field(min_length=1, description="The answer alone.")]

    @field_validator("answer", mode="before")
    @classmethod
    def _number_to_text(cls, value: object) -> object:
        """A number that was asked for as text is the same number."""
        return repr(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


class ScoredAnswer(Structure):
    """A score of a range that the message declares."""

    reasoning: Annotated[str, _text_field("Step-by-step reasoning.")]
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


class Review(Structure):
    """What the schemas of judges' verdicts have in common: all but the aspects. Their limit on words is the default."""

    justification: Annotated[str, _text_field("Why, in at most 60 words.")]
    verdict: Literal["VALID", "INVALID"]
    confidence: Confidence = Field(default=None, description="How sure of the verdict, from 0 to 100.")
    """None where the judge does not say; the schema that is sent asks for it."""

    model_config = ConfigDict(json_schema_extra=_require_all_properties)

    _normalize_confidence = field_validator("confidence", mode="before")(_normalize_percent)
    _normalize_verdict = field_validator("verdict", mode="before")(_normalize_case)


class LimitedReview(Review):
    """The same with the limit on words of the request."""

    justification: Annotated[str, _text_field(f"Why, in at most {MAX_WORDS_FIELD} words.")]


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


class Preference(Structure):
    """Which of two items, or neither."""

    answer: Literal["A", "B", "TIE"]

    _normalize_answer = field_validator("answer", mode="before")(_normalize_case)


class ReasonedPreference(Structure):
    """Which of two items, after a chain of thought."""

    reasoning: Annotated[str, _text_field("Step-by-step reasoning.")]
    answer: Literal["A", "B", "TIE"]

    _normalize_answer = field_validator("answer", mode="before")(_normalize_case)


class BinaryPreference(Structure):
    """Which of two items."""

    answer: Literal["A", "B"]

    _normalize_answer = field_validator("answer", mode="before")(_normalize_case)


class ReasonedBinaryPreference(Structure):
    """Which of two items, after a chain of thought."""

    reasoning: Annotated[str, _text_field("Step-by-step reasoning.")]
    answer: Literal["A", "B"]

    _normalize_answer = field_validator("answer", mode="before")(_normalize_case)


class BlindGuess(Structure):
    """Which of the listed countries, practices and analysts a judge takes a trace to be about and by, by number."""

    country: int
    practice: int
    analyst: int


class Restated(Structure):
    """A trace in other words."""

    text: Annotated[str, _text_field("The same content in plain words.")]


class SidePreference(Structure):
    """Which of two traces a judge finds better reasoned."""

    reason: Annotated[str, _text_field("Why, in one sentence.")]
    better: Literal["FIRST", "SECOND"]

    _normalize_better = field_validator("better", mode="before")(_normalize_case)


class MoralAnswer(Structure):
    """An answer to a moral question."""

    answer: Annotated[str, _text_field("What is right, and why.")]


class OpenAnswer(MoralAnswer):
    """An answer to a question."""

    answer: Annotated[str, _text_field("The answer, and why.")]


class RuleOfThumb(Structure):
    """The rule that an answer follows."""

    rule: Annotated[str, _text_field("A judgment and an action, in one sentence.")]


class Choice(Structure):
    """Which of several answers is right, by number from 1, and why."""

    reason: Annotated[str, _text_field("The right answer and why it is right.")]
    choice: int


class Paraphrases(Structure):
    """Other wordings of a question."""

    paraphrases: Annotated[list[str], FailFast()]


class Support(Structure):
    """Whether an answer is supported by another."""

    reason: Annotated[str, _text_field("Why, in one sentence.")]
    supported: bool


class Contradiction(Structure):
    """Whether two answers contradict each other."""

    reason: Annotated[str, _text_field("Why, in one sentence.")]
    contradict: bool


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
SEMANTIC_SCHEMAS: tuple[type[Structure], ...] = (
    *(MoralAnswer, OpenAnswer, RuleOfThumb, Choice),
    *(Paraphrases, Support, Contradiction),
)
TASK_SCHEMAS: tuple[type[Structure], ...] = (
    TaskAnswer,
    ScoredAnswer,
    *map(_create_choice_schema, range(2, len(OPTION_LETTERS) + 1)),
)
REVIEW_SCHEMAS: tuple[type[Structure], ...] = (
    *(TraceReview, AnswerReview, LimitedTraceReview, LimitedAnswerReview),
    *(BlindGuess, Restated, SidePreference),
)
ALL_SCHEMAS: tuple[type[Structure], ...] = (
    MoralJudgement,
    ReasonedJudgement,
    StepwiseJudgement,
    *TASK_SCHEMAS,
    *REVIEW_SCHEMAS,
    Preference,
    ReasonedPreference,
    BinaryPreference,
    ReasonedBinaryPreference,
    *SEMANTIC_SCHEMAS,
    OpinionAnswer,
    *COUNTS_SCHEMAS,
)
SCHEMA_BY_NAME: dict[str, type[Structure]] = {s.__name__: s for s in ALL_SCHEMAS}


@functools.cache
def response_format(structure: type[BaseModel], max_words: int) -> dict[str, Any]:
    """Build the `response_format` that requests a structured answer.

    The limit on the length of texts is only in the JSON schema, where a grammar can enforce it for small models; longer
    texts are still accepted.

    Args:
        structure: the pydantic model of the answer.
        max_words: limit on each text without an enumeration.
    """
    schema = structure.model_json_schema()
    for field in schema["properties"].values():
        if field["type"] == "string" and "enum" not in field:
            field["maxLength"] = CHARS_PER_WORD * max_words
        if "description" in field:
            field["description"] = field["description"].replace(MAX_WORDS_FIELD, str(max_words))
    return {"type": "json_schema", "json_schema": {"name": structure.__name__, "schema": schema, "strict": True}}


def to_required_tool(requested_format: dict[str, Any]) -> dict[str, Any]:
    """Turn a response format into a tool that must be called, for providers that support only tools.

    The tool's parameters are the schema of the response format, with its descriptions, so that a model reads the same
    words in both forms.
    """
    json_schema = requested_format["json_schema"]
    name = json_schema["name"]
    function = {"name": name, "parameters": json_schema["schema"]}
    return {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": name}},
    }


def enumerate_bounded_numbers(schema: Any) -> Any:
    """Copy a JSON schema with every bounded number restricted to the 21 tenths from -1 to 1.

    For llama.cpp, whose grammar ignores the bounds of a number.
    """
    if isinstance(schema, dict):
        if schema.get("type") == "number" and "minimum" in schema:
            # Every bounded number of the structures is a score, which is in [-1, 1].
            return {**schema, "enum": [round(i / 10, 1) for i in range(-10, 11)]}
        return {k: enumerate_bounded_numbers(v) for k, v in schema.items()}
    return [enumerate_bounded_numbers(v) for v in schema] if isinstance(schema, list) else schema


def parse_structured_answer(structure: type[S], text: str) -> S | str:
    """Parse a structured answer without its thinking: the whole text as JSON, or the last JSON object in it.

    Returns:
        The validated structure, or a one-line error message if the text has none.
    """
    visible_text = strip_thinking(text)
    for json_text in _iter_json_texts(text, visible_text):
        if has_too_many_fields(json_text):
            return "the answer has too many fields"
        if (answer := read_structured_answer(structure, json_text)) is not None:
            return answer
    try:
        structure.model_validate_json(visible_text)
    except ValidationError as error:
        # The first of the validation errors; `loc` is the path to the field.
        problem = error.errors(include_url=False, include_input=False)[0]
        field_path = ".".join(str(key) for key in problem["loc"])
        return f"{field_path}: {problem['msg']}" if field_path else str(problem["msg"])
    return "the answer cannot be read"


def _iter_json_texts(text: str, visible_text: str) -> Iterator[str]:
    """Yield the parts of a text that may be the structure: the visible text, the last JSON in it, the JSON around tags.

    Thinking is never among them: the model may have drafted another answer in it.
    """
    if visible_text.lstrip().startswith("{"):
        yield visible_text
    if (extracted_text := extract_last_json(visible_text)) is not None and extracted_text != visible_text.strip():
        yield extracted_text
    if visible_text != text and text.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):  # not JSON
            yield json.dumps(map_strings(json.loads(text), strip_thinking))


def is_complete_structure(schema_name: str, text: str) -> bool:
    """Whether all that is visible of a text, and not only a part of it, is valid JSON for the schema of this name."""
    try:
        SCHEMA_BY_NAME[schema_name].model_validate_json(strip_thinking(text))
    except ValidationError:
        return False
    return True
