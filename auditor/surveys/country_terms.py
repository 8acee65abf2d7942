"""Words by which a text reveals a country: its names, peoples and cities in every prompt language.

The data is `data/giveaways.csv`, from the Unicode CLDR (`data/giveaways.LICENSE`): names of territories, of the
languages that are mainly spoken there, adjectives of their currencies, and the exemplar cities of their time zones.
"""

from __future__ import annotations

import csv
from functools import cache
from typing import NamedTuple

from auditor.surveys.countries import DATA_FOLDER, country_code


class CountryTerms(NamedTuple):
    """A country's names and peoples, and its cities, in one language."""

    names: tuple[str, ...] = ()
    cities: tuple[str, ...] = ()


def get_country_terms(country: str, language: str) -> CountryTerms:
    """Return the words by which a text in a given language reveals a country; empty for an unknown country or language.

    Args:
        country: a name or code, as a survey spells it.
        language: ISO 639-1 code.
    """
    return _load_country_terms().get((country_code(country) or "", language), CountryTerms())


@cache
def _load_country_terms() -> dict[tuple[str, str], CountryTerms]:
    """Terms by alpha-3 country code and language."""
    with open(DATA_FOLDER / "giveaways.csv", encoding="utf-8", newline="") as file:
        return {
            (row["code"], row["language"]): CountryTerms(_split_terms(row["names"]), _split_terms(row["cities"]))
            for row in csv.DictReader(file)
        }


def _split_terms(text: str) -> tuple[str, ...]:
    """Split a field at `|` into its words; empty ones are left out."""
    return tuple(filter(None, text.split("|")))
