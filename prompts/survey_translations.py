"""The surveys' words in other languages: questions, scales, topics and the names of countries."""

from __future__ import annotations

import functools
import gettext
import tomllib
from collections.abc import Mapping
from importlib import resources

from pydantic import BaseModel, ConfigDict

LOCALES = {"zh": "zh_CN"}


class SurveyQuestionWording(BaseModel):
    """How one survey asks: `wording` with `{topic}` and `{country}`, and the meaning of -1 and +1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    wording: str
    scale: tuple[str, str]


class SurveyTranslations(BaseModel):
    """One language's words: questions by built-in survey, topics by their English label, countries by alpha-3 code."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    questions: Mapping[str, SurveyQuestionWording]
    topics: Mapping[str, str]
    countries: Mapping[str, str]


@functools.cache
def load_translations(language: str) -> SurveyTranslations:
    """The words of a language other than English."""
    file = resources.files("auditor.prompts") / language / "surveys.toml"
    return SurveyTranslations.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))


@functools.cache
def translate_country(code: str, language: str) -> str | None:
    """A country's everyday name in a language, by alpha-3 code; None where it is not known."""
    import pycountry

    if name := load_translations(language).countries.get(code):
        return name
    country = pycountry.countries.get(alpha_3=code)
    if country is None:
        return None
    names = [n for n in (getattr(country, "common_name", None), country.name) if n]
    locale = LOCALES.get(language, language)
    translated = gettext.translation("iso3166-1", pycountry.LOCALES_DIR, languages=[locale], fallback=True)
    return next((t for n in names if (t := translated.gettext(n)) != n), None)
