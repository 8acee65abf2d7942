"""Values of a country column mean a country for certain, or the import stops."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyreadstat
import pytest

from auditor.errors import ImportFileError, SurveyError
from auditor.surveys import load_mapping
from auditor.surveys.importer import import_survey
from tests.surveys import official_files

MAPPING = (
    'title = "T"\nsource = "S"\n{keys}\n[columns]\ncountry = ["c"]\n[topics]\nq = "x"\n[answers]\nlow = 1\nhigh = 9\n'
)


def import_countries(folder: Path, content: str, keys: str = "") -> dict[str, float]:
    """Import the text of a CSV file; return the score by country."""
    (folder / "my.toml").write_text(MAPPING.format(keys=keys), encoding="utf-8")
    (folder / "my.csv").write_text(content, encoding="utf-8")
    scores = import_survey(folder / "my.csv", folder / "my.toml").survey.scores
    return {cell.country: score for cell, score in scores.items()}


@pytest.mark.parametrize(
    "content",
    ['c,q\n"France",1\n"Haiti",9\nNA,3\n', 'c,q\n"FR",1\n"HT",9\nNA,3\n',
     'c,q\n"FR",1\n"HT",9\nN/A,3\n.,4\n-1,4\n,5\n−1,5\nNaN,2\n'],
)  # fmt: skip
def test_a_missing_country_is_no_country(content: str, tmp_path: Path) -> None:
    assert import_countries(tmp_path, content) == {"France": -1.0, "Haiti": 1.0}


@pytest.mark.parametrize("content", ['c,q\n"FR",1\n"NA",9\nNA,5\n', 'c,q\nFR,1\n"NA",9\nNA,5\n'])
def test_na_in_quotation_marks_is_namibia_among_codes(content: str, tmp_path: Path) -> None:
    assert import_countries(tmp_path, content) == {"France": -1.0, "Namibia": 1.0}


@pytest.mark.parametrize(
    "content", ["c,q\nFR,1\nNA,9\n", "c,q\nFrance,1\nNA,9\n", 'c,q\n"Korea, South",1\nFrance,1\nNA,9\n', "c,q\nNA,9\n",
                'c,q\n"France",1\n"NA",9\n']
)  # fmt: skip
def test_na_that_nothing_explains_stops_the_import(content: str, tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match=r"row \d, column 'c': 'NA' may be Namibia or a missing value \(1 row\)"):
        import_countries(tmp_path, content)
    assert import_countries(tmp_path, content, 'countries = { NA = "Namibia" }')["Namibia"] == 1.0
    if "F" in content:
        assert "Namibia" not in import_countries(tmp_path, content, 'countries = { missing = ["NA"] }')


def test_na_in_a_column_of_numbers_is_missing(tmp_path: Path) -> None:
    keys = 'country_codes = "iso-3166-numeric"'
    assert import_countries(tmp_path, "c,q\n76,1\nNA,9\n076,1\n", keys) == {"Brazil": -1.0}


def test_numbers_are_never_guessed(tmp_path: Path) -> None:
    content = "c,q\n4,1\n4.0,1\n5,9\n-1,9\n"
    problem = r"row 1, column 'c': '4' is a number without a meaning \(1 row\); row 2"
    with pytest.raises(ImportFileError, match=problem) as caught:
        import_countries(tmp_path, content)
    assert caught.value.how_to_fix.count("iso-3166-numeric") == 1
    scores = import_countries(tmp_path, content, 'countries = { 4 = "Morocco", 5 = "Algeria" }')
    assert scores == {"Morocco": -1.0, "Algeria": 1.0}
    with pytest.raises(ImportFileError, match="row 3, column 'c': 5 is not a country in ISO 3166"):
        import_countries(tmp_path, content, 'country_codes = "iso-3166-numeric"')


def test_labels_of_an_spss_file_name_countries(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(MAPPING.format(keys=""), encoding="utf-8")
    labels: official_files.Labels = {4: "Maroc", 5: "Algeria", 99: "N/A", 98: "Atlantis"}
    frame = pd.DataFrame({"c": [4.0, 5, 99, 98], "q": [1.0, 9, 9, 9]})
    pyreadstat.write_sav(frame, str(tmp_path / "my.sav"), variable_value_labels={"c": labels})
    imported = import_survey(tmp_path / "my.sav", tmp_path / "my.toml")
    assert set(imported.survey.countries) == {"Morocco", "Algeria", "Atlantis"}
    assert imported.reading is not None
    assert [value.source for value in imported.reading.country_values] == [
        "value label", "value label", "missing", "unknown name",
    ]  # fmt: skip


def test_names_in_other_languages_and_unknown_names_are_listed(tmp_path: Path) -> None:
    content = "c,q\nAllemagne,1\nNorvège,9\nGermny,5\nEL,5\nFrance,5\n"
    (tmp_path / "my.toml").write_text(MAPPING.format(keys=""), encoding="utf-8")
    (tmp_path / "my.csv").write_text(content, encoding="utf-8")
    imported = import_survey(tmp_path / "my.csv", tmp_path / "my.toml")
    assert imported.survey.countries == ("Germany", "Norway", "Germny", "Greece", "France")
    assert imported.reading is not None
    assert [value.describe_source() for value in imported.reading.country_values] == [
        "name in another language", "name in another language", "unknown name, similar to Germany", "ISO 3166 code",
        "name",
    ]  # fmt: skip


def test_an_ambiguous_name_stops_until_it_is_named(tmp_path: Path) -> None:
    content = "c,q\nVirgin Islands,1\nFrance,9\n"
    message = "'Virgin Islands' may be British Virgin Islands or Virgin Islands of the United States"
    with pytest.raises(ImportFileError, match=message):
        import_countries(tmp_path, content)
    keys = 'countries = { "Virgin Islands" = "US Virgin Islands" }'
    assert "US Virgin Islands" in import_countries(tmp_path, content, keys)


def test_two_spellings_are_one_country_only_if_listed(tmp_path: Path) -> None:
    content = "c,q\nGermany,1\nDeutschland,9\n"
    with pytest.raises(ImportFileError, match="row 2, column 'c': 'Deutschland' and 'Germany' are the same country"):
        import_countries(tmp_path, content)
    assert import_countries(tmp_path, content, 'countries = { deutschland = "Germany" }') == {"Germany": 0.0}


def test_two_codes_of_one_country_are_named_with_their_labels(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(MAPPING.format(keys=""), encoding="utf-8")
    labels = {"c": {6.0: "Cabo Verde", 43.0: "Cape Verde"}}
    pyreadstat.write_sav(
        pd.DataFrame({"c": [6.0, 43.0], "q": [1.0, 9.0]}), tmp_path / "my.sav", variable_value_labels=labels
    )
    with pytest.raises(ImportFileError, match=r"43 \('Cape Verde'\) and 6 \('Cabo Verde'\) are the same country"):
        import_survey(tmp_path / "my.sav", tmp_path / "my.toml")


@pytest.mark.parametrize("countries", ['{ missing = "NA" }', '{ NA = ["Namibia"] }'])
def test_a_table_of_countries_that_cannot_be_used_names_the_key(countries: str, tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(MAPPING.format(keys=f"countries = {countries}"), encoding="utf-8")
    with pytest.raises(SurveyError, match=r"under \[countries\], '(missing|NA)' must be a"):
        load_mapping(path)
