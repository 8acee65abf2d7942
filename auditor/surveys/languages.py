"""The languages in which most people of a country can be asked, of those that there are prompts in."""

from __future__ import annotations

import csv
from collections import defaultdict
from functools import cache

from auditor.surveys.countries import DATA_FOLDER, country_code


def native_languages(country: str) -> tuple[str, ...]:
    """The main languages of a country that there are prompts in.

    Args:
        country: a name or code, as a survey spells it.

    Returns:
        ISO 639-1 codes; none where there are prompts in no main language, or the country is unknown. Main is a language
        that is official, national or of most public life there, after the project's own table: as a rule the one with
        most speakers, and several where regions of the country differ, as in Switzerland.
    """
    return _load_languages_by_country().get(country_code(country) or "", ())


@cache
def _load_languages_by_country() -> dict[str, tuple[str, ...]]:
    languages_by_country: defaultdict[str, list[str]] = defaultdict(list)
    with open(DATA_FOLDER / "languages.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for code in row["countries"].split():
                languages_by_country[code].append(row["language"])
    return {code: tuple(languages) for code, languages in languages_by_country.items()}
