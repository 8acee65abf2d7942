"""One table in every supported format: the same rows and figures, or an error that names the place."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

from auditor.domain import Cell
from auditor.errors import ImportFileError
from auditor.surveys import load_survey
from auditor.surveys.column_reader import read_columns
from auditor.surveys.row_reader import read_column_names, read_rows
from auditor.surveys.table_formats import NumberStyle, _iter_merges, find_number_style, parse_number

HEADER = ("country", "topic", "score", "n")
ROWS = [("Österreich", "divorce", -0.25, 1234), ("Österreich", "abortion", 0.5, 987), ("Namibia", "divorce", 1, 12)]
TEXT_ROWS = [tuple(str(value) for value in row) for row in ROWS]


def text(delimiter: str = ",", rows: list[tuple[str, ...]] = TEXT_ROWS, header: tuple[str, ...] = HEADER) -> str:
    return "".join(delimiter.join(row) + "\r\n" for row in [header, *rows])


def write_spreadsheet(path: Path, *rows: tuple[object, ...], merged: str = "") -> Path:
    """Write rows to the first of two sheets, and merge some of its cells."""
    workbook = openpyxl.Workbook()
    for row in rows:
        workbook.active.append(row)
    if merged:
        workbook.active.merge_cells(merged)
    workbook.create_sheet("notes").append(["made up"])
    workbook.save(path)
    return path


def write_statistics(path: Path) -> None:
    """Countries as labelled numbers, as survey institutes store them."""
    frame = pd.DataFrame([(40 if row[0] == "Österreich" else 516, *row[1:]) for row in ROWS], columns=list(HEADER))
    write = pyreadstat.write_dta if path.suffix == ".dta" else pyreadstat.write_sav
    write(frame, path, variable_value_labels={"country": {40: "Österreich", 516: "Namibia"}})


def decimal_commas(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [tuple(cell.replace(".", ",") for cell in row) for row in rows]


WRITERS: dict[str, Callable[[Path], object]] = {
    "t.csv": lambda path: path.write_text(text(), "utf-8"),
    "mark.csv": lambda path: path.write_text(text(), "utf-8-sig"),
    "latin.csv": lambda path: path.write_bytes(text().encode("latin-1")),
    "utf16.csv": lambda path: path.write_bytes(text().encode("utf-16")),
    "semicolon.csv": lambda path: path.write_text(text(";", decimal_commas(TEXT_ROWS)), "utf-8"),
    "tab.csv": lambda path: path.write_text(text("\t"), "utf-8"),
    "t.tsv": lambda path: path.write_bytes(text("\t", decimal_commas(TEXT_ROWS)).encode("latin-1")),
    "t.csv.gz": lambda path: path.write_bytes(gzip.compress(text().encode())),
    "latin.tsv.gz": lambda path: path.write_bytes(gzip.compress(text("\t").encode("cp1252"))),
    "capitals.csv": lambda path: path.write_text(text(header=("Country", "TOPIC", "Score", "N")), "utf-8"),
    "t.jsonl": lambda path: pd.DataFrame(ROWS, columns=list(HEADER)).to_json(path, orient="records", lines=True),
    "t.jsonl.gz": lambda path: pd.DataFrame(ROWS, columns=list(HEADER)).to_json(path, orient="records", lines=True),
    "t.parquet": lambda path: pd.DataFrame(ROWS, columns=list(HEADER)).to_parquet(path),
    "t.xlsx": lambda path: write_spreadsheet(path, HEADER, *ROWS),
    "t.dta": write_statistics,
    "t.sav": write_statistics,
}
"""Functions that write the table to a file, by the file's name."""


@pytest.mark.parametrize("name", WRITERS)
def test_all_formats_have_the_same_figures(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    survey = load_survey(tmp_path / name)
    assert {cell.cell: (cell.score, cell.n) for cell in survey.cells} == {
        Cell(country, topic): (score, n) for country, topic, score, n in ROWS
    }
    assert {column.casefold() for column in read_column_names(tmp_path / name)} == set(HEADER)


@pytest.mark.parametrize("name", WRITERS)
def test_columns_have_the_same_values(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    country, score = read_columns(tmp_path / name, [["country"], ["SCORE"]])
    assert [float(score.values[i] or 0) for i in score.value_index] == [-0.25, 0.5, 1.0]
    countries = [country.labels.get(country.values[i], country.values[i]) for i in country.value_index]
    assert countries == [row[0] for row in ROWS]


def test_missing_values_of_statistics_files(tmp_path: Path) -> None:
    frame = pd.DataFrame({"country": ["NO", "NO", "NO"], "q": [1.0, "a", None]})
    labels: dict[str, Any] = {"q": {1: "yes", "a": "refused"}}
    pyreadstat.write_dta(frame, tmp_path / "t.dta", variable_value_labels=labels, missing_user_values={"q": ["a"]})
    _, column = read_columns(tmp_path / "t.dta", [["country"], ["q"]])
    assert [column.labels.get(column.values[i], column.values[i]) for i in column.value_index] == [
        "yes",
        "refused",
        None,
    ]
    assert ".a" in column.values
    assert [row.cells["q"] for row in read_rows(tmp_path / "t.dta", ["country", "q"])] == ["yes", "", ""]


@pytest.mark.parametrize("name", ["t.dta", "t.sav"])
def test_a_scale_with_labels_at_its_ends_is_not_read_without_its_ends(tmp_path: Path, name: str) -> None:
    write = pyreadstat.write_dta if name == "t.dta" else pyreadstat.write_sav
    frame = pd.DataFrame({"id": ["a", "b", "c"], "answer": [1.0, 2.0, 3.0]})
    write(frame, tmp_path / name, variable_value_labels={"answer": {1: "never", 3: "always", 9: "refused"}})
    with pytest.raises(ImportFileError, match="column 'answer': 1 has the label 'never', and 2 has none"):
        list(read_rows(tmp_path / name, ["id", "answer"]))
    write(frame, tmp_path / name, variable_value_labels={"answer": {9: "refused"}})
    assert [row.cells["answer"] for row in read_rows(tmp_path / name, ["id", "answer"])] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("numbers", "delimiter", "style"),
    [
        (["1", "0.5", "x,y"], ",", NumberStyle.POINT), (["0,5", "1", "-,25"], ",", NumberStyle.DECIMAL_COMMA),
        (["1,234", "987", "12,345,678", "1,000.5"], ",", NumberStyle.THOUSANDS),
        (["1,234", "987"], "\t", NumberStyle.THOUSANDS), (["1,234", "987"], ";", NumberStyle.DECIMAL_COMMA),
        (["0,234", "0,987"], ",", NumberStyle.DECIMAL_COMMA), (["1,234", "12345"], ",", NumberStyle.UNCLEAR),
        (["1,5", "0.5"], ",", NumberStyle.UNCLEAR), (["1.234,5"], ";", NumberStyle.UNCLEAR),
        (["1,234.5"], ";", NumberStyle.UNCLEAR),
    ],
)  # fmt: skip
def test_commas_have_one_meaning_in_a_column(numbers: list[str], delimiter: str, style: NumberStyle) -> None:
    assert find_number_style(numbers, delimiter) is style


def test_percent_signs_and_signs() -> None:
    assert parse_number("45%") == 0.45
    assert parse_number("12,5 %", NumberStyle.DECIMAL_COMMA) == 0.125
    assert parse_number("\u22120.5") == -0.5
    assert parse_number("1,234", NumberStyle.THOUSANDS) == 1234
    assert parse_number("1_0") != parse_number("1_0")  # nan


@pytest.mark.parametrize(
    ("word", "encodings"),
    [
        ("Россия", ["cp1251", "koi8-r"]),
        ("да", ["cp1251", "koi8-r", "mac-cyrillic"]),
        ("東京都庁", ["shift-jis", "gb18030"]),
        ("是", ["gb18030"]),
        ("ναι", ["cp1253"]),
        ("לא", ["cp1255"]),
        ("نعم", ["cp1256"]),
        ("modèle", ["mac-roman", "cp850"]),
        ("für", ["mac-roman", "cp437"]),
        ("miłość", ["cp1250", "iso8859-2"]),
    ],
)
def test_another_encoding_is_refused(tmp_path: Path, word: str, encodings: list[str]) -> None:
    for encoding in encodings:
        (tmp_path / "t.csv").write_bytes(f"country,topic,score\n{word},divorce,0\n".encode(encoding))
        with pytest.raises(ImportFileError, match="line 2 is not UTF-8"):
            load_survey(tmp_path / "t.csv")


def test_text_in_utf16_without_a_mark_is_named(tmp_path: Path) -> None:
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-be"):
        (tmp_path / "t.csv").write_bytes(text().encode(encoding))
        with pytest.raises(ImportFileError, match="is text in UTF-16 without a byte order mark"):
            load_survey(tmp_path / "t.csv")


def test_words_of_western_languages_are_latin(tmp_path: Path) -> None:
    words = (
        "«Qu’est-ce…» l´été ÇA VA À Noël 25°C 10€ m² n°5 für MÜSSEN „süß“ 5µm a×b ¿Qué? ¡Hola! São col·lecció öö Å ýmis"
    )
    (tmp_path / "t.csv").write_bytes(f"country,topic,score\n{words},divorce,0\n".encode("cp1252"))
    assert load_survey(tmp_path / "t.csv").countries == (words,)


@pytest.mark.parametrize(
    ("words", "is_latin"),
    [
        ("çà et là", True),  # a word of accented letters only, beside another one
        ("él está allí, qué sé yo, según el señor también podría, después, ¡adiós!, bueno¿no?", True),
        ("él está allí, bueno¿no?", False),
        ("mo¿e bêdzie lepiej, ale siê bojê", False),  # Polish in Windows-1250
    ],
)
def test_unusual_words_are_compared_with_usual_ones(tmp_path: Path, words: str, is_latin: bool) -> None:
    (tmp_path / "t.csv").write_bytes(f'country,topic,score\n"{words}",divorce,0\n'.encode("cp1252"))
    with nullcontext() if is_latin else pytest.raises(ImportFileError, match="line 2 is not UTF-8"):
        assert load_survey(tmp_path / "t.csv").countries == (words,)


def test_damaged_utf8_is_not_latin(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("country,topic,score\nÖsterreich,é,0\nÅland,".encode() + b"\xe9,0\n")
    with pytest.raises(ImportFileError, match="line 3 is not UTF-8"):
        load_survey(tmp_path / "t.csv")


def test_a_table_behind_a_sheet_of_notes_is_named(tmp_path: Path) -> None:
    workbook = openpyxl.Workbook()
    workbook.active.append(["About this file"])
    for row in (HEADER, *ROWS):
        sheet = workbook["data"] if "data" in workbook.sheetnames else workbook.create_sheet("data")
        sheet.append(row)
    workbook.save(tmp_path / "t.xlsx")
    with pytest.raises(ImportFileError, match="the sheet 'data' has the columns country, topic, score, but") as caught:
        load_survey(tmp_path / "t.xlsx")
    assert caught.value.how_to_fix == "Move that sheet to the first place."


TASK_COLUMNS = ["id", "question", "truth"]


@pytest.mark.parametrize(
    ("first", "other", "is_lost"),
    [
        (["country", "topic", "score"], ["country", "topic", "score"], True),
        (["country", "topic", "score"], ["Topic ", "score", "country", "note"], True),
        (["country", "topic", "score", "n"], ["country", "topic", "score"], True),
        (["country", "topic", "score", "n"], ["country", "topic", "score", "se"], False),
        (["country", "topic", "score"], ["country", "topic", "comment"], False),
        (TASK_COLUMNS, ["id", "question", "comment", "author"], False),
        (TASK_COLUMNS, ["id", "question"], True),
        ([*TASK_COLUMNS, "source"], [*TASK_COLUMNS, "author"], True),
    ],
)
def test_rows_on_another_sheet_are_not_lost(tmp_path: Path, first: list[str], other: list[str], is_lost: bool) -> None:
    """Only a sheet that looks like more rows of the same table is one of them."""
    workbook = openpyxl.Workbook()
    for sheet, header in ((workbook.active, first), (workbook.create_sheet("more"), other)):
        sheet.append(header)
        sheet.append([{"country": "Chile", "score": 0.5, "n": 9}.get(name, "divorce") for name in header])
    workbook.save(tmp_path / "t.xlsx")
    is_task = "id" in first
    with (
        nullcontext()
        if not is_lost
        else pytest.raises(
            ImportFileError,
            match=f"the sheet 'more' has the columns {'id, question' if is_task else 'country, topic, score'} too, but",
        )
    ):
        if is_task:
            assert len(list(read_rows(tmp_path / "t.xlsx", ["id", "question"], ["truth"]))) == 1
        else:
            assert len(load_survey(tmp_path / "t.xlsx").cells) == 1


@pytest.mark.parametrize(
    ("cells", "is_lost"),
    [
        ("C2:C3", True), ("B3:C3", True), ("E1:F1", False), ("B1:B2", True), ("A3:A7", True),
        ("E2:E3", False), ("C2:E2", False), ("A5:C6", False),
    ],
)  # fmt: skip
def test_values_of_merged_cells_are_not_lost(tmp_path: Path, cells: str, is_lost: bool) -> None:
    """Merged cells in columns that are not read, or below the table, hide no value."""
    header, rows = ("id", "question", "context", "notes", "more"), [("a", "?", "x", "n", "m"), "b?y", "c?z"]
    path = write_spreadsheet(tmp_path / "t.xlsx", header, *map(tuple, rows), merged=cells)
    with pytest.raises(ImportFileError, match=f"the cells {cells} are merged") if is_lost else nullcontext():
        assert len(list(read_rows(path, ["id", "question"], ["context"]))) == 3


def test_merged_cells_are_found_without_the_private_path_of_a_sheet(tmp_path: Path) -> None:
    path = write_spreadsheet(tmp_path / "t.xlsx", merged="B2:C3")
    for sheet in (openpyxl.load_workbook(path, read_only=True).active, SimpleNamespace(title="Sheet")):
        assert [*_iter_merges(path, sheet)] == ["B2:C3"]


def test_columns_of_parquet_have_one_name_each_and_decimals_are_numbers(tmp_path: Path) -> None:
    """DuckDB stores 0.5 as a decimal."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"country": ["Norway"], "score": [Decimal("0.50")]}), path)
    assert [row.number("score") for row in read_rows(path, ["country", "score"])] == [0.5]
    pq.write_table(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["country", "country"]), path)
    with pytest.raises(ImportFileError, match="the column 'country' occurs twice"):
        list(read_rows(path, ["country"]))


def test_control_characters_of_a_spreadsheet_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Excel stores the carriage return before a line feed as `_x000D_`: an answer was another one."""
    rows = (("id", "answer"), ("a", "Rome_x000D_\n"), ("b", "one_x000B_two_x0041_"))
    path = write_spreadsheet(tmp_path / "t.xlsx", *rows)
    assert [row.cells["answer"] for row in read_rows(path, ["id", "answer"])] == ["Rome", "one\x0btwo_x0041_"]


@pytest.mark.parametrize(
    ("content", "column", "values"),
    [
        ('model,country,text\nm,Peru,"As in\nChile, Peru, Bolivia\nm, Peru, ok"\n', "country", ["Peru"]),
        ('id,text\n1,"About\n1,000 people\nwould say so.\nIt depends."\n', "id", ["1"]),
        ('model,text,n\nm,"yes,\nm,yes,or no",1\n', "model", ["m"]),  # no row before the text
        ('text\n"a\n\na"\n"\n"\n', "text", ["a\n\na", ""]),
        ("\ufeff\ufeffid,answer\na,x\n\ufeffb,y\n", "id", ["a", "b"]),
    ],
    ids=["a text that lists names", "a line that could be no row", "a line like a row", "empty lines",
         "a byte order mark within a joined file"],
)  # fmt: skip
def test_lines_of_a_text_are_no_rows_and_marks_no_part_of_a_name(
    tmp_path: Path, content: str, column: str, values: list[str]
) -> None:
    (tmp_path / "t.csv").write_text(content, encoding="utf-8")
    columns = content.lstrip("\ufeff").partition("\n")[0].split(",")
    assert [row.cells[column] for row in read_rows(tmp_path / "t.csv", columns)] == values


@pytest.mark.parametrize(
    ("score", "message"),
    [("#N/A", "row 2 has the error #N/A"), ("=0.5+0.1", r"row 2 has the formula =0\.5\+0\.1 without its result")],
)
def test_an_error_and_a_formula_without_its_result_are_no_empty_cells(tmp_path: Path, score: str, message: str) -> None:
    """Programs that write spreadsheets without computing them leave formulas without results."""
    path = write_spreadsheet(tmp_path / "t.xlsx", HEADER, ("Norway", "divorce", score, 1))
    with pytest.raises(ImportFileError, match=message):
        load_survey(path)


@pytest.mark.parametrize("is_computed", [True, False])
def test_the_zero_that_stands_for_a_result_is_none(tmp_path: Path, is_computed: bool) -> None:
    """XlsxWriter stores 0 as the result of each formula, and asks the program that opens the file to compute them."""
    workbook = openpyxl.Workbook()
    for row in (HEADER, ("Norway", "divorce", "=0.5+0.1", 1), ("Peru", "=1", 0.5, 1)):
        workbook.active.append(row)
    workbook.active["B3"].data_type = "s"  # a text
    workbook.save(tmp_path / "openpyxl.xlsx")
    with zipfile.ZipFile(tmp_path / "openpyxl.xlsx") as source, zipfile.ZipFile(tmp_path / "t.xlsx", "w") as target:
        for name in source.namelist():
            content = source.read(name).replace(b"<v></v>", b"<v>0</v>")
            target.writestr(name, content.replace(b'fullCalcOnLoad="1"', b"") if is_computed else content)
    if is_computed:
        assert load_survey(tmp_path / "t.xlsx").cells[0].score == 0
        return
    with pytest.raises(ImportFileError, match=r"row 2 has the formula =0\.5\+0\.1 without its result"):
        load_survey(tmp_path / "t.xlsx")


@pytest.mark.parametrize(
    ("content", "n"),
    [("n;s\n1.000;0.5\n", 1), ("n;s\n1000;0,5\n", 1000), ("n,s\n1.000,0.5\n", 1), ("n;s\n1.000;0,5\n", None)],
)
def test_points_may_separate_thousands_where_decimals_have_commas(tmp_path: Path, content: str, n: int | None) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content, encoding="utf-8")
    [row] = read_rows(path, ["n", "s"])
    assert row.number("s") == 0.5
    if n is not None:
        assert (row.integer("n"), row.number("n")) == (n, n)
        return
    for read in (row.integer, row.number):
        with pytest.raises(
            ImportFileError, match=r"line 2, column 'n': '1\.000' is not a number\. The points in this file"
        ):
            read("n")


@pytest.mark.parametrize(("delimiter", "name"), [(",", "t.csv"), ("\t", "t.tsv"), (";", "t.csv")])
def test_a_point_is_not_read_where_decimals_have_commas(tmp_path: Path, delimiter: str, name: str) -> None:
    rows: list[tuple[str, ...]] = [("Peru", "war", '"0,5"', "1.000"), ("Japan", "war", '"-0,25"', "900")]
    (tmp_path / name).write_text(text(delimiter, rows), "utf-8")
    with pytest.raises(ImportFileError, match=r"line 2, column 'n': '1\.000' is not a"):
        load_survey(tmp_path / name)


def test_a_point_is_read_where_another_number_of_its_column_has_decimals(tmp_path: Path) -> None:
    """Exports of online surveys write the choices of a respondent as "1,3"."""
    (tmp_path / "t.csv").write_text('country,topic,score,choices\nPeru,war,1.000,"1,3"\nJapan,war,-0.250,"2"\n')
    assert [cell.score for cell in load_survey(tmp_path / "t.csv").cells] == [1.0, -0.25]


def test_a_point_is_a_decimal_where_commas_separate_thousands(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text(rows=[("Peru", "war", "0.125", '"1,000"'), ("Japan", "war", "1.000", "900")]))
    assert [(cell.score, cell.n) for cell in load_survey(tmp_path / "t.csv").cells] == [(0.125, 1000), (1.0, 900)]
