"""Look up countries by any of their names, and list the words by which a text reveals a country.

The data is in `data/countries.csv`; all other countries of ISO 3166 come from pycountry.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import NamedTuple

DATA_FOLDER = Path(__file__).parent / "data"
# Codes that surveys use and ISO 3166 does not have.
_OTHER_CODES = {"nir": "XNI", "gb nir": "XNI", "gb gbn": "GBR", "909": "XNI", "xk": "XKX", "rks": "XKX", "915": "XKX"}
_INVARIANT_PLURAL_ENDINGS = ("s", "sh", "ch", "ese", "hman", "woman", "men")


class Country(NamedTuple):
    """Names of a country and of its people.

    Attributes:
        code: ISO 3166 alpha-3, or a code of our own (`XKX` Kosovo, `XNI` Northern Ireland) where ISO has none.
        demonyms: adjectives and nouns for its people, singular.
    """

    code: str
    name: str
    other_names: tuple[str, ...]
    demonyms: tuple[str, ...]


def country_code(name: str) -> str | None:
    """Return the ISO 3166 alpha-3 code of a country, given by name, alpha-2 or alpha-3 code, or a survey's spelling.

    Returns:
        The code, or None for an unknown country (such as `East Germany`).
    """
    return _find_code(name)


def country_key(name: str) -> str:
    """Return a key that is equal for all spellings of a country: its ISO 3166 code, else its normalized name."""
    return country_code(name) or _normalize_name(name)


def known_codes() -> frozenset[str]:
    """Codes of the countries in `data/countries.csv`: those that surveys cover, and their neighbours."""
    return frozenset(_load_countries())


def country_name(code: str) -> str | None:
    """Return the English name for an ISO 3166 code, alphabetic or numeric; None for an unknown code or another text."""
    alpha_3 = country_code(code.zfill(3) if code.isdecimal() else code)
    # `country_code` also understands names, which are longer than any code.
    if alpha_3 is None or len(code) > 3:
        return None
    return _load_countries()[alpha_3].name if alpha_3 in _load_countries() else _iso_names(alpha_3)[0]


def country_name_forms(country: str) -> tuple[str, ...]:
    """Return all words that reveal a country in a text: its names, adjectives, and its people in singular and plural.

    They are whole words or phrases, longest first, so that replacing them in order never leaves part of a name. The
    possessive `'s` is not included. Match forms in capitals (`US`, `UK`) with their case, since "us" is a word, and
    all other forms in any case.

    Returns:
        At least `country` itself, even if it is unknown.
    """
    known_country = _load_countries().get(country_code(country) or "")
    forms = [country]
    if known_country is not None:
        people_forms = [form for demonym in known_country.demonyms for form in (demonym, _pluralize_demonym(demonym))]
        forms += [known_country.name, *known_country.other_names, *_iso_names(known_country.code), *people_forms]
    # One form per spelling: case only distinguishes forms in capitals; of others that differ in case the first wins.
    unique = {form.casefold() if not form.isupper() else form: form for form in reversed(forms)}
    return tuple(sorted(unique.values(), key=lambda form: (-len(form), form)))


def _pluralize_demonym(demonym: str) -> str:
    """Return the plural of a word for people, which for some endings equals the singular."""
    return demonym if demonym.endswith(_INVARIANT_PLURAL_ENDINGS) else demonym + "s"


@cache
def _load_countries() -> dict[str, Country]:
    """Read the countries of `data/countries.csv`, by alpha-3 code."""
    with open(DATA_FOLDER / "countries.csv", encoding="utf-8", newline="") as file:
        countries = [
            Country(row["code"], row["name"], _split_names(row["other_names"]), _split_names(row["demonyms"]))
            for row in csv.DictReader(file)
        ]
    return {country.code: country for country in countries}


def _split_names(text: str) -> tuple[str, ...]:
    """Split a field at `|` into its names; empty names are left out."""
    return tuple(filter(None, text.split("|")))


@cache
def _load_codes_by_name() -> dict[str, str]:
    """Code by normalized name or code, for the countries of `data/countries.csv` and `_OTHER_CODES`."""
    names = {
        _normalize_name(name): country.code
        for country in _load_countries().values()
        for name in (country.name, *country.other_names, country.code)
    }
    return names | _OTHER_CODES


@cache
def _find_code(name: str) -> str | None:
    """Return the alpha-3 code of a country given by any name or code; None if it is unknown. Results are cached."""
    if _normalize_name(name) in _load_codes_by_name():
        return _load_codes_by_name()[_normalize_name(name)]
    import pycountry  # loads 249 records that most names do not need

    try:
        return str(pycountry.countries.lookup(name.strip()).alpha_3)
    except LookupError:
        return None


def _iso_names(code: str) -> list[str]:
    """Names that pycountry has for an alpha-3 code: short, common and official."""
    import pycountry

    country = pycountry.countries.get(alpha_3=code)
    names = (getattr(country, attribute, None) for attribute in ("name", "common_name", "official_name"))
    # Names with a comma, such as "Venezuela, Bolivarian Republic of", are index entries that do not occur in texts.
    return [name for name in names if name and "," not in name]


def _normalize_name(name: str) -> str:
    """Remove accents, case, punctuation and a leading "the" from a name, so that spellings compare as equal."""
    letters = unicodedata.normalize("NFKD", name.casefold().replace("&", " and "))
    words = re.sub(
        r"[^\w\s]", " ", "".join(character for character in letters if not unicodedata.combining(character))
    ).split()
    return " ".join(words[1:] if len(words) > 1 and words[0] == "the" else words)
