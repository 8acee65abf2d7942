"""A task's file: what it may hold, and what is said of each row that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor.config import TaskSection
from auditor.domain import Cell, Task
from auditor.errors import AuditorError, ImportFileError
from auditor.tasks import load_task, survey_from_task


def load(folder: Path, text: str, answer: str = "exact", suffix: str = ".csv", **keys: object) -> Task:
    file = folder / f"items{suffix}"
    file.write_text(text, encoding="utf-8")
    return load_task(TaskSection.model_validate({"source": str(file), "answer": answer, **keys}))


def test_items_keep_their_order_and_truths_their_stored_form(tmp_path: Path) -> None:
    task = load(tmp_path, "id,question,context,truth\nb,Sum?,1 and 2,3.0\na,Half?,,\n")
    assert list(task.items) == ["b", "a"]
    assert (task.items["b"].context, task.items["b"].truth, task.items["a"].truth) == ("1 and 2", "3", None)
    assert task.numbers
    assert not load(tmp_path, "id,question,truth\na,?,Rome\nb,?,3\n").numbers
    assert not load(tmp_path, "id,question\na,?\n").numbers


def test_parquet_and_jsonl_are_read_as_csv_is(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"id": "a", "question": "?", "options": "yes|no", "truth": "B"}]
    lines = "\n".join(map(json.dumps, rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "i.parquet")
    one = load(tmp_path, lines, "choice", ".jsonl")
    other = load_task(TaskSection(source=str(tmp_path / "i.parquet"), answer="choice"))
    assert one.items == other.items
    assert one.digest == other.digest
    assert one.items["a"].truth == "no"


def test_options_may_be_shared_and_truth_a_letter(tmp_path: Path) -> None:
    task = load(tmp_path, "id,question,truth,options\na,?,B,\nb,?,x,x|y\n", "choice", options=["yes", "no"])
    assert [i.truth for i in task.items.values()] == ["no", "x"]


def test_a_score_is_scaled_for_thresholds_alone(tmp_path: Path) -> None:
    task = load(tmp_path, "id,question,truth\na,?,7.5\nb,?,\n", "score", range=(0, 10))
    survey = survey_from_task(task)
    assert survey.scores == {Cell("", "a"): 0.5}
    assert survey.asked_cells == (Cell("", "a"), Cell("", "b"))


@pytest.mark.parametrize(
    ("text", "answer", "message"),
    [
        ("id,question\n", "exact", "has no items"),
        ("id,question\na,\n", "exact", "line 2: the column 'question' is empty"),
        ("id,question\na,?\na,!\n", "exact", "line 3: the id 'a' occurs twice"),
        ("id,question,truth\na,?,A\n", "choice", "the item has 0 options"),
        ("id,question,options\na,?,yes|\n", "choice", "an option is empty"),
        ("id,question,options\na,?,B|A\n", "choice", "is too similar to another option"),
        ("id,question,options\na,?,yes|Yes\n", "choice", "is too similar to another option"),
        ("id,question,options,truth\na,?,yes|no,maybe\n", "choice",
         "'maybe' in the column truth is not a valid answer.*'yes', 'no'"),
        ("id,question,options\na,?,yes|no\n", "exact", "has options, but task.answer is not 'choice'"),
        ("id,question,truth\na,?,11\n", "score", "'11' in the column truth is not a valid answer.*from 0 to 10"),
        ("id,questoin\na,?\n", "exact", "Did you mean 'question'"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_used_is_named(tmp_path: Path, text: str, answer: str, message: str) -> None:
    keys: dict[str, Any] = {"range": (0, 10)} if answer == "score" else {}
    with pytest.raises(ImportFileError, match=message) as error:
        load(tmp_path, text, answer, **keys)
    assert error.value.how_to_fix


def test_a_missing_file_is_named() -> None:
    with pytest.raises(AuditorError, match=r"the file 'nowhere\.csv' does not exist"):
        load_task(TaskSection(source="nowhere.csv", answer="exact"))
