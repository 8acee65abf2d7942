"""Spellings, regions and the words that give a country away."""

from __future__ import annotations

import csv
from pathlib import Path

import pycountry
import pytest

from auditor.errors import SurveyError
from auditor.surveys import country_code, demonyms, groupings, load_survey, region_of
from auditor.surveys.countries import DATA

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
    with open(DATA / "countries.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Britain", "GBR"), ("Great Britain", "GBR"), ("United Kingdom", "GBR"), ("Northern Ireland", "XNI"),
        ("South Korea", "KOR"), ("Korea, Republic of", "KOR"), ("Korea, Rep.", "KOR"), ("North Korea", "PRK"),
        ("Taiwan ROC", "TWN"), ("Taiwan", "TWN"), ("Republic of China", "TWN"), ("China", "CHN"),
        ("Hong Kong SAR", "HKG"), ("Macau SAR", "MAC"), ("Türkiye", "TUR"), ("TURKEY", "TUR"),
        ("Palestinian territories", "PSE"), ("Palestine, State of", "PSE"), ("Côte d’Ivoire", "CIV"),
        ("Venezuela, Bolivarian Republic of", "VEN"), ("Viet Nam", "VNM"), ("Czechia", "CZE"),
        ("The Netherlands", "NLD"),
        ("Bosnia & Herzegovina", "BIH"), ("NO", "NOR"), ("NA", "NAM"), ("840", "USA"), (" usa ", "USA"),
        ("Guinea-Bissau", "GNB"), ("Guinea", "GIN"), ("Niger", "NER"), ("Nigeria", "NGA"), ("Bermuda", "BMU"),
    ],
)  # fmt: skip
def test_a_country_is_known_by_any_spelling(name: str, code: str) -> None:
    assert country_code(name) == code


@pytest.mark.parametrize("name", ["East Germany", "Atlantis", "", "  ", "the"])
def test_what_is_no_country_has_no_code(name: str) -> None:
    assert country_code(name) is None


def test_the_table_agrees_with_iso_3166() -> None:
    for row in rows():
        found = pycountry.countries.get(alpha_3=row["code"])
        assert (found is None) == (row["code"] in OWN_CODES), row
        assert row["demonyms"], row
        if found is not None:
            assert country_code(found.name) == country_code(found.alpha_2) == row["code"]


def test_no_spelling_means_two_countries() -> None:
    names = [(n.casefold(), r["code"]) for r in rows() for n in (r["name"], *filter(None, r["other_names"].split("|")))]
    assert len({name for name, _ in names}) == len(names)


# --- regions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grouping", ["inglehart-welzel", "m49", "m49-subregions", "western"])
def test_every_surveyed_country_has_a_region(grouping: str) -> None:
    assert grouping in groupings()
    assert [c for c in COUNTRIES if region_of(c, grouping) is None] == []


@pytest.mark.parametrize(
    ("country", "western", "m49", "subregion", "zone"),
    [
        ("Germany", "Western", "Europe", "Western Europe", "Protestant Europe"),
        ("Britain", "Western", "Europe", "Northern Europe", "English-Speaking"),
        ("New Zealand", "Western", "Oceania", "Australia and New Zealand", "English-Speaking"),
        ("United States", "Western", "Americas", "Northern America", "English-Speaking"),
        ("Brazil", "Non-Western", "Americas", "South America", "Latin America"),
        ("Russia", "Non-Western", "Europe", "Eastern Europe", "Orthodox Europe"),
        ("Japan", "Non-Western", "Asia", "Eastern Asia", "Confucian"),
        ("Egypt", "Non-Western", "Africa", "Northern Africa", "African-Islamic"),
        ("Iran", "Non-Western", "Asia", "Southern Asia", "African-Islamic"),
        ("Cyprus", "Non-Western", "Asia", "Western Asia", "West and South Asia"),
    ],
)
def test_regions(country: str, western: str, m49: str, subregion: str, zone: str) -> None:
    assert region_of(country) == western
    assert region_of(country, "m49") == m49
    assert region_of(country, "m49-subregions") == subregion
    assert region_of(country, "inglehart-welzel") == zone


def test_an_unknown_country_has_no_region() -> None:
    assert region_of("Atlantis") is None
    assert region_of("Atlantis", "m49") is None


def test_m49_covers_the_table_and_its_subregions_lie_in_one_region_each() -> None:
    codes = {row["code"] for row in rows()}
    pairs = {(region_of(c, "m49-subregions"), region_of(c, "m49")) for c in codes}
    assert None not in {p for pair in pairs for p in pair}
    assert len(pairs) == len({subregion for subregion, _ in pairs}) == 22


def test_a_grouping_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('rest = "Others"\n[regions]\nNordic = ["Norway", "SE"]\nSplit = ["East Germany"]\n')
    assert region_of("NO", str(path)) == "Nordic"
    assert region_of("Sweden", str(path)) == "Nordic"
    assert region_of("East Germany", str(path)) == "Split"
    assert region_of("Brazil", str(path)) == "Others"
    assert region_of("Atlantis", str(path)) is None


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ('[regions]\nA = ["UK"]\nB = ["Britain"]\n', "'Britain' is in 'A' and in 'B'"),
        ("regions = 3\n", "has no table"),
        ("[regions]\nA = 'UK'\n", "has no table"),
        ("regions", "cannot be read"),
    ],
)
def test_a_grouping_that_cannot_be_used_says_why(tmp_path: Path, toml: str, says: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(toml)
    with pytest.raises(SurveyError) as caught:
        region_of("Norway", str(path))
    assert says in str(caught.value)


def test_an_unknown_grouping_names_the_known() -> None:
    with pytest.raises(SurveyError, match="Built in are inglehart-welzel, m49, m49-subregions, western"):
        region_of("Norway", "wetsern")


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
    assert forms <= set(demonyms(country))


@pytest.mark.parametrize("country", COUNTRIES)
def test_every_surveyed_country_has_its_name_and_more_longest_first(country: str) -> None:
    forms = demonyms(country)
    assert country in forms
    assert len(forms) >= 3
    assert list(map(len, forms)) == sorted(map(len, forms), reverse=True)
    assert len({form.casefold() for form in forms}) >= len(forms) - 1


def test_a_place_unknown_to_us_still_gives_its_own_name() -> None:
    assert demonyms("Atlantis") == ("Atlantis",)
