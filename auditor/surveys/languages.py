"""The language in which most people of a country can be asked, of those that there are prompts in."""

from __future__ import annotations

import csv
from functools import cache

from auditor.domain import ENGLISH
from auditor.surveys.countries import DATA, country_code


def native_language(country: str) -> str:
    """The main language of a country, or English where there are no prompts in it.

    Args:
        country: a name or code, as a survey spells it.

    Returns:
        An ISO 639-1 code. Main is a language that is official, national or of most public life there, after the
        project's own table; of several the one with most speakers for which there are prompts.
    """
    code = country_code(country)
    return ENGLISH if code is None else _by_country().get(code, ENGLISH)


@cache
def _by_country() -> dict[str, str]:
    with open(DATA / "languages.csv", encoding="utf-8", newline="") as file:
        return {code: row["language"] for row in csv.DictReader(file) for code in row["countries"].split()}
