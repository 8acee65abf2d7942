"""Files that cannot be used: one line that names row or column, and the mend."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from auditor.errors import AuditorError, ImportFileError
from auditor.surveys.importer import import_survey
from tests.surveys import official_files


def changed(name: str, row: int, value: object) -> official_files.Columns:
    columns = {k: list(v) for k, v in official_files.wvs_columns(60).items()}
    columns[name][row - 1] = value
    return columns


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (changed("Q182", 7, 11),
         "row 7, column 'Q182': '11' is neither on the scale 1 to 10 nor a known nonresponse code"),
        (changed("Q182", 7, 0), "row 7, column 'Q182': '0' is neither"),
        (changed("Q182", 7, 3.5), "row 7, column 'Q182': '3.5' is neither"),
        (changed("Q182", 7, -7), "define the code under [nonresponse]"),
        (changed("Q182", 7, "often"), "'often' is neither"),
        (changed("W_WEIGHT", 9, -0.5), "row 9, column 'W_WEIGHT': the weight -0.5 is negative"),
        (changed("W_WEIGHT", 9, "heavy"), "row 9, column 'W_WEIGHT': the weight heavy is not a number"),
        (changed("B_COUNTRY_ALPHA", 9, "Germany"), "are the same country"),
        (changed("B_COUNTRY_ALPHA", 9, 999), "row 9, column 'B_COUNTRY_ALPHA': 999 is not a country in ISO 3166"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_used_names_row_and_column(
    columns: official_files.Columns, message: str, tmp_path: Path
) -> None:
    path = official_files.write_csv(tmp_path / "wvs.csv", columns)
    with pytest.raises(ImportFileError) as caught:
        import_survey(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("code", "label", "message"),
    [
        (5, "Never heard of it", r"row 4, column 'Q84C': 5 \('Never heard of it'\) is neither one of"),
        (1, "Sehr gut", "'Sehr gut'"),
    ],
)
def test_a_code_is_shown_with_its_label_and_not_guessed(code: int, label: str, message: str, tmp_path: Path) -> None:
    columns = official_files.pew_columns(60)
    columns["Q84C"][3] = float(code)
    labels = {**official_files.PEW_LABELS, code: label}
    named = {"country": official_files.PEW_COUNTRIES, **dict.fromkeys(official_files.PEW_QUESTIONS, labels)}
    path = official_files.write_sav(tmp_path / "pew.sav", columns, named)
    with pytest.raises(ImportFileError, match=message):
        import_survey(path, "pew2013")


def test_a_missing_column_is_named_with_the_nearest_and_weights_of_zero_leave_nothing(tmp_path: Path) -> None:
    columns = official_files.wvs_columns(20)
    without_q182 = {"Q182_x" if name == "Q182" else name: values for name, values in columns.items()}
    for changed_columns, mapping, message in (
        (without_q182, "wvs7", r"has no column 'Q182' among its 23 columns\. Is it .*Q182_x"),
        (columns, "pew2013", r"has no column 'country'.*Check that it is the right file and mapping"),
        (columns | {"W_WEIGHT": [0.0] * 20}, "wvs7", r"no row can be used: weight of zero \(20 rows\)"),
    ):
        with pytest.raises(ImportFileError, match=message):
            import_survey(official_files.write_csv(tmp_path / "wvs.csv", changed_columns), mapping)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.sav", b"country,Q84A\n", "is not an SPSS file"),
        ("x.sav", b"PK\x03\x04\x00\x00",
         "the suffix does not match the content, which is a ZIP archive or a spreadsheet. Unpack it"),
        ("x.csv", b"\x89PNG\r\n\x1a\n\xff\xfe", "which is a picture"),
        ("x.csv", b"PK\x03\x04\x00\x00", "which is a ZIP archive or a spreadsheet. Unpack it; rename"),
        ("x.csv", b"$FL2@(#) SPSS DATA FILE", "which is an SPSS file. Rename it to .sav"),
        ("x.csv", b"\n<!DOCTYPE html><html>Log in", "which is a web page. Download the file itself"),
        ("x.csv", "B_COUNTRY,Q177\n".encode("utf-16"), "has no column"),
        ("x.csv", b"\x80\x81\x82", "is not UTF-8 text. Save it as CSV in UTF-8"),
        ("x.csv", b"a\0b", "is not a text file"),
        ("x.csv", b"x" * 2_000_000, "is not a header of a CSV file: field larger than field limit"),
        ("x.csv", b"", "has no column"),
        ("x.zip", b"", "Unpack it first"),
        ("x.zip", b"PK\x03\x04\x00\x00", "files with the suffix '.zip' are not supported. Unpack it first"),
        ("x.ods", b"PK\x03\x04\x00\x00", "files with the suffix '.ods' are not supported. Use one of"),
        ("x.dta", b"country", "is not a Stata file"),
        ("x.rds", b"", "are not supported. Use one of .csv, .tsv, "),
    ],
)  # fmt: skip
def test_a_file_that_is_not_what_it_says(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AuditorError) as caught:
        import_survey(tmp_path / name)
    assert message in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="no such file"):
        import_survey(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (rb"(.*?\n).*", rb"\1", "the file has no rows below the header"),
        (rb"((?:.*?\n){5})", rb"\1,1", r"is not valid CSV: .*Row #6"),
        (rb'"NGA"', b'"NG\x81"', r"Row #\d+: .*invalid UTF8 data\. Save the file as UTF-8\."),
        (rb'"version"', b'"Q182"', "column 'Q182' occurs twice"),
    ],
    ids=["a header without rows", "a row of another length", "a damaged text", "a column that is there twice"],
)
def test_a_damaged_file_is_refused_with_the_place(old: bytes, new: bytes, message: str, tmp_path: Path) -> None:
    path = official_files.write_csv(tmp_path / "wvs.csv", official_files.wvs_columns(20))
    path.write_bytes(re.sub(old, new, path.read_bytes(), count=1, flags=re.DOTALL))
    with pytest.raises(ImportFileError, match=message):
        import_survey(path)


def test_columns_that_are_not_needed_are_not_read(tmp_path: Path) -> None:
    path = official_files.write_csv(tmp_path / "wvs.csv", official_files.wvs_columns(20))
    # Latin-1 in a column that nobody asks for.
    path.write_bytes(path.read_bytes().replace(b'"5-0-0"', b'"\xfcber"'))
    assert len(import_survey(path).survey.topics) == 19


# --- mappings ---------------------------------------------------------------------------------------------------

MAPPING = 'title = "T"\nsource = "S"\n[columns]\ncountry = ["c"]\n[topics]\na = "x"\n'


def test_rows_are_numbered_as_in_the_file_whatever_is_kept(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("keep = { w = [2] }\n" + MAPPING + "[answers]\nlow = 1\nhigh = 4\n")
    (tmp_path / "own.csv").write_text("c,w,a\nNO,1,1\nNO,1,1\nNO,2,1\nNO,1,1\nNO,2,7\n")
    with pytest.raises(ImportFileError, match=r"row 5, column 'a': '7' is neither"):
        import_survey(tmp_path / "own.csv", tmp_path / "own.toml")
