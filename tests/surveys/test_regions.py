"""Groupings of countries: the built-in ones, one's own, and files that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.domain import Region
from auditor.errors import AuditorError, SurveyError
from auditor.metrics.intervals.jackknife_interval import MIN_UNITS
from auditor.surveys import builtin_groupings, get_grouping, group_countries, load_survey, region_of
from auditor.surveys.countries import known_codes
from tests.surveys.test_countries import COUNTRIES


@pytest.mark.parametrize("grouping", ["inglehart_welzel", "un_m49", "un_m49_subregions", "western"])
def test_every_surveyed_country_has_a_region(grouping: str) -> None:
    assert grouping in builtin_groupings()
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
    assert region_of(country, "un_m49") == m49
    assert region_of(country, "un_m49_subregions") == subregion
    assert region_of(country, "inglehart_welzel") == zone


def test_an_unknown_country_has_no_region() -> None:
    assert region_of("Atlantis") is None
    assert region_of("Atlantis", "un_m49") is None


def test_m49_covers_the_table_and_its_subregions_lie_in_one_region_each() -> None:
    codes = known_codes()
    pairs = {(region_of(c, "un_m49_subregions"), region_of(c, "un_m49")) for c in codes}
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
    ("toml", "message"),
    [
        ('[regions]\nA = ["UK"]\nB = ["Britain"]\n', "the country 'Britain' is in 'A' and in 'B'"),
        ("regions = 3\n", "lists of countries is missing"),
        ("[regions]\nA = 'UK'\n", "lists of countries is missing"),
        ("regions", "not valid TOML"),
        ("rest = 3\n[regions]\nA = ['UK']\n", "'rest' is not a text in quotes"),
    ],
)
def test_a_grouping_that_cannot_be_used_says_why(tmp_path: Path, toml: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(toml)
    with pytest.raises(SurveyError) as caught:
        region_of("Norway", str(path))
    assert message in str(caught.value)


def test_an_unknown_grouping_names_the_nearest_or_all() -> None:
    with pytest.raises(SurveyError, match="Did you mean 'western'"):
        region_of("Norway", "wetsern")
    with pytest.raises(SurveyError, match="inglehart_welzel, un_m49, un_m49_subregions, western"):
        region_of("Norway", "my_groups.csv")


# --- a survey in groups -----------------------------------------------------------------------------------------

SURVEY = load_survey("wvs7-sample")


def csv(tmp_path: Path, text: str) -> str:
    path = tmp_path / "my_groups.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_survey_keeps_its_groups_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = csv(tmp_path, "country,region\nNGA,South\nJapan,North\nGermany,North\nNorway,Elsewhere\n")
    grouping = get_grouping(group_countries(SURVEY, path))
    assert (grouping.name, grouping.title) == ("my_groups.csv", "my_groups")
    assert grouping.regions == (Region("South", ("Nigeria",)), Region("North", ("Germany", "Japan")))
    Path(path).unlink()
    assert grouping.region_by_country["Nigeria"] == "South"
    assert "Brazil" not in grouping.region_by_country


def test_without_a_choice_western_countries_are_compared_with_others() -> None:
    grouping = get_grouping(SURVEY)
    assert [r.name for r in grouping.regions] == ["Western", "Non-Western"]
    assert grouping == get_grouping(group_countries(SURVEY))
    assert set(grouping.region_by_country) == set(SURVEY.countries)


@pytest.mark.parametrize("name", ["wvs7-sample", "pew2013-sample"])
def test_the_built_in_surveys_have_enough_countries_of_each_region_for_an_interval(name: str) -> None:
    for region in get_grouping(load_survey(name)).regions:
        assert len(region.countries) >= MIN_UNITS, region.name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("country,group\nJapan,A\n",
         "the column 'region' is missing; the file has: country, group. Use a CSV file with"),
        ("country,region\n", "the grouping is empty: there are no rows below the header"),
        ("country,region\nJapan,A\n380,B\n", "line 3: the country '380' is a number without a meaning"),
        ("country,region\nJapan,A\nGermny,B\n", "line 3: 'Germny' is not a country in ISO 3166 or in the survey"),
        ("country,region\nJapan,A\nGermny,B\n", "Did you mean 'Germany'?"),
        ("country,region\nJapan,A\nJPN,B\n",
         "line 3: the country 'JPN' is in 'A' and in 'B'. Remove one of the two entries."),
        ("country,region\nJapan,A\nJapan,A\n",
         "line 3: the country 'Japan' is listed twice. Remove one of the two entries."),
        ("country,region\nJapan,Asia\nChina,asia\n", "line 3: the regions 'Asia' and 'asia' differ in capital letters"),
        ("country,region\nJapan,\n", "line 2: the column 'region' is empty."),
        ("country,region\n,A\n", "line 2: the column 'country' is empty."),
        ("country,region\nJapan\n", "line 2 has 1 fields where the header has 2"),
        ("country,region\nIceland,A\n", "it contains no country of the survey 'wvs7-sample'"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_names_the_line_and_how_to_fix_it(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(AuditorError) as caught:
        group_countries(SURVEY, csv(tmp_path, text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "my_groups.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04\xff\xfe", "which is a ZIP archive or a spreadsheet"),
        ("country,region\nРоссия,A\n".encode("cp1251"), "line 2 is not UTF-8"),
    ],
)
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "my_groups.csv"
    path.write_bytes(content)
    with pytest.raises(AuditorError, match=message):
        group_countries(SURVEY, str(path))


def test_a_misspelt_country_in_a_toml_file_is_seen_too(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('[regions]\nA = ["Germny"]\n')
    with pytest.raises(SurveyError, match="'Germny' is not a country"):
        group_countries(SURVEY, str(path))
