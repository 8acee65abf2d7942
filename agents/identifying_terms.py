"""Everything that gives a trace's country and topic away, in the language that it was asked in and in English."""

from __future__ import annotations

import functools

from auditor.agents.blinding import COUNTRY_LABEL, OTHER_COUNTRY_LABEL, TOPIC_LABEL
from auditor.agents.localization import country_name, topic_stem_patterns
from auditor.agents.masking import IdentifyingTerm
from auditor.domain import ENGLISH, Survey
from auditor.prompts.blinding import load_blinding_terms
from auditor.surveys.countries import country_code, country_name_forms
from auditor.surveys.country_terms import get_country_terms

LATIN_SCRIPT_END = "\u0250"
"""Above it are scripts whose adjectives of cities have no capital, or that have none at all."""
MAX_SHORT_NAME_LENGTH = 4
"""Letters up to which the name of a country that a trace is not about needs its capital: Mali is a word elsewhere."""


@functools.lru_cache(maxsize=4096)
def country_terms(country: str, language: str, *, is_other_country: bool = False) -> tuple[IdentifyingTerm, ...]:
    """A country's names, demonyms, peoples and cities."""
    label = OTHER_COUNTRY_LABEL if is_other_country else COUNTRY_LABEL
    found = [_build_term(w, label) for w in (country, *country_name_forms(country))]
    for code in dict.fromkeys((language, ENGLISH)):
        known = get_country_terms(country, code)
        found += [
            _build_term(w, label, proper=is_other_country and len(w) <= MAX_SHORT_NAME_LENGTH)
            for w in (country_name(country, code), *known.names)
        ]
        cities = [w for w in known.cities if len(w) > MAX_SHORT_NAME_LENGTH or not w[:1].isupper()]
        found += [_build_term(w, label, proper=w[:1] < LATIN_SCRIPT_END) for w in cities]
        found += [
            _build_term(w, label, proper=True)
            for w in load_blinding_terms(code).countries.get(country_code(country) or "", ())
        ]
    return tuple(dict.fromkeys(found))


@functools.lru_cache(maxsize=512)
def other_country_terms(countries: tuple[str, ...], language: str) -> tuple[IdentifyingTerm, ...]:
    """The words of several countries that a trace is not about."""
    return tuple(word for country in countries for word in country_terms(country, language, is_other_country=True))


@functools.lru_cache(maxsize=4096)
def _cached_topic_terms(topic: str, survey_terms: tuple[str, ...], language: str) -> tuple[IdentifyingTerm, ...]:
    words = (
        topic,
        *survey_terms,
        *topic_stem_patterns(topic, language),
        *load_blinding_terms(language).topics.get(topic, ()),
    )
    return tuple(dict.fromkeys(_build_term(w, TOPIC_LABEL) for w in words if w.strip()))


def topic_terms(survey: Survey, topic: str, language: str) -> tuple[IdentifyingTerm, ...]:
    """A topic's label and the words of its survey, and what they are in the language."""
    return _cached_topic_terms(topic, tuple(survey.words.get(topic, ())), language)


def _build_term(text: str, label: str, *, proper: bool = False) -> IdentifyingTerm:
    is_code = text.isascii() and text.isupper()
    return IdentifyingTerm(text, label, needs_capital=proper and text[:1].isupper(), case_sensitive=is_code)
