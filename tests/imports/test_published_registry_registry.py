"""Data sets by name: options that a format does not use, rows of a kind, and what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.errors import ImportFileError, UsageError
from auditor.imports.published import ConversionOptions, PublishedDataset, PublishedDecision, PublishedItem
from auditor.imports.published_registry import DATASET_FORMATS, read_dataset, write_rows
from tests.support.json_lines import write_json_lines


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
