"""Summaries and passages with scores, in the published layouts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from auditor.errors import ImportFileError, UsageError
from auditor.imports.published import ConversionOptions, PublishedItem
from auditor.imports.published_registry import read_dataset, write_rows
from auditor.probes.logic.item_sets import load_item_sets
from auditor.probes.logic.published import (
    parse_permutation,
    read_ms_marco,
    read_novel_eval,
    read_rankgpt,
    read_summeval,
)
from tests.support.json_lines import write_json_lines


def test_summeval_has_the_mean_of_the_experts(tmp_path: Path) -> None:
    experts = [{"coherence": c, "consistency": 5, "fluency": 4, "relevance": 3} for c in (1, 2, 3)]
    records = [
        {"id": "dm-1", "model_id": m, "decoded": f"summary of {m}", "expert_annotations": experts} for m in ("M0", "M1")
    ]
    file = write_json_lines(tmp_path / "x.jsonl", *records)
    dataset = read_summeval(file, ConversionOptions())
    assert dataset.rows["items"][0] == PublishedItem("dm-1", "M0", "summary of M0", 2.0)
    assert dataset.notes == ["Items: 2, in sets: 1."]
    assert read_summeval(file, ConversionOptions("fluency")).rows["items"][1][-1] == 4.0
    assert write_rows(dataset, tmp_path / "items.jsonl", "items") == 2
    [item_set] = load_item_sets(tmp_path / "items.jsonl", "preference")
    assert [(i.id, i.text, i.human) for i in item_set.items] == [
        ("M0", "summary of M0", 2.0),
        ("M1", "summary of M1", 2.0),
    ]
    with pytest.raises(UsageError, match="no aspect 'beauty'"):
        read_summeval(file, ConversionOptions("beauty"))


def test_summeval_in_lists_has_one_item_for_each_summary(tmp_path: Path) -> None:
    row = {"text": "A long text.", "machine_summaries": ["s", "t"], "coherence": [1.5, 4.0], "id": "dm-1"}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "test.parquet")
    assert read_summeval(tmp_path / "test.parquet", ConversionOptions()).rows["items"] == [
        PublishedItem("A long text.", "summary 1", "s", 1.5),
        PublishedItem("A long text.", "summary 2", "t", 4.0),
    ]
    file = write_json_lines(tmp_path / "x.jsonl", row | {"coherence": [1.0]})
    with pytest.raises(ImportFileError, match="line 1: the field 'coherence' has 1 scores for 2 summaries"):
        read_summeval(file, ConversionOptions())


def test_novel_eval_has_peoples_grades(tmp_path: Path) -> None:
    (tmp_path / "corpus.tsv").write_text("0-0\tA film won.\n0-1\tIt rained.\n", encoding="utf-8")
    (tmp_path / "queries.tsv").write_text("0\tWhich film won?\n", encoding="utf-8")
    (tmp_path / "qrels.txt").write_text("0 Q0 0-0 2\n0 Q0 0-1 0\n", encoding="utf-8")
    assert read_novel_eval(tmp_path, ConversionOptions()).rows["items"] == [
        PublishedItem("Which film won?", "0-0", "A film won.", 2.0),
        PublishedItem("Which film won?", "0-1", "It rained.", 0.0),
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("7 Q0 0-0 2", "queries.tsv has no '7'"),
        ("0 Q0 9-9 2", "corpus.tsv has no '9-9'"),
        ("0 Q0 0-0", "is not 'query 0 passage grade'"),
        ("0 Q0 0-0 inf", "is not 'query 0 passage grade'"),
    ],
)
def test_a_wrong_grade_is_named_with_its_line(tmp_path: Path, line: str, problem: str) -> None:
    (tmp_path / "corpus.tsv").write_text("0-0\tA film won.\n", encoding="utf-8")
    (tmp_path / "queries.tsv").write_text("0\tWhich film won?\n", encoding="utf-8")
    (tmp_path / "qrels.txt").write_text(f"0 Q0 0-0 2\n{line}\n", encoding="utf-8")
    with pytest.raises(ImportFileError) as error:
        read_novel_eval(tmp_path, ConversionOptions())
    assert f"qrels.txt: line 2{'' if problem.startswith('is') else ':'} {problem}" in error.value.message


@pytest.mark.parametrize("columns", [False, True])
def test_ms_marco_has_1_for_passages_of_the_answer(tmp_path: Path, columns: bool) -> None:
    passages: Any = [{"is_selected": 1, "passage_text": "yes"}, {"is_selected": 0, "passage_text": "no"}]
    if columns:
        passages = {key: [passage[key] for passage in passages] for key in passages[0]}
    file = write_json_lines(tmp_path / "x.jsonl", {"query": "q?", "query_id": 9, "passages": passages})
    assert read_ms_marco(file, ConversionOptions()).rows["items"] == [
        PublishedItem("q?", "9-0", "yes", 1.0),
        PublishedItem("q?", "9-1", "no", 0.0),
    ]


def test_a_permutation_is_read_as_the_authors_program_reads_it() -> None:
    assert parse_permutation("[2] > [3] > [1]", 3) == [2, 3, 1]
    assert parse_permutation("The order is [3] > [3] > [9] > [0] > [1].", 3) == [3, 1]
    assert parse_permutation("I cannot rank these passages.", 3) == []


@pytest.mark.parametrize("form", ["retrieved_passages", "hits"])
def test_the_score_of_a_passage_is_the_number_of_passages_ranked_after_it(tmp_path: Path, form: str) -> None:
    key = "text" if form == "retrieved_passages" else "content"
    passages = [{key: text, "docid": f"d{text}"} for text in ("x", "y", "z")]
    records = [{"query": query, form: passages, "positive_passages": []} for query in ("q?", "r?", "q?")]
    file = write_json_lines(tmp_path / "marco-train-10k.jsonl", *records)
    permutations = tmp_path / "p.json"
    permutations.write_text(json.dumps(["[3] > [1] > [2]", "[2] > [1]", "[1] > [2] > [3]"]), encoding="utf-8")
    dataset = read_rankgpt(file, ConversionOptions(permutations=permutations))
    assert dataset.rows["items"] == [
        PublishedItem("q?", "1", "x", 1.0),
        PublishedItem("q?", "2", "y", 0.0),
        PublishedItem("q?", "3", "z", 2.0),
        PublishedItem("r?", "1", "x", 0.0),
        PublishedItem("r?", "2", "y", 1.0),
        PublishedItem("r?", "3", "z", None),
    ]
    assert dataset.notes[0] == "Items: 6, in sets: 2."
    assert dataset.notes[1].endswith("without a score: 1.")
    assert dataset.notes[2].endswith("left out there: 1.")


def test_the_first_passages_are_read_as_in_the_paper(tmp_path: Path) -> None:
    passages = [{"content": f"text {i}"} for i in range(1, 13)]
    file = write_json_lines(tmp_path / "x.jsonl", {"query": "q?", "hits": passages})
    permutations = tmp_path / "p.json"
    permutations.write_text(json.dumps(["[12] > [3] > [11] > [1]"]), encoding="utf-8")
    for options, n, ranked in (
        (ConversionOptions(permutations=permutations), 10, ["3", "1"]),
        (ConversionOptions(permutations=permutations, passages=12), 12, ["12", "3", "11", "1"]),
    ):
        dataset = read_rankgpt(file, options)
        items = [row for row in dataset.rows["items"] if isinstance(row, PublishedItem)]
        assert [item.item for item in items] == [str(i) for i in range(1, n + 1)]
        scores = {item.item: item.human for item in items if item.human is not None}
        assert sorted(scores, key=lambda item: -scores[item]) == ranked
        assert len(dataset.rows["comparisons"]) == len(ranked) * (len(ranked) - 1) // 2
        assert ("Passages after the first 10 of their query, left out: 2." in dataset.notes) == (n == 10)


def test_passages_without_text_are_left_out_and_counted(tmp_path: Path) -> None:
    """Else judges would see the number of the passage as its text."""
    hits = [{"content": text} for text in ("", "y", " ", "z")]
    file = write_json_lines(tmp_path / "x.jsonl", {"query": "q?", "hits": hits})
    permutations = tmp_path / "p.json"
    permutations.write_text('["[1] > [4] > [2] > [3]"]', encoding="utf-8")
    dataset = read_rankgpt(file, ConversionOptions(permutations=permutations))
    assert dataset.rows["items"] == [PublishedItem("q?", "2", "y", 0.0), PublishedItem("q?", "4", "z", 1.0)]
    assert len(dataset.rows["comparisons"]) == 1
    assert dataset.notes == ["Items: 2, in sets: 1.", "Passages without text, left out: 2."]
    write_json_lines(file, {"query": "q?"})
    with pytest.raises(ImportFileError, match="the field 'hits' is missing") as error:
        read_rankgpt(file, ConversionOptions(permutations=permutations))
    assert "DATASET is the name" in error.value.how_to_fix


def test_a_part_without_a_query_is_an_error(tmp_path: Path) -> None:
    file = write_json_lines(tmp_path / "x.jsonl", {"query": "q?", "hits": [{"content": "x"}, {"content": "y"}]})
    permutations = tmp_path / "p.json"
    permutations.write_text('["[1] > [2]"]', encoding="utf-8")
    with pytest.raises(UsageError, match="--split test: none of 1 sets is in this part"):
        read_dataset("rankgpt", file, ConversionOptions(permutations=permutations, limit=1, split="test"))


def test_permutations_of_another_file_are_an_error(tmp_path: Path) -> None:
    file = write_json_lines(tmp_path / "x.jsonl", {"query": "q?", "hits": [{"content": "x"}]})
    permutations = tmp_path / "p.json"
    permutations.write_text('["[1]", "[1]"]', encoding="utf-8")
    with pytest.raises(ImportFileError, match=r"p\.json: has 2 permutations, but .*x\.jsonl has 1 queries"):
        read_rankgpt(file, ConversionOptions(permutations=permutations))
    with pytest.raises(UsageError) as error:
        read_rankgpt(file, ConversionOptions())
    assert "--permutations" in error.value.how_to_fix
