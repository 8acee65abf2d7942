"""Published data sets: three file types, errors that name the place, options of formats, and what is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from auditor.errors import ImportFileError, UsageError
from auditor.imports.published import (
    ConversionOptions,
    PublishedDataset,
    PublishedDecision,
    PublishedItem,
    SourceRecord,
    read_records,
    read_text_list,
    select_split,
)
from auditor.imports.published_registry import DATASET_FORMATS, read_dataset, write_rows
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


def test_unknown_and_missing_data_sets_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'sumeval' is unknown"):
        read_dataset("sumeval", tmp_path)
    with pytest.raises(ImportFileError, match="no such file"):
        read_dataset("summeval", tmp_path / "none.jsonl")


@pytest.mark.parametrize("name", sorted(set(DATASET_FORMATS) - {"novel-eval", "caters", "mic"}))
def test_the_file_of_another_data_set_is_an_error_that_names_the_line(tmp_path: Path, name: str) -> None:
    file = write_json_lines(tmp_path / "x.jsonl", {"a": 1})
    options = ConversionOptions()
    if name == "rankgpt":
        (tmp_path / "p.json").write_text('["[1]"]', encoding="utf-8")
        options = ConversionOptions(permutations=tmp_path / "p.json")
    with pytest.raises(ImportFileError, match=r"x\.jsonl: line 1: the field '\w+' is missing"):
        read_dataset(name, file, options)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (ConversionOptions(aspect="coherence"), "--aspect"),
        (ConversionOptions(permutations=Path("p.json")), "--permutations"),
        (ConversionOptions(min_events=3), "--min-events"),
        (ConversionOptions(split="train"), "--split"),
    ],
)
def test_an_option_that_the_format_does_not_use_is_an_error(
    tmp_path: Path, options: ConversionOptions, name: str
) -> None:
    with pytest.raises(UsageError, match=f"{name}: is not an option of novel-eval"):
        read_dataset("novel-eval", tmp_path, options)


def test_written_comparisons_are_those_of_the_judge_people(tmp_path: Path) -> None:
    dataset = PublishedDataset({"comparisons": [PublishedDecision("c", "a", "b", "A")]})
    assert write_rows(dataset, tmp_path / "c.jsonl", "comparisons") == 1
    assert json.loads((tmp_path / "c.jsonl").read_text(encoding="utf-8")) == {
        "judge": "people", "context": "c", "item_a": "a", "item_b": "b", "decision": "A", "relation": "standard",
    }  # fmt: skip
    with pytest.raises(UsageError) as error:
        write_rows(dataset, tmp_path / "c.jsonl", "items")
    assert error.value.how_to_fix == "Use --as comparisons."
    with pytest.raises(UsageError, match=r"must end in \.jsonl"):
        write_rows(dataset, tmp_path / "c.csv", "comparisons")


def test_a_sample_has_the_same_sets_of_items_and_comparisons() -> None:
    items = [PublishedItem(f"set {i}", f"item {j}", "") for i in range(30) for j in range(3)]
    decisions = [PublishedDecision(f"set {i}", "item 0", "item 1", "A") for i in range(30)]
    dataset = PublishedDataset({"items": items, "comparisons": decisions}, ["90 items."])
    samples = [dataset.sample(10, seed) for seed in (1, 1, 2)]
    contexts = [[row[0] for row in sample.rows["comparisons"]] for sample in samples]
    assert contexts[0] == contexts[1] != contexts[2]
    assert contexts[0] == sorted(contexts[0], key=lambda context: int(context.split()[1]))
    assert [row[0] for row in samples[0].rows["items"]] == [context for context in contexts[0] for _ in range(3)]
    assert len(contexts[0]) == 10
    assert samples[0].notes == ["90 items.", "Drawn at random with seed 1: 10 of 30."]
    assert len(dataset.sample(99, 1).rows["items"]) == 90
