"""Countries by any of their names, the regions they belong to, and the words that give them away.

The data is in `data/countries.csv` and `data/*.grouping.toml`; pycountry knows the rest of ISO 3166.
"""

from __future__ import annotations

import csv
import re
import tomllib
import unicodedata
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from auditor.errors import SurveyError

DATA = Path(__file__).parent / "data"
GROUPING_SUFFIX = ".grouping.toml"
# Codes that surveys use and ISO 3166 does not have.
_OTHER_CODES = {"nir": "XNI", "gb nir": "XNI", "gb gbn": "GBR", "909": "XNI", "xk": "XKX", "rks": "XKX", "915": "XKX"}
_SAME_IN_PLURAL = ("s", "sh", "ch", "ese", "hman", "woman", "men")


class Country(NamedTuple):
    """A country's names and what its people are called.

    Attributes:
        code: ISO 3166 alpha-3, or a code of our own (`XKX` Kosovo, `XNI` Northern Ireland) where ISO has none.
        demonyms: adjectives and nouns for its people, singular.
    """

    code: str
    name: str
    other_names: tuple[str, ...]
    demonyms: tuple[str, ...]


def country_code(name: str) -> str | None:
    """The ISO 3166 alpha-3 code behind a name, an alpha-2 or alpha-3 code, or a survey's own spelling.

    Returns:
        The code, or None where the name is no country we know (`East Germany`, say).
    """
    return _code(name)


def country_name(code: str) -> str | None:
    """The English name behind an ISO 3166 code, alphabetic or numeric; None where it is none, or not a code."""
    found = country_code(code.zfill(3) if code.isdecimal() else code)
    if found is None or len(code) > 3:
        return None
    return _table()[found].name if found in _table() else _iso_names(found)[0]


def region_of(country: str, grouping: str = "western") -> str | None:
    """The group that a country belongs to.

    Args:
        country: any spelling that `country_code` understands, or one that the grouping file itself uses.
        grouping: `western`, `m49`, `m49-subregions` or `inglehart-welzel`, or a path to a TOML file of the user's
            own, with a table `[regions]` of lists of countries and, if wanted, `rest`, the name of all others.

    Returns:
        The group's name; None where the country is unknown or in no group.

    Raises:
        SurveyError: there is no such grouping, its file cannot be used, or a country is in two groups.
    """
    members, rest = _grouping(grouping)
    code = country_code(country)
    key = code if code is not None else _plain(country)
    return members.get(key, rest if code in _table() else None)


def groupings() -> tuple[str, ...]:
    """Names of the built-in groupings."""
    return tuple(sorted(p.name.removesuffix(GROUPING_SUFFIX) for p in DATA.glob(f"*{GROUPING_SUFFIX}")))


def demonyms(country: str) -> tuple[str, ...]:
    """All forms that give a country away in a text: its names, adjectives, and people in singular and plural.

    They are whole words or phrases, longest first, so that replacing them in order never leaves half a name; a
    possessive is the form and `'s`. Forms wholly in capitals (`US`, `UK`) must be matched with their case, since
    "us" is a word; all others without.

    Returns:
        At least the country's name as given, whether it is known or not.
    """
    known = _table().get(country_code(country) or "")
    forms = [country]
    if known is not None:
        people = [form for d in known.demonyms for form in (d, _plural(d))]
        forms += [known.name, *known.other_names, *_iso_names(known.code), *people]
    unique = {form.casefold() if not form.isupper() else form: form for form in reversed(forms)}
    return tuple(sorted(unique.values(), key=lambda form: (-len(form), form)))


def _plural(demonym: str) -> str:
    return demonym if demonym.endswith(_SAME_IN_PLURAL) else demonym + "s"


@cache
def _table() -> dict[str, Country]:
    with open(DATA / "countries.csv", encoding="utf-8", newline="") as file:
        rows = [
            Country(r["code"], r["name"], _split(r["other_names"]), _split(r["demonyms"])) for r in csv.DictReader(file)
        ]
    return {row.code: row for row in rows}


def _split(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split("|")))


@cache
def _codes_by_name() -> dict[str, str]:
    names = {_plain(name): c.code for c in _table().values() for name in (c.name, *c.other_names, c.code)}
    return names | _OTHER_CODES


@cache
def _code(name: str) -> str | None:
    if _plain(name) in _codes_by_name():
        return _codes_by_name()[_plain(name)]
    import pycountry  # 249 records that most names never need

    try:
        return str(pycountry.countries.lookup(name.strip()).alpha_3)
    except LookupError:
        return None


def _iso_names(code: str) -> list[str]:
    import pycountry

    found = pycountry.countries.get(alpha_3=code)
    names = (getattr(found, key, None) for key in ("name", "common_name", "official_name"))
    # "Venezuela, Bolivarian Republic of" is an index entry, not a form that anybody writes.
    return [name for name in names if name and "," not in name]


def _plain(name: str) -> str:
    """A name without accents, case, punctuation and a leading article, so that spellings meet."""
    letters = unicodedata.normalize("NFKD", name.casefold().replace("&", " and "))
    words = re.sub(r"[^\w\s]", " ", "".join(c for c in letters if not unicodedata.combining(c))).split()
    return " ".join(words[1:] if len(words) > 1 and words[0] == "the" else words)


# --- groupings --------------------------------------------------------------------------------------------------


@cache
def _grouping(grouping: str) -> tuple[dict[str, str], str | None]:
    """Group by code (or plain name), and the name of the rest."""
    path = DATA / f"{grouping}{GROUPING_SUFFIX}" if grouping in groupings() else Path(grouping)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = ", ".join(groupings())
        raise SurveyError(
            f"there is no grouping '{grouping}'.", f"Built in are {known}; or give a TOML file."
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SurveyError(f"{path}: cannot be read as a grouping: {error}.", "Mend the file.") from None
    regions = data.get("regions")
    if not isinstance(regions, dict) or not all(_is_list_of_text(v) for v in regions.values()):
        raise SurveyError(
            f"{path}: has no table [regions] of lists of countries.", 'Write: "Group" = ["Country", ...].'
        )
    return _members(regions, str(path)), data.get("rest")


def _is_list_of_text(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _members(regions: dict[str, Iterable[str]], where: str) -> dict[str, str]:
    members: dict[str, str] = {}
    for region, countries in regions.items():
        for country in countries:
            key = country_code(country) or _plain(country)
            if key in members:
                raise SurveyError(f"{where}: '{country}' is in '{members[key]}' and in '{region}'.", "Keep one.")
            members[key] = region
    return members
