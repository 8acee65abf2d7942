"""Schemas of models' structured answers to direct questions and tasks; those of probes are in their folders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator

from auditor.domain import OPTION_LETTERS, SCORE_MAX, SCORE_MIN


class Structure(BaseModel):
    """Base of all structures: what a model adds beyond it is an error, not a surprise."""

    # Built at their first use, since commands that only read a probe's settings use none.
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


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
