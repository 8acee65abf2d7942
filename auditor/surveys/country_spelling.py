"""Countries as a survey spells them."""

from __future__ import annotations

from collections.abc import Callable

from auditor.domain import Survey
from auditor.surveys.countries import country_code


def make_country_speller(survey: Survey) -> Callable[[str], str]:
    """A country's name as the survey spells it, from any spelling of the same country; any other name as it is."""
    by_code = {code: country for country in survey.countries if (code := country_code(country))}
    survey_countries = set(survey.countries)

    def spell(name: str) -> str:
        return name if name in survey_countries else by_code.get(country_code(name) or "", name)

    return spell
