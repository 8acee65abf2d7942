"""Summarize from Feedback: votes of several people become one decision, from JSON Lines and Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from auditor.errors import ImportFileError
from auditor.imports.published import ConversionOptions, PublishedDecision, PublishedItem
from auditor.imports.published_registry import write_rows
from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.probes.logic.figures.schema import LogicReport
from auditor.probes.logic.item_sets import load_item_sets
from auditor.probes.logic.people_labels import check_people_labels, read_people_labels
from auditor.probes.logic.published import read_summarize_from_feedback
from auditor.probes.logic.repair import repair_comparisons
from auditor.probes.logic.training_data import check_item_texts
from auditor.run import open_audit
from auditor.storage.database import open_database
from tests.support.json_lines import write_json_lines

POST = "A long post."


def make_record(first: str, second: str, choice: int, split: str = "train") -> dict[str, Any]:
    """A record of the published form; texts begin with a space there."""
    summaries = [{"text": f" {text}", "policy": "p", "note": ""} for text in (first, second)]
    info = {"id": "t3_1", "post": POST, "title": "t", "subreddit": "r"}
    return {"info": info, "summaries": summaries, "choice": choice, "worker": "w", "batch": "b", "split": split}


VOTES = [
    *(make_record("good", "bad", 0), make_record("bad", "good", 1), make_record("good", "bad", 1)),
    *(make_record("bad", "poor", 0), make_record("bad", "poor", 1), make_record("poor", "poor", 0)),
]


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_the_majority_of_votes_decides_a_pair(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"batch3.{suffix}"
    if suffix == "json":
        write_json_lines(file, *VOTES)
    else:
        pq.write_table(pa.Table.from_pylist(VOTES), file)
    dataset = read_summarize_from_feedback(file, ConversionOptions())
    assert dataset.rows["comparisons"] == [
        PublishedDecision(POST, "bad", "good", "B"),
        PublishedDecision(POST, "bad", "poor", "TIE"),
    ]
    assert dataset.rows["items"] == [PublishedItem(POST, text, text) for text in ("good", "bad", "poor")]
    assert dataset.notes == [
        "Comparisons in the data: 6 (train 6). Selected: 6.",
        "Comparisons of two equal summaries, left out: 1.",
        "Posts: 1, with 5.00 comparisons on average. Different pairs: 2, of them tied: 1.",
    ]


def test_comparisons_with_an_empty_summary_are_left_out(tmp_path: Path, storage: str) -> None:
    file = write_json_lines(tmp_path / "batch3.json", make_record("good", "bad", 0), make_record("good", " ", 0))
    dataset = read_summarize_from_feedback(file, ConversionOptions())
    assert dataset.rows["comparisons"] == [PublishedDecision(POST, "bad", "good", "B")]
    assert dataset.notes[1:] == [
        "Comparisons with a summary without text, left out: 1.",
        "Posts: 1, with 1.00 comparisons on average. Different pairs: 1, of them tied: 0.",
    ]
    write_rows(dataset, tmp_path / "rows.jsonl", "comparisons")
    assert import_comparisons(tmp_path / "rows.jsonl", audit="people", storage=storage).rows == 1


def test_a_split_of_a_folder_is_read(tmp_path: Path) -> None:
    write_json_lines(tmp_path / "batch1.json", make_record("good", "bad", 0), make_record("good", "bad", 1, "valid1"))
    write_json_lines(tmp_path / "batch2.json", make_record("good", "bad", 1, "valid1"))
    dataset = read_summarize_from_feedback(tmp_path, ConversionOptions(split="valid1"))
    assert dataset.rows["comparisons"] == [PublishedDecision(POST, "bad", "good", "A")]
    assert dataset.notes[0] == "Comparisons in the data: 3 (train 1, valid1 2). Selected: 2."


def test_comparisons_have_the_texts_of_long_summaries(tmp_path: Path, storage: str) -> None:
    """Also without a file of items, so that data for tuning have them; ids are those of the file of items."""
    file = write_json_lines(tmp_path / "x.json", make_record("a" * 500, "b" * 500, 1))
    dataset = read_summarize_from_feedback(file, ConversionOptions())
    items = [row for row in dataset.rows["items"] if isinstance(row, PublishedItem)]
    assert [item.text for item in items] == ["a" * 500, "b" * 500]
    assert max(len(item.item) for item in items) < 120
    write_rows(dataset, tmp_path / "c.jsonl", "comparisons")
    import_comparisons(tmp_path / "c.jsonl", audit="feedback", storage=storage)
    with open_database(storage, create=False) as db:
        [repaired] = repair_comparisons(db, "feedback")
    assert [(item.id, item.text) for item in repaired.raw.item_set.items] == [(i.item, i.text) for i in items]
    check_item_texts([repaired])


def test_comparisons_become_an_audit_of_people(tmp_path: Path, storage: str) -> None:
    dataset = read_summarize_from_feedback(write_json_lines(tmp_path / "x.json", *VOTES), ConversionOptions())
    write_rows(dataset, tmp_path / "c.jsonl", "comparisons")
    import_comparisons(tmp_path / "c.jsonl", audit="feedback", storage=storage, people="people")
    logic = open_audit("feedback", storage=storage).report().find(LogicReport)
    assert logic is not None
    assert logic.judges[0].judge == "people"


def test_comparisons_are_labels_on_the_items(tmp_path: Path) -> None:
    records = (*VOTES, make_record("a" * 500, "b" * 500, 1))
    dataset = read_summarize_from_feedback(write_json_lines(tmp_path / "x.json", *records), ConversionOptions())
    items, people = tmp_path / "items.jsonl", tmp_path / "people.jsonl"
    write_rows(dataset, items, "items")
    write_rows(dataset, people, "comparisons")
    labels = read_people_labels(people)
    check_people_labels(labels, load_item_sets(items, "preference"), items)
    assert [label.decision.value for label in labels.values()] == ["B", "TIE", "B"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"choice": 2}, "line 2: the field 'choice' is 2, not a whole number from 0 to 1"),
        ({"summaries": [{"text": "x"}]}, "line 2: the field 'summaries' has 1 summaries, not two"),
        ({"info": {}}, "line 2, field 'info': the field 'article' is missing"),
        ({"info": None}, "line 2: the field 'info' is missing"),
    ],
)
def test_a_wrong_record_is_named_with_its_line(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    file = write_json_lines(tmp_path / "x.json", make_record("a", "b", 0), make_record("a", "b", 0) | change)
    with pytest.raises(ImportFileError) as error:
        read_summarize_from_feedback(file, ConversionOptions())
    assert problem in error.value.message
