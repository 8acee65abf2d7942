"""Main languages of each country, among the languages for which the package has prompts."""

from __future__ import annotations

import csv
from collections import defaultdict
from functools import cache

from auditor.surveys.countries import DATA_FOLDER, country_code


def native_languages(country: str) -> tuple[str, ...]:
    """Return the main languages of a country for which the package has prompts.

    Args:
        country: a name or code, as a survey spells it.

    Returns:
        ISO 639-1 codes; empty if no main language has prompts, or the country is unknown. Main languages are those
        that are official, national or used in most of public life, as listed in `data/languages.csv`: usually the
        one with most speakers, and several if regions of the country differ, as in Switzerland.
    """
    return _load_languages_by_country().get(country_code(country) or "", ())


@cache
def _load_languages_by_country() -> dict[str, tuple[str, ...]]:
    """ISO 639-1 codes by alpha-3 country code."""
    languages_by_country: defaultdict[str, list[str]] = defaultdict(list)
    with open(DATA_FOLDER / "languages.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for code in row["countries"].split():
                languages_by_country[code].append(row["language"])
    return {code: tuple(languages) for code, languages in languages_by_country.items()}
