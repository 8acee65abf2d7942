"""Spellings, the words that give a country away, and main languages."""

from __future__ import annotations

import csv
import dataclasses
import re
import subprocess
import sys
from importlib.metadata import version

import pycountry
import pytest

from auditor.domain import Cell
from auditor.errors import ImportFileError
from auditor.surveys import country_code, country_name_forms, load_survey
from auditor.surveys.countries import (
    DATA_FOLDER,
    NAMES_FILE,
    country_codes,
    fold_name,
    is_english_name,
    make_country_speller,
    native_languages,
    suggest_country,
)
from tests.support.country_name_table import format_table

OWN_CODES = {"XKX", "XNI"}
SURVEYED = {c for name in ("wvs7-sample", "pew2013-sample") for c in load_survey(name).countries}
ELSEWHERE = (
    "Andorra,Argentina,Armenia,Bangladesh,Bolivia,Canada,Chile,Colombia,Cyprus,Czech Republic,Ecuador,El Salvador,"
    "Ethiopia,France,Greece,Guatemala,Iran,Iraq,Israel,Italy,Jordan,Kazakhstan,Kenya,Kyrgyzstan,Lebanon,Libya,Malaysia,"
    "Maldives,Mongolia,Morocco,Myanmar,New Zealand,Nicaragua,Palestinian territories,Peru,Philippines,Poland,Romania,"
    "Senegal,Singapore,South Africa,South Korea,Spain,Taiwan,Tajikistan,Thailand,Tunisia,Uganda,Ukraine,"
    "United States of America,Venezuela,Vietnam,Zimbabwe"
)
COUNTRIES = sorted(SURVEYED | set(ELSEWHERE.split(",")))


def rows() -> list[dict[str, str]]:
    with open(DATA_FOLDER / "countries.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Britain", "GBR"), ("Great Britain", "GBR"), ("United Kingdom", "GBR"), ("Northern Ireland", "XNI"),
        ("South Korea", "KOR"), ("Korea, Republic of", "KOR"), ("Korea, Rep.", "KOR"), ("North Korea", "PRK"),
        ("Taiwan ROC", "TWN"), ("Taiwan", "TWN"), ("Republic of China", "TWN"), ("China", "CHN"),
        ("Hong Kong SAR", "HKG"), ("Macau SAR", "MAC"), ("Türkiye", "TUR"), ("TURKEY", "TUR"),
        ("Palestinian territories", "PSE"), ("Palest. ter.", "PSE"),  # as GlobalOpinionQA writes it
        ("Palestine, State of", "PSE"), ("Côte d’Ivoire", "CIV"),
        ("Venezuela, Bolivarian Republic of", "VEN"), ("Viet Nam", "VNM"), ("Czechia", "CZE"),
        ("The Netherlands", "NLD"),
        ("Bosnia & Herzegovina", "BIH"), ("NO", "NOR"), ("NA", "NAM"), ("840", "USA"), (" usa ", "USA"),
        ("Guinea-Bissau", "GNB"), ("Guinea", "GIN"), ("Niger", "NER"), ("Nigeria", "NGA"), ("Bermuda", "BMU"),
        ("EL", "GRC"), ("GER", "DEU"), ("Bosnia and Herz.", "BIH"), ("Iran (Islamic Republic of)", "IRN"),
        ("76", "BRA"), ("076", "BRA"), ("76.0", "BRA"), ("4", "AFG"), ("909", "XNI"),
        ("USSR", "SUN"), ("Soviet Union", "SUN"), ("East Germany", "DDR"), ("Yugoslavia", "YUG"),
        ("Czechoslovakia", "CSK"), ("Zaire", "COD"), ("Burma", "MMR"), ("Swaziland", "SWZ"),
    ],
)  # fmt: skip
def test_a_country_is_known_by_any_spelling_code_or_former_name(name: str, code: str) -> None:
    assert country_code(name) == code


@pytest.mark.parametrize(
    "name", ["West Germany", "England", "Wales", "Atlantis", "", "  ", "the", "???", "—", "1234", "Áo", "Bỉ"]
)
def test_what_is_no_country_has_no_code(name: str) -> None:
    assert country_code(name) is None


@pytest.mark.parametrize(
    ("name", "code"),
    [("Allemagne", "DEU"), ("NORVÈGE", "NOR"), ("Norvege", "NOR"), ("Россия", "RUS"), ("Российская Федерация", "RUS"),
     ("日本", "JPN"), ("भारत", "IND"), ("Autriche", "AUT"), ("Ελλάδα", "GRC"), ("대한민국", "KOR"), ("ไทย", "THA"),
     ("مصر", "EGY"), ("Danska", "DNK"), ("Łotwa", "LVA"), ("Estados Unidos", "USA")],
)  # fmt: skip
def test_names_in_other_languages_are_known(name: str, code: str) -> None:
    assert country_code(name) == code
    assert not is_english_name(name)


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("Virgin Islands", ("VGB", "VIR")),
        ("Nigeri", ("NER", "NGA")),
        ("Kongo", ("COD", "COG")),
        ("Nga", ("NGA", "RUS")),
    ],
)
def test_an_ambiguous_name_has_no_code(name: str, codes: tuple[str, ...]) -> None:
    assert country_code(name) is None
    assert country_codes(name) == codes


def test_only_accents_of_latin_letters_are_folded() -> None:
    assert fold_name("Côte  d’Ivoire") == fold_name("cote d'ivoire") == "cote d ivoire"
    assert fold_name("भारत") != fold_name("भरत")  # a vowel sign is a letter
    assert fold_name("ガーナ") != fold_name("カーナ")
    assert all(fold_name(name) for name in ("???", "—", "…", "()", "日本", "ไทย"))


@pytest.mark.parametrize(
    ("name", "country"),
    [
        ("Germny", "Germany"),
        ("Untied States", "United States"),
        ("Xyz", None),
        ("Virgin Islands", "British Virgin Islands or Virgin Islands of the United States"),
    ],
)
def test_the_nearest_country_of_a_misspelt_name_and_all_of_an_ambiguous_one(name: str, country: str | None) -> None:
    assert suggest_country(name) == country


def test_the_table_of_names_is_as_its_script_writes_it() -> None:
    content = NAMES_FILE.read_text(encoding="utf-8")
    versions = [version("Babel"), version("pycountry")]
    if not all(f" {package_version} (" in content for package_version in versions):
        pytest.skip("written with other versions of Babel and pycountry; `make country-names` writes it again")
    assert content == format_table()


def test_known_names_are_found_without_the_table_of_other_languages() -> None:
    code = "import auditor.surveys.countries as c; c.country_code('Britain'); c.country_code('NO')"
    check = f"{code}; assert not c._load_codes_by_foreign_name.cache_info().currsize"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_the_table_agrees_with_iso_3166() -> None:
    for row in rows():
        country = pycountry.countries.get(alpha_3=row["code"])
        assert (country is None) == (row["code"] in OWN_CODES), row
        assert row["demonyms"], row
        if country is not None:
            assert country_code(country.name) == country_code(country.alpha_2) == row["code"]


def test_no_spelling_means_two_countries() -> None:
    names = [(n.casefold(), r["code"]) for r in rows() for n in (r["name"], *filter(None, r["other_names"].split("|")))]
    assert len({name for name, _ in names}) == len(names)


# --- words that give a country away -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("country", "forms"),
    [
        ("Britain", {"Britain", "United Kingdom", "UK", "British", "Britons", "Englishman", "Scots", "Welsh"}),
        ("United States", {"United States of America", "America", "American", "Americans", "US", "U.S."}),
        ("Turkey", {"Turkey", "Türkiye", "Turkish", "Turk", "Turks"}),
        ("Netherlands", {"Holland", "Dutch", "Dutchmen"}),
        ("Palestinian territories", {"Palestine", "Palestinian", "Palestinians", "Gaza", "West Bank"}),
        ("Philippines", {"Filipino", "Filipinos", "Philippine"}),
    ],
)
def test_names_adjectives_and_people_are_all_there(country: str, forms: set[str]) -> None:
    assert forms <= set(country_name_forms(country))


def test_every_surveyed_country_has_its_name_and_more_longest_first() -> None:
    for country in COUNTRIES:
        forms = country_name_forms(country)
        assert country in forms
        assert len(forms) >= 3, country
        assert list(map(len, forms)) == sorted(map(len, forms), reverse=True), country
        assert len({form.casefold() for form in forms}) >= len(forms) - 1, country


def test_a_place_unknown_to_us_still_gives_its_own_name() -> None:
    assert country_name_forms("Atlantis") == ("Atlantis",)


@pytest.mark.parametrize(
    ("country", "languages"),
    [("Japan", ("ja",)), ("Egypt", ("ar",)), ("Britain", ("en",)), ("Mexico", ("es",)), ("Brazil", ("pt",)),
     ("Kenya", ("sw",)), ("Switzerland", ("de", "fr")), ("Canada", ("en", "fr")), ("Nigeria", ("en",)),
     ("Pakistan", ()), ("Nowhere", ())],
)  # fmt: skip
def test_a_country_s_main_languages(country: str, languages: tuple[str, ...]) -> None:
    assert native_languages(country) == languages


@pytest.mark.parametrize("number", ["840", "840.0", "(840)", "８４０", "2"])
def test_a_number_is_no_spelling_of_a_country_unless_the_survey_or_the_user_says_so(number: str) -> None:
    survey = load_survey("wvs7-sample")
    with pytest.raises(
        ImportFileError, match=re.escape(f"f.csv: the country '{number}' is a number without a meaning")
    ):
        make_country_speller(survey, "f.csv")(number)
    assert make_country_speller(survey, "f.csv", "iso-3166-numeric")("840") == "United States"
    assert make_country_speller(survey, "f.csv")("USA") == "United States"
    [cell] = [cell for cell in survey.cells if cell.cell == Cell("United States", "divorce")]
    numbered = dataclasses.replace(survey, cells=(dataclasses.replace(cell, cell=Cell(number, "divorce")),))
    assert make_country_speller(numbered, "f.csv")(number) == number
    assert make_country_speller(numbered, "f.csv")("United States") == "United States", "840 may be the Philippines"
