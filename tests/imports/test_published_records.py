"""Records of published files: three file types, and errors that name the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from auditor.errors import ImportFileError, UsageError
from auditor.imports.published import SourceRecord, read_records, read_text_list, select_split
from tests.support.json_lines import write_json_lines

RECORDS = [{"a": 1, "b": [{"c": "x"}]}, {"a": 2, "b": []}]


def test_json_lines_lists_and_parquet_hold_the_same_records(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(json.dumps(RECORDS), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(RECORDS), tmp_path / "rows.parquet")
    files = [write_json_lines(tmp_path / "lines.json", *RECORDS), tmp_path / "list.json", tmp_path / "rows.parquet"]
    assert [[record.fields for record in read_records(file)] for file in files] == [RECORDS] * 3
    locations = [next(iter(read_records(file))).location for file in files]
    assert locations == [f"{files[0]}: line 1", f"{files[1]}: element 1", f"{files[2]}: row 1"]


def test_a_folder_is_read_file_by_file_in_the_order_of_names(tmp_path: Path) -> None:
    write_json_lines(tmp_path / "batch2.json", {"n": 2})
    write_json_lines(tmp_path / "batch1.json", {"n": 1})
    (tmp_path / "readme.txt").write_text("not data", encoding="utf-8")
    assert [record.number("n") for record in read_records(tmp_path)] == [1, 2]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImportFileError, match=r"has no \.json"):
        list(read_records(tmp_path / "empty"))


def test_objects_of_lists_are_lists_of_objects() -> None:
    record = SourceRecord("f: line 1", {"rows": {"text": ["x", "y"], "score": [1, 2], "note": None}})
    assert [child.fields for child in record.children("rows")] == [{"text": "x", "score": 1}, {"text": "y", "score": 2}]
    with pytest.raises(ImportFileError, match="f: line 1, field 'rows': its lists differ in length"):
        SourceRecord("f: line 1", {"rows": {"text": ["x"], "score": []}}).children("rows")


@pytest.mark.parametrize(
    ("fields", "method", "problem"),
    [
        ({}, "text", "is missing"),
        ({"x": None}, "text", "is missing"),
        ({"x": 1}, "text", "is not text"),
        ({"x": "1"}, "number", "is not a number"),
        ({"x": True}, "number", "is not a number"),
        ({"x": float("nan")}, "number", "is nan, not a finite number"),
        ({"x": "a"}, "texts", "is not a list"),
        ({"x": [1]}, "texts", "is not text"),
        ({"x": ["a"]}, "numbers", "is not a number"),
        ({"x": []}, "child", "is not an object"),
        ({"x": 3}, "children", "is not a list"),
    ],
)
def test_a_field_of_the_wrong_type_is_named_with_its_line(fields: Any, method: str, problem: str) -> None:
    with pytest.raises(ImportFileError) as error:
        getattr(SourceRecord("f.jsonl: line 7", fields), method)("x")
    assert error.value.message == f"f.jsonl: line 7: the field 'x' {problem}."
    assert "DATASET" in error.value.how_to_fix


@pytest.mark.parametrize("value", [2, -1, "2", "one", None, True, 0.0])
def test_a_position_outside_the_list_is_an_error(value: Any) -> None:
    with pytest.raises(ImportFileError, match="not a whole number from 0 to 1"):
        SourceRecord("f: line 1", {"x": value}).position("x", 2)


def test_broken_files_are_errors_that_name_the_line(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n{"a": \n', encoding="utf-8")
    with pytest.raises(ImportFileError, match=r"x\.jsonl: line 2 is not valid JSON"):
        list(read_records(tmp_path / "x.jsonl"))
    with pytest.raises(ImportFileError, match=r"y\.jsonl: line 1 is not a JSON object"):
        list(read_records(write_json_lines(tmp_path / "y.jsonl", 3)))
    (tmp_path / "z.parquet").write_bytes(b"PAR1 cut off")
    with pytest.raises(ImportFileError, match=r"z\.parquet: is not valid Parquet"):
        list(read_records(tmp_path / "z.parquet"))


def test_a_list_of_texts_has_only_texts(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('["[1] > [2]", 3]', encoding="utf-8")
    with pytest.raises(ImportFileError, match="element 2 of the list is not text"):
        read_text_list(tmp_path / "p.json")
    (tmp_path / "p.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ImportFileError, match="is not a JSON list"):
        read_text_list(tmp_path / "p.json")


def test_a_split_that_the_data_do_not_have_is_an_error() -> None:
    records = [SourceRecord("f: line 1", {"split": "train"}), SourceRecord("f: line 2", {"split": "valid1"})]
    assert select_split(records, "valid1") == records[1:]
    assert select_split(records, "") == records
    with pytest.raises(UsageError) as error:
        select_split(records, "test")
    assert error.value.how_to_fix == "Use one of train, valid1."
    with pytest.raises(UsageError, match="no split 'train'"):
        select_split([SourceRecord("f: line 1", {})], "train")
