"""Countries by any of their names, the words by which a text reveals one, and their main languages."""

from __future__ import annotations

import csv
import difflib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from auditor.domain import Survey
from auditor.domain.terms import COUNTRIES_BY_LANGUAGE
from auditor.errors import ImportFileError
from auditor.lazy_imports import import_when_used
from auditor.surveys.table_formats import NA
from auditor.text_safety import clean_name

if not TYPE_CHECKING:
    pycountry = import_when_used("pycountry")
else:
    import pycountry

DATA_FOLDER = Path(__file__).parent / "data"
NAMES_FILE = DATA_FOLDER / "country_names.txt"
# Codes and abbreviations that surveys and maps use and ISO 3166 does not have.
_OTHER_CODES = {
    "nir": "XNI", "gb nir": "XNI", "gb gbn": "GBR", "909": "XNI", "xk": "XKX", "rks": "XKX", "915": "XKX",
    "el": "GRC", "ger": "DEU", "bosnia and herz": "BIH", "bosnia herz": "BIH", "central african rep": "CAF",
    "dem rep congo": "COD", "dem rep of the congo": "COD", "rep of congo": "COG", "dominican rep": "DOM",
    "eq guinea": "GNQ", "s sudan": "SSD", "solomon is": "SLB", "marshall is": "MHL", "cook is": "COK",
    "cayman is": "CYM", "faroe is": "FRO", "fr polynesia": "PYF", "n mariana is": "MNP", "n korea": "PRK",
    "w sahara": "ESH", "st lucia": "LCA", "st kitts and nevis": "KNA", "st vin and gren": "VCT",
    "antigua and barb": "ATG", "sao tome and prin": "STP", "slovak rep": "SVK", "kyrgyz rep": "KGZ",
    "macedonia fyr": "MKD", "iran islamic rep": "IRN", "egypt arab rep": "EGY", "yemen rep": "YEM",
    "venezuela rb": "VEN", "gambia the": "GMB", "bahamas the": "BHS", "lao pdr": "LAO", "korea dem rep": "PRK",
    "former yugoslav republic of macedonia": "MKD", "china hong kong sar": "HKG", "china macao sar": "MAC",
    "hong kong sar china": "HKG", "macao sar china": "MAC", "micronesia fed sts": "FSM", "congo dem rep": "COD",
    "congo rep": "COG", "west bank and gaza": "PSE",
}  # fmt: skip
# English names that mean two countries; "Nga" is Russia in Vietnamese, "NGA" and "nga" are codes.
_AMBIGUOUS_NAMES = {
    "virgin islands": ("VGB", "VIR"),
    "saint martin": ("MAF", "SXM"),
    "st martin": ("MAF", "SXM"),
    "Nga": ("NGA", "RUS"),
}
# Latin letters that Unicode does not decompose to a basic letter and an accent.
_LATIN_LETTERS = str.maketrans({"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})
_NUMERIC_CODE = re.compile(r"([0-9]{1,3})(\.0+)?")
CountryCodes = Literal["iso-3166-numeric"]
"""What a user may say that numbers of countries are; other lists, such as Correlates of War, have other numbers."""
COUNTRY_NAME_ADVICE = "Write the name of the country, or its letters in ISO 3166."
COUNTRY_CODES_ADVICE = (
    "If the numbers are those of ISO 3166, add --country-codes iso-3166-numeric. If not, write names."
)
MIN_NAME_SIMILARITY = 0.7
"""Ratio of `difflib` from which a known name is suggested for an unknown one."""
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
    """Return the ISO 3166 alpha-3 code of a country, given by name, alpha-2, alpha-3 or numeric code (`76` is `076`).

    The name may be in another language, or that of a former state, whose code is its last one in ISO 3166 (`DDR`).

    Returns:
        The code, or None for an unknown country (such as `Atlantis`) and for an ambiguous name.
    """
    codes = country_codes(name)
    return codes[0] if len(codes) == 1 else None


@cache
def country_codes(name: str) -> tuple[str, ...]:
    """Return the alpha-3 codes of all countries that a name may mean: more than one if it is ambiguous."""
    return find_english_codes(name) or _load_codes_by_foreign_name().get(fold_name(name), ())


def is_english_name(name: str) -> bool:
    """Whether a country is known by this name or code in English."""
    return bool(find_english_codes(name))


def country_key(name: str) -> str:
    """Return a key that is equal for all spellings of a country: its ISO 3166 code, else its folded name."""
    return country_code(name) or fold_name(name)


def suggest_country(name: str) -> str | None:
    """Return the English name that an unknown name is spelt most like, or all that an ambiguous one may mean.

    Returns:
        Names joined by "or"; None if no known name is similar.
    """
    if codes := country_codes(name):
        return " or ".join(country_name(code) or code for code in codes)
    english_names = {fold_name(country.name): country.name for country in _load_countries().values()}
    known_names = {folded: english_names.get(folded) for folded in (*english_names, *_load_codes_by_name())}
    long_names = [folded for folded in known_names if len(folded) > 3]
    similar_names = difflib.get_close_matches(fold_name(name), long_names, n=1, cutoff=MIN_NAME_SIMILARITY)
    return country_name(_load_codes_by_name()[similar_names[0]]) if similar_names else None


def known_codes() -> frozenset[str]:
    """Codes of the countries in `data/countries.csv`: those that surveys cover, and their neighbours."""
    return frozenset(_load_countries())


def country_name(code: str) -> str | None:
    """Return the English name for an ISO 3166 code, alphabetic or numeric; None for an unknown code or another text."""
    alpha_3 = country_code(code)
    # `country_code` also understands names, which are longer than any code.
    if alpha_3 is None or (len(code) > 3 and not _NUMERIC_CODE.fullmatch(code)):
        return None
    if alpha_3 in _load_countries():
        return _load_countries()[alpha_3].name
    return next(iter(_iso_names(alpha_3)), None)


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
        people_forms = [
            form
            for demonym in known_country.demonyms
            for form in (demonym, demonym if demonym.endswith(_INVARIANT_PLURAL_ENDINGS) else demonym + "s")
        ]
        forms += [known_country.name, *known_country.other_names, *_iso_names(known_country.code), *people_forms]
    # One form per spelling: case only distinguishes forms in capitals; of others that differ in case the first wins.
    unique = {form.casefold() if not form.isupper() else form: form for form in reversed(forms)}
    return tuple(sorted(unique.values(), key=lambda form: (-len(form), form)))


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
        fold_name(name): country.code
        for country in _load_countries().values()
        for name in (country.name, *country.other_names, country.code)
    }
    return names | _OTHER_CODES


@cache
def find_english_codes(name: str) -> tuple[str, ...]:
    """Return the alpha-3 codes of the countries that have a code or English name; none if it is unknown."""
    numeric_code = _NUMERIC_CODE.fullmatch(name.strip())
    folded = numeric_code[1].zfill(3) if numeric_code else fold_name(name)
    if ambiguous := _AMBIGUOUS_NAMES.get(name.strip()) or _AMBIGUOUS_NAMES.get(folded):
        return ambiguous
    if len(folded) <= 3 and any(char.isalpha() and not char.isascii() for char in name):
        return ()  # codes have no accents: "Áo" is Austria in Vietnamese, and not AO
    if folded in _load_codes_by_name():
        return (_load_codes_by_name()[folded],)
    code = _load_iso_codes().get(folded)
    return (code,) if code else ()


@cache
def _load_iso_codes() -> dict[str, str]:
    """Alpha-3 code by each folded name and code that pycountry has for a country."""
    attributes = ("name", "common_name", "official_name", "alpha_2", "alpha_3", "numeric")
    names = ((getattr(country, name, None), country.alpha_3) for country in pycountry.countries for name in attributes)
    return {fold_name(name): alpha_3 for name, alpha_3 in names if name}


@cache
def _load_codes_by_foreign_name() -> dict[str, tuple[str, ...]]:
    """Codes by folded name of `data/country_names.txt`; ambiguous names have several."""
    codes_by_name: dict[str, tuple[str, ...]] = {}
    for line in NAMES_FILE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            codes, _, names = line.partition("\t")
            codes_by_name |= dict.fromkeys(names.split("|"), tuple(codes.split()))
    return codes_by_name


def _iso_names(code: str) -> list[str]:
    """Names that pycountry has for an alpha-3 code: short, common and official."""
    country = pycountry.countries.get(alpha_3=code)
    if country is None:  # of a former state only its best known name
        former_state = pycountry.historic_countries.get(alpha_3=code)
        return [former_state.name] if former_state else []
    names = (getattr(country, attribute, None) for attribute in ("name", "common_name", "official_name"))
    # Names with a comma, such as "Venezuela, Bolivarian Republic of", are index entries that do not occur in texts.
    return [name for name in names if name and "," not in name]


def fold_name(name: str) -> str:
    """Remove case, punctuation, a leading "the" and the accents of Latin letters, so that spellings compare as equal.

    Other scripts keep their marks, which there are letters. A name without letters and digits stays as it is.
    """
    characters: list[str] = []
    base = " "
    for character in unicodedata.normalize("NFKD", name.casefold().replace("&", " and ")):
        if not unicodedata.combining(character):
            base = character
        elif unicodedata.name(base, "").startswith("LATIN"):
            continue
        characters.append(" " if unicodedata.category(character)[0] in "PSZC" else character)
    words = unicodedata.normalize("NFC", "".join(characters)).translate(_LATIN_LETTERS).split()
    return " ".join(words[1:] if len(words) > 1 and words[0] == "the" else words) or name.strip()


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


def is_country_number(name: str) -> bool:
    """Whether a country is written as a number, whose meaning depends on the list that it is from."""
    return any(char.isdigit() for char in name) and not any(char.isalpha() for char in name)


def make_country_speller(
    survey: Survey,
    source: str | Path,
    country_codes: CountryCodes | None = None,
    number_advice: str = COUNTRY_NAME_ADVICE,
) -> Callable[[str], str]:
    """Return a function that converts any spelling of a country to the survey's; other names stay as they are.

    Args:
        source: the file whose countries are converted, for messages.
        country_codes: what numbers mean; without it, the function raises ImportFileError for a number that is not the
            survey's own spelling.
        number_advice: how users fix such a number.
    """
    survey_countries = set(survey.countries)
    by_code = {
        code: country
        for country in survey.countries
        if (code := country_code(country)) and (country_codes or not is_country_number(country))
    }

    def spell(name: str) -> str:
        """Return a country in the survey's spelling; a name that is not in the survey stays as it is."""
        if name == NA or name in survey_countries:
            return name  # NA as R writes a missing value: only a survey that has this name says that it is Namibia
        if country_codes is None and is_country_number(name):
            raise ImportFileError(f"{source}: the country '{name}' is a number without a meaning.", number_advice)
        return by_code.get(country_code(name) or "", name)

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
    """A name in lower case with single spaces, in the composed form of Unicode."""
    return " ".join(clean_name(name).casefold().split())


def native_languages(country: str) -> tuple[str, ...]:
    """Return the main languages of a country for which the package has prompts.

    Args:
        country: a name or code, as a survey spells it.

    Returns:
        ISO 639-1 codes; empty if no main language has prompts, or the country is unknown. Main languages are those
        that are official, national or used in most of public life, as listed in `COUNTRIES_BY_LANGUAGE`: usually the
        one with most speakers, and several if regions of the country differ, as in Switzerland.
    """
    return _load_languages_by_country().get(country_code(country) or "", ())


@cache
def _load_languages_by_country() -> dict[str, tuple[str, ...]]:
    """ISO 639-1 codes by alpha-3 country code."""
    languages_by_country: defaultdict[str, list[str]] = defaultdict(list)
    for language, countries in COUNTRIES_BY_LANGUAGE.items():
        for code in countries:
            languages_by_country[code].append(language)
    return {code: tuple(languages) for code, languages in languages_by_country.items()}
