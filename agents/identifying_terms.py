"""Terms that identify a trace's country and topic, in the language of the question and in English."""

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
"""First character beyond Latin. Other scripts have no capitals, or write adjectives of cities without one."""
MAX_SHORT_NAME_LENGTH = 4
"""Names of other countries with at most this many letters match with a capital only: Mali is a word elsewhere."""


@functools.lru_cache(maxsize=4096)
def country_terms(country: str, language: str, *, is_other_country: bool = False) -> tuple[IdentifyingTerm, ...]:
    """Names, demonyms, peoples and cities of a country, in a language and in English.

    Args:
        is_other_country: whether the trace is about another country; changes the label and requires capitals in short
            names.
    """
    label = OTHER_COUNTRY_LABEL if is_other_country else COUNTRY_LABEL
    terms = [build_term(word, label) for word in (country, *country_name_forms(country))]
    for code in dict.fromkeys((language, ENGLISH)):
        listed_terms = get_country_terms(country, code)
        terms += [
            build_term(word, label, proper=is_other_country and len(word) <= MAX_SHORT_NAME_LENGTH)
            for word in (country_name(country, code), *listed_terms.names)
        ]
        cities = [word for word in listed_terms.cities if len(word) > MAX_SHORT_NAME_LENGTH or not word[:1].isupper()]
        terms += [build_term(word, label, proper=word[:1] < LATIN_SCRIPT_END) for word in cities]
        terms += [
            build_term(word, label, proper=True)
            for word in load_blinding_terms(code).countries.get(country_code(country) or "", ())
        ]
    return tuple(dict.fromkeys(terms))


@functools.lru_cache(maxsize=512)
def other_country_terms(countries: tuple[str, ...], language: str) -> tuple[IdentifyingTerm, ...]:
    """Terms of several countries that a trace is not about."""
    return tuple(term for country in countries for term in country_terms(country, language, is_other_country=True))


@functools.lru_cache(maxsize=4096)
def _cached_topic_terms(topic: str, survey_terms: tuple[str, ...], language: str) -> tuple[IdentifyingTerm, ...]:
    """Terms of a topic: its label, the survey's words for it, and its wording and further words in a language."""
    words = (
        topic,
        *survey_terms,
        *topic_stem_patterns(topic, language),
        *load_blinding_terms(language).topics.get(topic, ()),
    )
    return tuple(dict.fromkeys(build_term(word, TOPIC_LABEL) for word in words if word.strip()))


def topic_terms(survey: Survey, topic: str, language: str) -> tuple[IdentifyingTerm, ...]:
    """Terms of a topic: its label, the survey's words for it, and its wording and further words in a language."""
    return _cached_topic_terms(topic, tuple(survey.words.get(topic, ())), language)


def identifying_terms(survey: Survey, country: str, topic: str, language: str) -> tuple[IdentifyingTerm, ...]:
    """Terms of a trace's country, of the survey's other countries, and of its topic."""
    other_countries = tuple(other for other in survey.countries if other != country)
    return (
        *country_terms(country, language),
        *other_country_terms(other_countries, language),
        *topic_terms(survey, topic, language),
    )


def build_term(text: str, label: str, *, proper: bool = False) -> IdentifyingTerm:
    """Make a term that is replaced by `label`; ASCII text in capitals, such as `US`, is a code and matches only so.

    Args:
        proper: whether the text is a proper name, which matches with a capital first letter only.
    """
    is_code = text.isascii() and text.isupper()
    return IdentifyingTerm(text, label, needs_capital=proper and text[:1].isupper(), case_sensitive=is_code)
