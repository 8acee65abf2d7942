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


@pytest.mark.parametrize(
    ("text", "truths"),
    [
        ("id;question;truth\na;?;3,142\nb;?;2,5\n", ["3.142", "2.5"]),
        ('id,question,truth\na,?,"3,142"\nb,?,2.5\n', ["3142", "2.5"]),
        ('id,question,truth\na,?,"0,5"\nb,?,"3,142"\n', ["0.5", "3.142"]),
        ("id;question;truth\na;?;Rome, Italy\nb;?;2,5\n", ["rome, italy", "2.5"]),
    ],
)
def test_commas_of_truths_mean_what_they_do_in_their_column(tmp_path: Path, text: str, truths: list[str]) -> None:
    """A spreadsheet in German writes 3.142 as 3,142."""
    assert [item.truth for item in load(tmp_path, text).items.values()] == truths


@pytest.mark.parametrize(
    ("text", "keys", "truths"),
    [
        ('id,question,truth\na,?,"1,234"\nb,?,"1,2"\nc,?,none\n', {"numbers": False}, ["1234", "1.2", "none"]),
        ("id;question;truth\na;?;1.234\nb;?;3,5\nc;?;Paris\n", {"numbers": False}, ["1.234", "3.5", "paris"]),
        ("id;question;truth\na;?;1.234\nb;?;3,5\nc;?;Paris\n", {}, ["1.234", "3.5", "paris"]),
        ('id,question,truth\na,?,"12,3456"\nb,?,"0,5"\n', {}, ["12.3456", "0.5"]),
        ('id,question,truth\na,?,"3,142"\nb,?,"0,5"\n', {"numbers": True}, ["3.142", "0.5"]),
    ],
)
def test_commas_of_truths_that_are_words_are_read_as_in_answers(
    tmp_path: Path, text: str, keys: dict[str, Any], truths: list[str]
) -> None:
    """Else a right answer would be counted as wrong, and a version as a number that cannot be read."""
    assert [item.truth for item in load(tmp_path, text, **keys).items.values()] == truths


def test_numbers_of_32_bits_are_read_as_they_are_shown(tmp_path: Path) -> None:
    """The exact value of such a 0.1 is 0.10000000149, which no right answer says."""
    import pandas as pd

    frame = pd.DataFrame({"id": ["a", "b"], "question": "?", "truth": pd.Series([0.1, None], dtype="float32")})
    frame.to_parquet(tmp_path / "i.parquet")
    frame.to_stata(tmp_path / "i.dta", write_index=False)
    for name in ("i.parquet", "i.dta"):
        task = load_task(TaskSection(source=str(tmp_path / name), answer="exact"))
        assert [item.truth for item in task.items.values()] == ["0.1", None]
        assert task.numbers


def test_a_number_that_is_not_available_is_no_truth(tmp_path: Path) -> None:
    lines = '{"id": "a", "question": "?", "truth": 0.5}\n{"id": "b", "question": "?", "truth": NaN}'
    with pytest.raises(ImportFileError, match="line 2, column 'truth': 'nan' is no number"):
        load(tmp_path, lines, suffix=".jsonl")
    with pytest.raises(ImportFileError, match="line 3, column 'truth': 'NA' is no number, and all other truths are"):
        load(tmp_path, "id,question,truth\na,?,5\nb,?,NA\n")
    assert load(tmp_path, "id,question,truth\na,?,5\nb,?,NA\n", numbers=False).items["b"].truth == "na"
    assert load(tmp_path, "id,question,truth\na,?,Neon\nb,?,NA\n").items["b"].truth == "na"


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,question,truth\na,?,5\nid,question,truth\nb,?,4\n", "line 3 is the header again"),
        ("id,question,truth\na,?,5\nID, Question,Truth\nb,?,4\n", "line 3 is the header again"),
        ("id,question,truth\na,?,5\n\ufeffid,question,truth\nb,?,4\n", "line 3 is the header again"),
        ("id,question,truth\na,?,5\nquestion,id,truth\n?,b,4\n", "line 3 is the header again"),
        ('id,question,truth\na,"Who?,Bo\nb,Where?,Bo"\nc,?,4\n', "has 2 fields where the header has 3"),
        ('id,truth,question\na,Bo,"Who?\nb,Bo,Where?"\n', "line 2: a text in quotation marks contains .*: b,Bo,Where"),
        ("id,question,truth\na,?,Rome\nb,?,#REF!\n", "line 3, column 'truth': has the error #REF! of a spreadsheet"),
        ("id;question;truth\na;?;1.250\nb;?;2,5\n", "'1.250' is not a number"),
    ],
)
def test_what_another_program_left_is_no_item(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ImportFileError, match=message):
        load(tmp_path, text)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(AuditorError, match=r"the file 'nowhere\.csv' does not exist"):
        load_task(TaskSection(source="nowhere.csv", answer="exact"))


PERCENTAGES = [("a", "50%"), ("b", "12,5 %"), ("c", "0.25")]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".xlsx"])
def test_a_percentage_is_a_share_where_scores_are_from_0_to_1(tmp_path: Path, suffix: str) -> None:
    assert load_percentages(tmp_path, suffix, PERCENTAGES, answer="score", range=(0, 1)) == ["0.5", "0.125", "0.25"]
    for highest in (100, 2):
        with pytest.raises(ImportFileError, match=r"'50%'.*not a valid answer"):
            load_percentages(tmp_path, suffix, PERCENTAGES, answer="score", range=(0, highest))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".xlsx"])
def test_a_percentage_among_shares_is_refused(tmp_path: Path, suffix: str) -> None:
    """It was read as 50, beside 0.25, and a model that answers 0.5 was wrong."""
    with pytest.raises(ImportFileError, match="'50%' is a percentage, and other truths are numbers from 0 to 1"):
        load_percentages(tmp_path, suffix, PERCENTAGES, answer="exact", numbers=True)
    for others in (["20%"], ["7", "20%"], ["1", "0"], []):
        rows = [("a", "50%"), *((f"b{i}", other) for i, other in enumerate(others))]
        assert load_percentages(tmp_path, suffix, rows, answer="exact", numbers=True)[0] == "50"


def load_percentages(folder: Path, suffix: str, rows: list[tuple[str, str]], **keys: object) -> list[str | None]:
    import openpyxl

    file = folder / f"shares{suffix}"
    names = ("id", "question", "truth")
    table = [(name, "?", truth) for name, truth in rows]
    if suffix == ".xlsx":
        book = openpyxl.Workbook()
        for row in (names, *table):
            book.active.append(row)
        book.save(file)
    elif suffix == ".jsonl":
        file.write_text("".join(f"{json.dumps(dict(zip(names, row, strict=True)))}\n" for row in table))
    else:
        file.write_text("\n".join(",".join(f'"{cell}"' for cell in row) for row in (names, *table)))
    return [item.truth for item in load_task(TaskSection.model_validate({"source": str(file), **keys})).items.values()]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_rows_without_a_visible_character_are_none(tmp_path: Path, suffix: str) -> None:
    """They were refused in a CSV file, and in a spreadsheet if a cell had a space."""
    rows = [("a", "7"), ("", " "), ("b", "8")]
    if suffix == ".csv":
        text = "id,question,truth\na,?,7\n,,\n , ,\t\nb,?,8\n,,,\n\n"
        assert [item.truth for item in load(tmp_path, text).items.values()] == ["7", "8"]
        return
    import openpyxl

    book = openpyxl.Workbook()
    for row in (("id", "question", "truth"), *((name, "?" if name else " ", truth) for name, truth in rows)):
        book.active.append(row)
    book.save(tmp_path / "items.xlsx")
    task = load_task(TaskSection(source=str(tmp_path / "items.xlsx"), answer="exact"))
    assert [item.truth for item in task.items.values()] == ["7", "8"]


@pytest.mark.parametrize("line", ["sep=;", '"sep=;"', "\ufeffSEP=;\r"])
def test_a_line_with_the_separator_is_named(tmp_path: Path, line: str) -> None:
    """The next line was said to need quotation marks."""
    with pytest.raises(ImportFileError, match=r"line 1 is .*, which only Excel reads"):
        load(tmp_path, f"{line}\nid;question;truth\na;?;7\n")
