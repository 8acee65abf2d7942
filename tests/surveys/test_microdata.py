"""Empty answers and waves of respondents' files are never taken for something else."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pandas as pd
import pyreadstat
import pytest

from auditor.domain import Cell
from auditor.errors import ImportFileError, SurveyError
from auditor.surveys import load_mapping
from auditor.surveys.column_reader import read_columns
from auditor.surveys.importer import ImportedSurvey, import_survey
from auditor.surveys.microdata import NOT_ASKED_KIND
from auditor.surveys.preview import preview_file
from tests.support.known import known

MAPPING = """title = "T"
source = "S"
{keys}
[columns]
country = ["c"]
{columns}
[topics]
q1 = "x"
q2 = "y"
[answers]
low = 1
high = 9
[nonresponse]
"refused" = {{ codes = [99] }}
"""


def import_text(folder: Path, content: str, keys: str = "", columns: str = "") -> ImportedSurvey:
    (folder / "my.toml").write_text(MAPPING.format(keys=keys, columns=columns), encoding="utf-8")
    (folder / "my.csv").write_text(content, encoding="utf-8")
    return import_survey(folder / "my.csv", folder / "my.toml")


def nonresponse(imported: ImportedSurvey) -> dict[str, float | None]:
    """Share of nonresponse by country, for the topic y."""
    return {cell.cell.country: cell.nonresponse for cell in imported.survey.cells if cell.cell.topic == "y"}


def test_a_question_that_a_whole_country_left_empty_was_not_asked(tmp_path: Path) -> None:
    imported = import_text(tmp_path, "c,q1,q2\nFR,1,1\nFR,1,99\nIT,2,\nIT,3,\n")
    assert nonresponse(imported) == {"France": 0.5, "Italy": None}
    assert imported.facts.by_cell[Cell("Italy", "y")].kinds == {"refused": 0, "missing": 0, NOT_ASKED_KIND: 1.0}
    assert imported.reading is not None
    assert (imported.reading.n_blank_not_asked, imported.reading.n_blank_asked) == (2, 0)


def test_scattered_empty_answers_stop_until_the_mapping_says_what_they_mean(tmp_path: Path) -> None:
    content = "c,q1,q2\nFR,1,1\nFR,1,NA\nFR,.,3\nFR,4,\n"
    with pytest.raises(ImportFileError) as caught:
        import_text(tmp_path, content)
    assert "row 3, column 'q1' (1 row); row 2, column 'q2' (2 rows)." in str(caught.value)
    assert nonresponse(import_text(tmp_path, content, 'blank = "nonresponse"')) == {"France": 0.5}
    not_asked = import_text(tmp_path, content, 'blank = "not asked"')
    assert nonresponse(not_asked) == {"France": 0.0}
    assert not_asked.reading is not None
    assert (not_asked.reading.n_blank_not_asked, not_asked.reading.n_blank_asked) == (3, 0)


def test_a_ballot_or_wave_without_answers_was_not_asked(tmp_path: Path) -> None:
    rows = "c,ballot,year,q1,q2\nUS,A,2021,1,\nUS,A,2021,2,\nUS,B,2021,3,5\nUS,A,2022,1,7\nUS,B,2022,1,\n"
    by_ballot = import_text(tmp_path, rows, "pool = true")
    assert nonresponse(by_ballot) == {"United States": 0.0}
    renamed = rows.replace("ballot", "form").replace("year", "vintage")
    with pytest.raises(ImportFileError, match="column 'q2'"):
        import_text(tmp_path, renamed)
    named = import_text(tmp_path, renamed, "pool = true", 'ballot = "FORM"\nwave = "vintage"')
    assert nonresponse(named) == {"United States": 0.0}


@pytest.mark.parametrize("name", ["wave", "A_WAVE", "ROUND", "essround", "S002", "S002VS", "Year", "survey_year"])
def test_several_waves_stop_until_one_is_chosen_or_all_are_pooled(name: str, tmp_path: Path) -> None:
    content = f"c,{name},q1,q2\nFR,2010,1,1\nFR,2012,1,9\n"
    with pytest.raises(ImportFileError) as caught:
        import_text(tmp_path, content)
    assert f"column '{name}' has 2 waves: 2010 (1 row), 2012 (1 row)." in str(caught.value)
    assert f"[keep] {name} = [2012]" in str(caught.value)
    chosen = import_text(tmp_path, content, f"keep = {{ {name} = [2012] }}")
    assert chosen.survey.scores[Cell("France", "y")] == 1.0
    pooled = import_text(tmp_path, content, "pool = true")
    assert pooled.survey.scores[Cell("France", "y")] == 0.0
    assert known(pooled.reading).rows_by_wave == {name: {"2010": 1, "2012": 1}}


@pytest.mark.parametrize("column", ["A_YEAR,2018,2019", "year,1,2", "survey_year,1,2", "intwave,1,2"])
def test_other_columns_are_no_waves(column: str, tmp_path: Path) -> None:
    name, first, second = column.split(",")
    imported = import_text(tmp_path, f"c,{name},q1,q2\nFR,{first},1,1\nFR,{second},1,9\n")
    assert imported.survey.scores[Cell("France", "y")] == 0.0


def test_asked_does_not_say_what_an_empty_field_means(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(MAPPING.format(keys="", columns="") + "missing = { asked = false }\n", encoding="utf-8")
    with pytest.raises(
        SurveyError, match=r"nonresponse\.missing is replaced by the key 'blank'.*blank = \"not asked\""
    ):
        load_mapping(path)


def test_values_in_no_group_are_listed(tmp_path: Path) -> None:
    groups = 'groups = { sex = { column = "s", values = { men = { codes = [1], words = "men" } } } }'
    imported = import_text(tmp_path, "c,s,q1,q2\nFR,1,1,1\nFR,2,1,9\nFR,2,1,9\nFR,,1,9\n", groups)
    assert known(imported.reading).ungrouped_values == {"sex": {"2": 2, "(empty)": 1}}


def test_unquoted_na_among_quoted_labels_is_empty(tmp_path: Path) -> None:
    keys = 'nonresponse = { "no answer" = { labels = ["NA"] } }'
    text = MAPPING.format(keys=keys, columns="").split("[answers]")[0]
    choices = '[choices]\nyes = { labels = ["Yes"], score = 1 }\n'
    (tmp_path / "my.toml").write_text(text + choices, encoding="utf-8")
    path = tmp_path / "my.csv"
    path.write_text('c,q1,q2\nFR,"Yes","Yes"\nFR,"Yes",NA\n', encoding="utf-8")
    with pytest.raises(ImportFileError, match=r"row 2, column 'q2' \(1 row\)"):
        import_survey(path, tmp_path / "my.toml")
    path.write_text("c,q1,q2\nFR,Yes,Yes\nFR,Yes,NA\n", encoding="utf-8")
    assert nonresponse(import_survey(path, tmp_path / "my.toml")) == {"France": 0.5}


def test_a_wave_that_was_selected_is_shown(tmp_path: Path) -> None:
    content = "c,ROUND,q1,q2\nFR,1,1,1\nFR,2,1,9\nFR,3,1,9\n"
    for keys, columns in (("keep = { ROUND = [2, 3] }", 'wave = "round"'), ("keep = { round = [2, 3] }", "")):
        imported = import_text(tmp_path, content, keys, columns)
        assert imported.reading is not None
        assert imported.reading.rows_by_wave == {"ROUND": {"2": 1, "3": 1}}


def test_a_file_about_one_country_needs_no_column_of_countries(tmp_path: Path) -> None:
    (tmp_path / "gss.csv").write_text("year,q1\n2021,1\n2021,9\n2021,9\n", encoding="utf-8")
    text = 'title = "T"\nsource = "S"\ncountry = "United States"\n[topics]\nq1 = "x"\n[answers]\nlow = 1\nhigh = 9\n'
    mapping = tmp_path / "gss.toml"
    mapping.write_text(text, encoding="utf-8")
    (cell,) = import_survey(tmp_path / "gss.csv", mapping).survey.cells
    assert (cell.cell, cell.n) == (Cell("United States", "x"), 3)
    assert cell.score == pytest.approx(1 / 3)
    for country, columns in (('country = "Peru"\n', '[columns]\ncountry = ["c"]\n'), ("", "")):
        mapping.write_text(
            text.replace('country = "United States"\n', country).replace("[topics]", f"{columns}[topics]"), "utf-8"
        )
        with pytest.raises(SurveyError, match=r'country = "United States" above the first table'):
            load_mapping(mapping)


def test_topics_may_have_codes_of_nonresponse_of_their_own(tmp_path: Path) -> None:
    mapping = tmp_path / "my.toml"
    text = """title = "T"
source = "S"
[columns]
country = ["c"]
[topics]
q1 = "x"
[topics.q2]
topic = "y"
answers = { low = 5, high = 1 }
[topics.q2.nonresponse]
refused = { codes = [9] }
[answers]
low = 1
high = 10
[nonresponse]
refused = { codes = [99] }
"""
    mapping.write_text(text, encoding="utf-8")
    (tmp_path / "my.csv").write_text("c,q1,q2\nFR,9,9\nFR,99,1\nFR,9,5\nFR,9,1\n", encoding="utf-8")
    x, y = import_survey(tmp_path / "my.csv", mapping).survey.cells
    assert (x.n, x.nonresponse, y.n, y.nonresponse) == (3, 0.25, 3, 0.25)
    assert [x.score, y.score] == pytest.approx([7 / 9, 1 / 3])
    (tmp_path / "my.csv").write_text("c,q1,q2\nFR,11,99\nFR,99,7\n", encoding="utf-8")
    with pytest.raises(ImportFileError) as caught:
        import_survey(tmp_path / "my.csv", mapping)
    assert (
        "row 1, column 'q1': '11' is neither on the scale 1 to 10 nor a known nonresponse code (1 row); "
        "row 1, column 'q2': '99' is neither on the scale 5 to 1 nor a known nonresponse code (1 row); "
        "row 2, column 'q2': '7' (1 row)."
    ) in str(caught.value)
    mapping.write_text(
        text.replace("[topics.q2.nonresponse]\nrefused = { codes = [9] }\n", "").replace("[99]", "[3]"),
        encoding="utf-8",
    )
    with pytest.raises(SurveyError, match=r"code 3 is listed with two meanings for 'q1'.*\[topics.q1.nonresponse\]"):
        load_mapping(mapping)
    mapping.write_text(text.replace("codes = [9] ", "codes = [9], asked = false "), encoding="utf-8")
    with pytest.raises(SurveyError, match="'asked' of the nonresponse 'refused' differs between topics"):
        load_mapping(mapping)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_weights_whose_commas_can_be_read_in_two_ways_are_refused(suffix: str, tmp_path: Path) -> None:
    rows = {
        ".csv": 'c,w,q1,q2\nFR,"1,000",1,1\nFR,1234,9,9\n',
        ".jsonl": '{"c":"FR","w":"1,000","q1":1,"q2":1}\n{"c":"FR","w":"1234","q1":9,"q2":9}\n',
    }
    path, mapping = tmp_path / f"my{suffix}", tmp_path / "my.toml"
    mapping.write_text(MAPPING.format(keys="", columns='weight = "w"'), encoding="utf-8")
    path.write_text(rows[suffix], encoding="utf-8")
    with pytest.raises(ImportFileError, match="row 1, column 'w': the weight 1,000 is not a number"):
        import_survey(path, mapping)
    path.write_text(rows[suffix].replace("1234", "500"), encoding="utf-8")
    reading = import_survey(path, mapping).reading
    assert reading is not None
    assert reading.weight_range == (500, 1000)


@pytest.mark.parametrize(
    ("rows", "line"),
    [('FR,1,1,"he said\nFR,9,9,x\nIT,1,1,y\n', 2), ('FR,1,1,5" tall\nFR,9,9,"quoted\nIT,1,1,y\n', 3),
     ('FR,1,1,"a\nFR,9,9,x\nIT,1,1,b"c\n', 2)],
)  # fmt: skip
def test_rows_after_an_unclosed_quotation_mark_are_not_lost(rows: str, line: int, tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match=f"the row at line {line} is not valid CSV"):
        import_text(tmp_path, "c,q1,q2,comment\n" + rows)
    counted = import_text(tmp_path, 'c,q1,q2,comment\nFR,1,1,"he\nsaid"\n\nFR,9,9,5" tall\nIT,1,1,y\n').survey
    assert {cell.cell.country: cell.n for cell in counted.cells} == {"France": 2, "Italy": 1}


def test_rows_between_two_quotation_marks_are_not_lost(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match=r"line 2: a text in quotation marks contains .* another row: FR,9,9,x"):
        import_text(tmp_path, 'c,q1,q2,comment\nFR,1,1,"he said\nFR,9,9,x\nIT,1,1,y"\n')


def test_a_declared_missing_value_is_no_age_and_no_weight(tmp_path: Path) -> None:
    """SPSS files have 99 for "No answer", which no band from 60 to 120 and no sum of weights may include."""
    ages = '[groups.age]\ncolumn = "age"\n[groups.age.bands]\nold = { from = 60, to = 120, words = "old" }\n'
    (tmp_path / "my.toml").write_text(MAPPING.format(keys="", columns='weight = "w"') + ages, encoding="utf-8")
    rows = [("FR", 1, 1, 70, 1.0)] * 40 + [("FR", 9, 9, 99, 1.0)] * 40 + [("FR", 9, 9, 70, 99.0)] * 40
    frame = pd.DataFrame(rows, columns=["c", "q1", "q2", "age", "w"])
    pyreadstat.write_sav(frame, tmp_path / "my.sav", missing_ranges={"age": [99], "w": [99]})
    imported = import_survey(tmp_path / "my.sav", tmp_path / "my.toml")
    assert [(cell.n, cell.score) for cell in imported.survey.cells] == [(80, 0), (80, 0)]
    assert imported.distributions is not None
    assert {(cell.group, cell.n) for cell in imported.distributions.cells} == {("", 80), ("old", 40)}
    preview = preview_file(tmp_path / "my.sav", load_mapping(tmp_path / "my.toml"))
    assert {column.name: column.n_empty for column in preview.columns if column.n_empty} == {"age": 40, "w": 40}


def test_a_declared_missing_value_that_the_mapping_lists_keeps_its_meaning(tmp_path: Path) -> None:
    """In bands 99 is no number; as nonresponse, in a filter and as a group by its code it is what the mapping says."""
    groups = """[keep]
q2 = [1, 99]
[groups.view]
column = "q2"
bands = { low = { from = 1, to = 120, words = "low" } }
[groups.known]
column = "q2"
values = { no = { codes = [99], words = "silent" } }
"""
    (tmp_path / "my.toml").write_text(MAPPING.format(keys="", columns="") + groups, encoding="utf-8")
    frame = pd.DataFrame([("FR", 1, 1)] * 40 + [("FR", 9, 99)] * 40, columns=["c", "q1", "q2"])
    pyreadstat.write_sav(frame, tmp_path / "my.sav", missing_ranges={"q2": [99]})
    imported = import_survey(tmp_path / "my.sav", tmp_path / "my.toml")
    assert [(cell.cell.topic, cell.n) for cell in imported.survey.cells] == [("x", 80), ("y", 40)]
    assert imported.distributions is not None
    assert {cell.group for cell in imported.distributions.cells} == {"", "low", "no"}


def test_lines_may_end_with_a_carriage_return(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"c,q1\rFR,9\rIT,1\r")
    assert [column.values for column in read_columns(tmp_path / "t.csv", [["c"], ["q1"]])] == [("FR", "IT"), ("9", "1")]


def test_rows_of_a_spreadsheet_have_the_numbers_that_programs_show(tmp_path: Path) -> None:
    mapping, workbook = tmp_path / "my.toml", openpyxl.Workbook()
    mapping.write_text(MAPPING.format(keys="", columns=""), encoding="utf-8")
    for row in (("c", "q1", "q2"), (), ("FR", 77, 1)):
        workbook.active.append(row)
    workbook.save(tmp_path / "my.xlsx")
    with pytest.raises(ImportFileError, match="row 3, column 'q1'"):
        import_survey(tmp_path / "my.xlsx", mapping)


def test_spaces_around_the_names_of_columns_do_not_count(tmp_path: Path) -> None:
    assert [cell.score for cell in import_text(tmp_path, "c , q1,q2\nFR,9,1\n").survey.cells] == [1, -1]


def test_a_repeated_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"c":"FR","q1":1,"q1":9}\n', encoding="utf-8")
    with pytest.raises(ImportFileError, match="line 1: the key 'q1' is used twice"):
        read_columns(tmp_path / "t.jsonl", [["c"]])


def test_weights_whose_points_can_be_read_in_two_ways_are_refused(tmp_path: Path) -> None:
    content = "c;w;q1;q2;age\nFR;1.500;1;1;0,5\nFR;900;9;9;0,7\n"
    with pytest.raises(ImportFileError, match=r"row 1, column 'w': the weight 1\.500 can be read in two ways"):
        import_text(tmp_path, content, columns='weight = "w"')
    reading = import_text(tmp_path, content.replace("0,", "0."), columns='weight = "w"').reading
    assert reading is not None
    assert reading.weight_range == (1.5, 900)
    reading = import_text(tmp_path, content.replace("900", "0.871"), columns='weight = "w"').reading
    assert reading is not None
    assert reading.weight_range == (0.871, 1.5)


def test_weights_with_decimal_commas_may_have_three_decimals(tmp_path: Path) -> None:
    reading = import_text(tmp_path, "c;w;q1;q2\nFR;1,268;1;1\nFR;0,5;9;9\n", columns='weight = "w"').reading
    assert reading is not None
    assert reading.weight_range == (0.5, 1.268)


def test_of_columns_that_differ_in_case_the_named_one_is_read(tmp_path: Path) -> None:
    content = "c,Q1,q1,q2\nFR,9,1,1\n"
    assert import_text(tmp_path, content).survey.cells[0].score == -1
    (tmp_path / "case.csv").write_text("ABC,Abc\n1,2\n", encoding="utf-8")
    with pytest.raises(ImportFileError, match="the column 'abc' may be 'ABC' or 'Abc'"):
        read_columns(tmp_path / "case.csv", [["abc"]])
