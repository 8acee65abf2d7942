"""Convert names of countries and topics to the spelling that a survey uses."""

from __future__ import annotations

from collections.abc import Callable

from auditor.domain import Survey
from auditor.surveys.countries import country_code
from auditor.surveys.table_formats import NA


def make_country_speller(survey: Survey) -> Callable[[str], str]:
    """Return a function that converts any spelling of a country to the survey's; other names stay as they are."""
    by_code = {code: country for country in survey.countries if (code := country_code(country))}
    survey_countries = set(survey.countries)

    def spell(name: str) -> str:
        """Return a country in the survey's spelling; a name that is not in the survey stays as it is."""
        if name == NA:  # as R writes a missing value: only a survey that has this name says that it is Namibia
            return name
        return name if name in survey_countries else by_code.get(country_code(name) or "", name)

    return spell


def make_topic_speller(survey: Survey) -> Callable[[str], str]:
    """Return a function that finds a topic without regard to case and white space; other names stay as they are."""
    by_folded = {_fold(topic): topic for topic in reversed(survey.topics)}
    survey_topics = set(survey.topics)

    def spell(name: str) -> str:
        """Return a topic in the survey's spelling; a name that is not in the survey stays as it is."""
        return name if name in survey_topics else by_folded.get(_fold(name), name)

    return spell


def _fold(name: str) -> str:
    """A name in lower case with single spaces."""
    return " ".join(name.casefold().split())
