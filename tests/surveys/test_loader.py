"""Surveys by name and from files; every file that cannot be used says where and how to mend it."""

from __future__ import annotations

import csv
import json
from dataclasses import fields
from pathlib import Path

import pytest

from auditor.domain import Cell, SurveyCell
from auditor.errors import AuditorError, ImportFileError, SurveyError
from auditor.surveys import builtin_surveys, get_grouping, load_survey, loader
from tests.support.known import known

HEADER = "country,topic,score\n"
SAMPLE = load_survey("wvs7-sample")
FILE_NAME = "wvs7_country_topic.csv"
PATHS = [folder / "shared" / "data" / FILE_NAME for folder in Path(__file__).resolve().parents]
FILE = next((path for path in PATHS if path.exists()), None)
NAMES = {"United States of America": "United States"}
"""Country names of that table that the sample spells differently."""

SOURCE_MEANS = {
    Cell("Greece", "homosexuality"): -0.163354, Cell("Greece", "divorce"): 0.303591,
    Cell("Greece", "abortion"): -0.205541, Cell("Greece", "death penalty"): -0.681456,
    Cell("New Zealand", "homosexuality"): 0.406205, Cell("New Zealand", "divorce"): 0.508961,
    Cell("New Zealand", "abortion"): 0.291059, Cell("New Zealand", "death penalty"): -0.273267,
}  # fmt: skip
"""Rescaled country means of wave 7, from the data of Ramezani & Xu (ACL 2023), cultural_inference, commit dc4e854."""


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


# --- families of topics -----------------------------------------------------------------------------------------


def test_every_field_of_a_cell_is_a_column() -> None:
    columns = {*loader.REQUIRED_COLUMNS, *loader.OPTIONAL_COLUMNS}
    assert columns == {field.name for field in fields(SurveyCell)} - {"cell"} | {"country", "topic"}


def test_each_topic_of_the_built_in_surveys_is_in_one_family() -> None:
    for name in builtin_surveys():
        survey = load_survey(name)
        members = [topic for topics in survey.topic_families.values() for topic in topics]
        assert sorted(members) == sorted(survey.topics)


def test_families_come_from_the_description_or_from_built_in_surveys_with_the_same_topics(tmp_path: Path) -> None:
    data = HEADER + "Chile,Divorce,0.1\nChile,stealing property,0.2\nChile,chess,0.3\n"
    path = write(tmp_path / "s.csv", data)
    assert load_survey(path).topic_families == {
        "personal and sexual": ("Divorce",),
        "dishonest and illegal": ("stealing property",),
    }
    description = 'title = "t"\nsource = "s"\n[topic_families]\n"leisure" = ["chess"]\n'
    write(tmp_path / "s.survey.toml", description)
    assert load_survey(path).topic_families == {"leisure": ("chess",)}


@pytest.mark.parametrize(
    ("families", "message"),
    [
        ('"leisure" = ["ches"]', "the family 'leisure' lists the topic 'ches', which is not in the survey.*chess"),
        ('"leisure" = ["chess"]\n"games" = ["chess"]', "the topic 'chess' is listed twice"),
    ],
)
def test_families_of_unknown_or_repeated_topics_are_refused(tmp_path: Path, families: str, message: str) -> None:
    path = write(tmp_path / "s.csv", HEADER + "Chile,chess,0.3\nPeru,chess,0.1\n")
    write(tmp_path / "s.survey.toml", f'title = "t"\nsource = "s"\n[topic_families]\n{families}\n')
    with pytest.raises(SurveyError, match=message):
        load_survey(path)


# --- built in ---------------------------------------------------------------------------------------------------


def test_built_in_surveys_have_every_cell_once() -> None:
    assert builtin_surveys() == ("pew2013-sample", "wvs7-sample")
    wvs, pew = load_survey("wvs7-sample"), load_survey("pew2013-sample")
    assert (len(wvs.countries), len(wvs.topics), len(wvs.cells)) == (17, 19, 17 * 19)
    assert (len(pew.countries), len(pew.topics), len(pew.cells)) == (16, 8, 16 * 8)


def test_cells_of_the_wvs_that_were_not_asked_have_no_score() -> None:
    survey = load_survey("wvs7-sample")
    asked_nothing = {c.cell for c in survey.cells if c.score is None}
    egypt = {"homosexuality", "prostitution", "sex before marriage", "having casual sex"}
    turkey = {"terrorism as a political, ideological or religious mean", "political violence"}
    assert asked_nothing == {Cell("Egypt", t) for t in egypt} | {Cell("Turkey", t) for t in turkey}
    assert survey.scores[Cell("Germany", "homosexuality")] == 0.52
    assert survey.scores[Cell("Nigeria", "parents beating children")] == 0.12


def test_pew_scores_follow_from_the_shares() -> None:
    for cell in load_survey("pew2013-sample").cells:
        assert cell.acceptable is not None
        assert cell.unacceptable is not None
        assert cell.score == pytest.approx(cell.acceptable - cell.unacceptable, abs=1e-12)
        total = cell.acceptable + cell.unacceptable + known(cell.not_a_moral_issue)
        assert cell.nonresponse == pytest.approx(1 - total, abs=1e-12)


@pytest.mark.parametrize("name", ["pew2013-sample", "wvs7-sample"])
def test_built_in_surveys_say_how_the_question_was_put_and_what_gives_topics_away(name: str) -> None:
    survey = load_survey(name)
    asked = survey.wording.format(topic="divorce", country="Japan")
    assert "divorce" in asked
    assert "Japan" in asked
    assert "20" in survey.source
    assert set(survey.words) == set(survey.topics)
    assert min(map(len, survey.words.values())) >= 15
    assert {"gay", "lesbian", "same-sex"} <= set(survey.words["homosexuality"])


# --- files of one's own -----------------------------------------------------------------------------------------


def test_a_file_of_ones_own_keeps_country_codes_that_look_like_no_value(tmp_path: Path) -> None:
    path = write(tmp_path / "own.csv", HEADER + "NA,gambling,0.5\nNO,gambling,-0.25\nON,gambling,\n")
    survey = load_survey(path)
    assert survey.name == "own"
    assert survey.countries == ("NA", "NO", "ON")
    assert [c.score for c in survey.cells] == [0.5, -0.25, None]


def test_csv_jsonl_and_parquet_give_the_same_survey(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"country": ["NO", "NA"], "topic": ["a, b", "c"], "score": [0.25, None], "n": [1000, 900]}
    csv = write(tmp_path / "s.csv", '\ufeffcountry,topic,score,n\r\nNO,"a, b",0.25,1000\r\nNA,c,,900\r\n')
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    jsonl = write(tmp_path / "s.jsonl", "\n".join(map(json.dumps, rows)))
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    cells = load_survey(csv).cells
    assert [(c.cell, c.score, c.n) for c in cells] == [(("NO", "a, b"), 0.25, 1000), (("NA", "c"), None, 900)]
    assert load_survey(jsonl).cells == cells
    assert load_survey(tmp_path / "s.parquet").cells == cells


def test_a_description_next_to_the_file_is_used(tmp_path: Path) -> None:
    path = write(tmp_path / "own.csv", HEADER + "Norway,eating meat,0.5\nNorway,Divorce,0.5\n")
    write(
        tmp_path / "own.survey.toml",
        'title = "T"\nsource = "S"\nwording = "{topic} in {country}?"\nscale = ["bad", "good"]\n'
        '[words]\n"eating meat" = ["beef"]\n',
    )
    survey = load_survey(path)
    assert (survey.title, survey.source, survey.scale) == ("T", "S", ("bad", "good"))
    assert survey.wording == "{topic} in {country}?"
    assert survey.words["eating meat"] == ("beef",)
    assert survey.words["Divorce"] == load_survey("wvs7-sample").words["divorce"]


def test_without_a_description_the_topic_gives_its_own_words(tmp_path: Path) -> None:
    survey = load_survey(write(tmp_path / "own.csv", HEADER + "Norway,the eating of meat,0.5\n"))
    assert survey.words["the eating of meat"] == ("the eating of meat", "eating", "meat")
    assert "{topic}" in survey.wording


# --- bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 'country' is missing"), (HEADER, "the survey is empty"),
        (HEADER + "Norway,gambling,\n", "no cell has a score"),
        ("country,topic\nNorway,gambling\n", "column 'score' is missing; the file has: country, topic"),
        ("country,topic,score,nonresponce\n", "unknown column 'nonresponce'. Did you mean 'nonresponse'?"),
        ("country,topic,score,score\n", "column 'score' occurs twice"),
        ("country|topic|score\nNorway|gambling|0\n", "the file has: country|topic|score"),
        (HEADER + "Norway,gambling,0.5\nNorway,divorce,high\n", "line 3, column 'score': 'high' is not a number"),
        (HEADER + 'Norway,gambling,"0,5"\nNorway,divorce,0.5\n', "Write 0.5, not 0,5"),
        (HEADER + "Norway,gambling,nan\n", "line 2, column 'score': 'nan' is not a number"),
        (HEADER + "Norway,gambling,1.01\n", "line 2, column 'score': 1.01 is outside [-1, 1]"),
        (HEADER + "Norway,gambling,0.5\nNorway,gambling,0.5\n", "Norway × gambling occurs twice"),
        (HEADER + "NA,gambling,0.5\nNorway,gambling,0.5\n", "'NA' may be Namibia or a missing value"),
        ("country;topic;score;n\nNorway;gambling;0,5;1.000\n",
         "line 2, column 'n': '1.000' is not a number. The points"),
        (HEADER + "Turkey,gambling,0.5\nTürkiye,divorce,0.5\n", "'Turkey' and 'Türkiye' are the same country"),
        (HEADER + "Turkey,gambling,0.5\nNorway,Gambling,0.5\n", "'gambling' and 'Gambling' are the same topic"),
        (HEADER + "Turkey,sex  work,0.5\nNorway,sex work,0.5\n", "'sex  work' and 'sex work' are the same topic"),
        (HEADER + "Turkey,caf\u00e9,0.5\nNorway,cafe\u0301,0.5\n", "are the same topic"),
        (HEADER + "Atlantis,war,0.5\nATLANTIS,divorce,0.5\n", "'Atlantis' and 'ATLANTIS' are the same country"),
        (HEADER + "Norway,gambling\n", "line 2 has 2 fields where the header has 3"),
        (HEADER + ",gambling,0.5\n", "line 2: the column 'country' is empty"),
        (HEADER + 'Norway,"gambling,0.5\n', "is not valid CSV"),
        ("country,topic,score,n\nNorway,gambling,0.5,10.5\n", "10.5 is not a whole number"),
        ("country,topic,score,nonresponse\nNorway,gambling,0.5,12\n", "Write a share such as 0.25, not a percentage"),
    ],
)  # fmt: skip
def test_a_csv_that_cannot_be_used_says_where_and_what(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "bad.csv", text)
    with pytest.raises(AuditorError) as caught:
        load_survey(path)
    assert message in str(caught.value)
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", b'{"country": "Norway",\n', "line 1 is not valid JSON"),
        ("x.jsonl", b"[1]\n", "line 1 is not a JSON object"),
        ("x.jsonl", b'{"country": false, "topic": "gambling", "score": 0}\n', 'Put text in quotes: "NO", not NO'),
        ("x.jsonl", b'{"country": "Norway", "score": 0}\n', "column 'topic' is missing"),
        ("x.jsonl", b'{"country": "Norway", "topic": "gambling", "score": NaN}\n', "'nan' is not a number"),
        ("x.csv", (HEADER + "Россия,gambling,0.5\n").encode("cp1251"), "line 2 is not UTF-8"),
        ("x.parquet", HEADER.encode(), "is not valid Parquet"),
        ("x.xlsx", HEADER.encode(), "is not a valid ZIP archive"),
        ("x.ods", HEADER.encode(), "suffix '.ods' are not supported. Use one of .csv, .tsv, .jsonl, .parquet, .xlsx"),
        ("x.csv", b"PK\x03\x04\x00",
         "the suffix does not match the content, which is a ZIP archive or a spreadsheet"),
        ("x.csv", b"$FL2@(#) SPSS", "which is an SPSS file. Rename it to .sav."),
        ("x.csv", b"B_COUNTRY_ALPHA,Q177,W_WEIGHT\nDEU,1,1\n",
         "`auditor surveys import` converts an official data file"),
        ("x.csv", b"x" * 5000, "the column 'country' is missing; the file has: xxxx"),
    ],
)  # fmt: skip
def test_a_file_of_another_form_says_where_and_what(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ImportFileError) as caught:
        load_survey(tmp_path / name)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 400


def test_an_official_file_is_pointed_to_the_importer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = ",".join(f"Q{i}" for i in range(600))
    with pytest.raises(ImportFileError, match=r"the file has: Q0, .* and 590 more.*auditor surveys import"):
        load_survey(write(tmp_path / "wvs.csv", f"{wide}\n"))
    monkeypatch.setattr("auditor.surveys.loader.MAX_CELLS", 1_000)  # reading a file of 100,000 rows takes seconds
    long = HEADER + "".join(f"Norway,topic {i},0.5\n" for i in range(1_001))
    with pytest.raises(SurveyError, match=r"more than 1,000 rows.*auditor surveys import"):
        load_survey(write(tmp_path / "long.csv", long))


def test_a_survey_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(SurveyError, match="Did you mean 'wvs7-sample'"):
        load_survey("wvs7-smple")
    with pytest.raises(SurveyError, match="Built-in surveys: pew2013-sample, wvs7-sample"):
        load_survey("/nowhere/x")
    with pytest.raises(SurveyError, match="is a folder"):
        load_survey(tmp_path)


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('title = "T"', "'source'"),
        ('title = "T"\nsource = "S"\nwording = "In {country}?"', "the placeholder {topic} is missing"),
        ('title = "T"\nsource = "S"\nwording = "{topic} {country} {"', "a brace is not closed"),
        ('title = "T"\nsource = "S"\nwordin = "x"', "'wordin'"),
        ('title = "T"\nsource = "S"\nscale = ["Always", "always "]', "both ends of the scale are 'Always'"),
        ("title =", "not valid TOML"),
    ],
)
def test_a_description_that_cannot_be_used_names_the_key(tmp_path: Path, toml: str, message: str) -> None:
    write(tmp_path / "own.survey.toml", toml)
    with pytest.raises(SurveyError) as caught:
        load_survey(write(tmp_path / "own.csv", HEADER + "Norway,gambling,0.5\n"))
    assert message in str(caught.value)
    assert "own.survey.toml" in str(caught.value)


def test_seven_western_countries_are_in_the_sample() -> None:
    western = next(region for region in get_grouping(SAMPLE).regions if region.name == "Western")
    assert set(western.countries) == {
        *("Australia", "Canada", "Germany", "Greece", "Netherlands", "New Zealand", "United States")
    }


@pytest.mark.parametrize(("cell", "mean"), SOURCE_MEANS.items())
def test_greece_and_new_zealand_have_the_figures_of_the_source(cell: Cell, mean: float) -> None:
    assert SAMPLE.scores[cell] == round(mean, 2)


@pytest.mark.skipif(FILE is None, reason=f"needs ../shared/data/{FILE_NAME}, which may not be passed on")
def test_every_figure_is_the_rounded_country_mean_of_wave_7() -> None:
    with known(FILE).open(encoding="utf-8") as file:
        means = {
            Cell(NAMES.get(row["country"], row["country"]), row["topic"]): float(row["score"])
            for row in csv.DictReader(file)
            if row["score"]
        }
    differences = {cell: abs(score - means[cell]) for cell, score in SAMPLE.scores.items()}
    assert len(differences) == 17 * 19 - 6
    assert max(differences.values()) <= 0.005  # rounded to two decimals
