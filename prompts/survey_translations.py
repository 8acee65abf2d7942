"""Translations of the surveys: questions, scales, topics and names of countries."""

from __future__ import annotations

import functools
import gettext
import tomllib
from collections.abc import Mapping
from importlib import resources

from pydantic import BaseModel, ConfigDict

LOCALES = {"zh": "zh_CN"}
"""Locales of the languages whose code is not the name of a catalog of country names."""


class SurveyQuestionWording(BaseModel):
    """One survey's question: `wording` with `{topic}` and `{country}`, and the labels of -1 and +1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    wording: str
    scale: tuple[str, str]


class SurveyTranslations(BaseModel):
    """One language's texts: questions by built-in survey, topics by English label, countries by alpha-3 code."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    questions: Mapping[str, SurveyQuestionWording]
    topics: Mapping[str, str]
    countries: Mapping[str, str]


class FurtherWordings(BaseModel):
    """Further wordings of a survey's question in one language, with the placeholders `{topic}`, `{country}`, `{never}`
    and `{always}`; `is_read` says whether a native speaker has read them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    is_read: bool
    questions: tuple[str, ...]


class ReasoningTexts(BaseModel):
    """Instructions for reasons before the score, after it, or none; with the placeholders `{scale}`, `{max_words}`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    before: str
    after: str
    none: str


class DesignTexts(BaseModel):
    """One language's texts of the experiment `robustness`.

    Attributes:
        role: names the respondent, who lives in `{country}`.
        expert: what the model is to report; follows a role.
        numbers, words: a scale in numbers, from `{first}` to `{last}`, or in words, `{answers}`.
        between: the three answers between the ends `{never}` and `{always}`, from low to high.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    is_read: bool
    role: str
    expert: str
    numbers: str
    words: str
    between: tuple[str, str, str]
    structured: ReasoningTexts
    text: ReasoningTexts


@functools.cache
def load_design_texts(language: str) -> DesignTexts:
    """Load the texts of the experiment `robustness` in a language."""
    file = resources.files("auditor.prompts") / language / "design.toml"
    return DesignTexts.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))


@functools.cache
def load_further_wordings(language: str) -> FurtherWordings:
    """Load the further wordings in a language."""
    file = resources.files("auditor.prompts") / language / "wordings.toml"
    return FurtherWordings.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))


@functools.cache
def load_translations(language: str) -> SurveyTranslations:
    """Load the translations into a language other than English."""
    file = resources.files("auditor.prompts") / language / "surveys.toml"
    return SurveyTranslations.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))


@functools.cache
def translate_country(code: str, language: str) -> str | None:
    """Common name of a country in a language; None if unknown.

    Args:
        code: ISO 3166-1 alpha-3 code.
        language: ISO 639-1 code.
    """
    import pycountry

    if name := load_translations(language).countries.get(code):
        return name
    country = pycountry.countries.get(alpha_3=code)
    if country is None:
        return None
    english_names = [
        english_name for english_name in (getattr(country, "common_name", None), country.name) if english_name
    ]
    locale = LOCALES.get(language, language)
    catalog = gettext.translation("iso3166-1", pycountry.LOCALES_DIR, languages=[locale], fallback=True)
    return next(
        (
            translated_name
            for english_name in english_names
            if (translated_name := catalog.gettext(english_name)) != english_name
        ),
        None,
    )
