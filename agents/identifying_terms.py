"""Everything that gives a trace's country and topic away, in the language that it was asked in and in English."""

from __future__ import annotations

import functools

from auditor.agents.blinding import COUNTRY, OTHER_COUNTRY, TOPIC
from auditor.agents.localization import country_name, topic_stems
from auditor.agents.masking import Word
from auditor.domain import ENGLISH, Survey
from auditor.prompts.blinding import load_giveaway
from auditor.surveys.countries import country_code, demonyms
from auditor.surveys.country_terms import giveaways

LATIN_ENDS = "\u0250"
"""Above it are scripts whose adjectives of cities have no capital, or that have none at all."""
SHORT = 4
"""Letters up to which the name of a country that a trace is not about needs its capital: Mali is a word elsewhere."""


@functools.lru_cache(maxsize=4096)
def country_words(country: str, language: str, *, other: bool = False) -> tuple[Word, ...]:
    """A country's names, demonyms, peoples and cities."""
    label = OTHER_COUNTRY if other else COUNTRY
    found = [_word(w, label) for w in (country, *demonyms(country))]
    for code in dict.fromkeys((language, ENGLISH)):
        known = giveaways(country, code)
        found += [
            _word(w, label, proper=other and len(w) <= SHORT) for w in (country_name(country, code), *known.names)
        ]
        cities = [w for w in known.cities if len(w) > SHORT or not w[:1].isupper()]
        found += [_word(w, label, proper=w[:1] < LATIN_ENDS) for w in cities]
        found += [
            _word(w, label, proper=True) for w in load_giveaway(code).countries.get(country_code(country) or "", ())
        ]
    return tuple(dict.fromkeys(found))


@functools.lru_cache(maxsize=512)
def other_countries(countries: tuple[str, ...], language: str) -> tuple[Word, ...]:
    """The words of several countries that a trace is not about."""
    return tuple(word for country in countries for word in country_words(country, language, other=True))


@functools.lru_cache(maxsize=4096)
def _topic_words(topic: str, listed: tuple[str, ...], language: str) -> tuple[Word, ...]:
    words = (topic, *listed, *topic_stems(topic, language), *load_giveaway(language).topics.get(topic, ()))
    return tuple(dict.fromkeys(_word(w, TOPIC) for w in words if w.strip()))


def topic_words(survey: Survey, topic: str, language: str) -> tuple[Word, ...]:
    """A topic's label and the words of its survey, and what they are in the language."""
    return _topic_words(topic, tuple(survey.words.get(topic, ())), language)


def _word(text: str, label: str, *, proper: bool = False) -> Word:
    is_code = text.isascii() and text.isupper()
    return Word(text, label, proper=proper and text[:1].isupper(), exact=is_code)
