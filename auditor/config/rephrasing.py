"""The table `survey.rephrase`: other wordings of a survey's question, scale and topics."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from auditor.config.base import DocumentedModel
from auditor.domain import ENGLISH, LANGUAGES
from auditor.errors import did_you_mean

PLACEHOLDERS = ("topic", "country")


def check_question_template(text: str) -> str:
    """Return the text of a question if its placeholders are `{topic}` and `{country}`.

    Raises:
        ValueError: a placeholder is missing or unknown; the message names it.
    """
    placeholders = _find_placeholders(text)
    for name in PLACEHOLDERS:
        if name not in placeholders:
            raise ValueError(
                f"the placeholder {{{name}}} is missing. How to fix: Use {{topic}} and {{country}}, and no others"
            )
    unknown = next((name for name in placeholders if name not in PLACEHOLDERS), None)
    if unknown is not None:
        raise ValueError(
            f"the placeholder {{{unknown}}} is unknown. How to fix: Use {{topic}} and {{country}}, and no others"
        )
    return text


def check_plain_text(text: str) -> str:
    """Return the text of a scale's end or of a topic if it has no braces.

    Raises:
        ValueError: it has braces.
    """
    if "{" in text or "}" in text:
        raise ValueError("braces are allowed only in the question. How to fix: Remove them")
    return text


def check_language(name: str, known: Sequence[str] = LANGUAGES) -> str:
    """Return a language code if it is one of `known`, by default the languages that there are prompts in.

    Raises:
        ValueError: it is not; the message names the nearest known code.
    """
    if name not in known:
        hint = did_you_mean(name, known, f"Known: {', '.join(known)}.")
        raise ValueError(f"there is no language '{name}'. How to fix: {hint}")
    return name


def _find_placeholders(text: str) -> list[str]:
    """Names in braces in a text, in order; raises ValueError if a brace is not closed."""
    try:
        return [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError:
        raise ValueError("a brace is not closed. How to fix: Close it, or write {{ or }} for a literal brace") from None


def _default_to_english(value: Any) -> Any:
    """A text without a language becomes a table with that text for English; a table is returned unchanged."""
    return value if isinstance(value, dict) else {ENGLISH: value}


LanguageCode = Annotated[str, AfterValidator(lambda name: check_language(name))]
QuestionTemplate = Annotated[str, Field(min_length=1), AfterValidator(check_question_template)]
PlainText = Annotated[str, Field(min_length=1), AfterValidator(check_plain_text)]
EnglishByDefault = BeforeValidator(_default_to_english)
"""Converts a text without a language to a table that has it under English; a table stays as it is."""


class Rephrasing(DocumentedModel):
    """Replacement wordings. Each must be given in every language of the audit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: Annotated[Mapping[LanguageCode, QuestionTemplate], EnglishByDefault] = Field(default_factory=dict)
    """The question, with `{topic}` and `{country}`: a text in English, or one text for each language, as in `{ en =
    "…", de = "…" }`."""
    scale: Annotated[Mapping[LanguageCode, tuple[PlainText, PlainText]], EnglishByDefault] = Field(default_factory=dict)
    """Words for the ends of the scale, -1 and +1: two texts in English, or two for each language, as in `{ en = ["…",
    "…"] }`."""
    topics: Mapping[str, Annotated[Mapping[LanguageCode, PlainText], EnglishByDefault]] = Field(default_factory=dict)
    """Wordings of topics, by the topic's name in the survey: a text in English, or one text for each language, as in `{
    en = "…" }`."""
