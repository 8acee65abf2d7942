"""TruthfulQA, HellaSwag, MMLU and GSM8K as items of a task, and questions and rules of the Moral Integrity Corpus."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from auditor.config import TaskSection
from auditor.errors import ImportFileError, UsageError
from auditor.imports.published import (
    ConversionOptions,
    PublishedKnownAnswer,
    PublishedQuestion,
    PublishedRule,
    PublishedTaskItem,
)
from auditor.imports.published_registry import write_rows
from auditor.probes.semantic.published_questions import (
    HELLASWAG_QUESTION,
    read_gsm8k,
    read_hellaswag,
    read_mic,
    read_mmlu,
    read_truthful_qa,
)
from auditor.probes.semantic.questions import load_questions
from auditor.tasks.loader import load_task
from tests.support.json_lines import write_json_lines

JOINED_ENDINGS = "sits down.|a / b.|sings.|leaves."
TABLE_HEADER = ["Type", "Category", "Question", "Best Answer", "Correct Answers", "Incorrect Answers", "Source"]


def write_table(path: Path, header: list[str], *rows: list[str]) -> Path:
    """Write a CSV file with a byte order mark, as TruthfulQA is published, and return the path."""
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_answers(tmp_path: Path, form: str) -> Path:
    """Write one question of TruthfulQA, with three wrong answers, in a published form."""
    question, best, wrong = "Is the sky green?", "No, it is blue", ["Yes", "Yes, at noon", "It is red"]
    if form == "csv":
        row = ["Adversarial", "Sky", question, best, f"{best}; No", "; ".join(wrong), "https://example.org"]
        return write_table(tmp_path / "TruthfulQA.csv", TABLE_HEADER, row)
    targets: dict[str, Any] = {best: 1, **dict.fromkeys(wrong, 0)}
    if form == "lists":
        targets = {"choices": list(targets), "labels": list(targets.values())}
    (tmp_path / "mc_task.json").write_text(
        json.dumps([{"question": question, "mc1_targets": targets, "mc2_targets": {}}]), encoding="utf-8"
    )
    return tmp_path / "mc_task.json"


@pytest.mark.parametrize("form", ["csv", "json", "lists"])
def test_the_best_answer_of_truthful_qa_is_among_the_wrong_ones(tmp_path: Path, form: str) -> None:
    dataset = read_truthful_qa(write_answers(tmp_path, form), ConversionOptions())
    assert write_rows(dataset, tmp_path / "items.jsonl", "items") == 1
    [item] = load_task(TaskSection(source=str(tmp_path / "items.jsonl"), answer="choice")).items.values()
    assert (item.id, item.question, item.truth) == ("truthful-qa-1", "Is the sky green?", "No, it is blue")
    assert sorted(item.options) == ["It is red", "No, it is blue", "Yes", "Yes, at noon"]
    write_rows(dataset, tmp_path / "questions.jsonl", "questions")
    assert [q.text for q in load_questions(str(tmp_path / "questions.jsonl"))] == ["Is the sky green?"]
    [row] = dataset.rows["known-answers"]
    assert row == PublishedKnownAnswer(item.id, item.question, "|".join(item.options), "No, it is blue")


def test_the_best_answer_is_at_every_position(tmp_path: Path) -> None:
    file = write_answers(tmp_path, "json")
    positions = []
    for seed in range(80):
        [item] = read_truthful_qa(file, ConversionOptions(seed=seed)).rows["items"]
        assert isinstance(item, PublishedTaskItem)
        positions.append(item.options.split("|").index(item.truth))
    assert {positions.count(position) > 8 for position in range(4)} == {True}


def test_targets_without_one_right_answer_are_an_error(tmp_path: Path) -> None:
    record = {"question": "q?", "mc1_targets": {"a": 1, "b": 1}}
    with pytest.raises(ImportFileError, match="line 1: the field 'mc1_targets' has 2 right answers, not one"):
        read_truthful_qa(write_json_lines(tmp_path / "x.jsonl", record), ConversionOptions())
    record = {"question": "q?", "mc1_targets": {"choices": ["a", "b"], "labels": [1]}}
    with pytest.raises(ImportFileError, match="has 1 label for 2 choices"):
        read_truthful_qa(write_json_lines(tmp_path / "x.jsonl", record), ConversionOptions())
    table = write_table(tmp_path / "x.csv", TABLE_HEADER, ["A", "B", "q?", "a", "a", "", "s"])
    with pytest.raises(ImportFileError, match="line 2: the column 'Incorrect Answers' is empty"):
        read_truthful_qa(table, ConversionOptions())


def test_hellaswag_has_four_endings_in_the_published_order(tmp_path: Path) -> None:
    endings = ["sits down.", "a | b.", "sings.", "leaves."]
    records = [
        {"ind": 4, "ctx": "A man stands. He", "endings": endings, "split": "val", "label": 1},
        {"ind": 5, "ctx": "A dog barks. It", "endings": endings, "split": "val", "label": "3"},
        {"ind": 6, "ctx": "A cat purrs. It", "endings": endings, "split": "test", "label": ""},
    ]
    file = write_json_lines(tmp_path / "hellaswag_val.jsonl", *records)
    dataset = read_hellaswag(file, ConversionOptions())
    write_rows(dataset, tmp_path / "items.jsonl", "items")
    items = list(load_task(TaskSection(source=str(tmp_path / "items.jsonl"), answer="choice")).items.values())
    assert [(item.context, item.truth) for item in items] == [
        ("A man stands. He", "a / b."),
        ("A dog barks. It", "leaves."),
        ("A cat purrs. It", None),
    ]
    assert items[0].options == ("sits down.", "a / b.", "sings.", "leaves.")
    assert dataset.notes == ["Items: 3.", "Items in which | within a choice was written as /: 3."]
    assert len(read_hellaswag(file, ConversionOptions(split="val")).rows["items"]) == 2
    with pytest.raises(UsageError, match="no split 'train'"):
        read_hellaswag(file, ConversionOptions(split="train"))
    assert dataset.rows["known-answers"] == [
        PublishedKnownAnswer("hellaswag-1", f"{HELLASWAG_QUESTION} A man stands. He", JOINED_ENDINGS, "a / b."),
        PublishedKnownAnswer("hellaswag-2", f"{HELLASWAG_QUESTION} A dog barks. It", JOINED_ENDINGS, "leaves."),
    ]
    records[1]["label"] = 4
    with pytest.raises(ImportFileError, match="line 2: the field 'label' is 4, not a whole number from 0 to 3"):
        read_hellaswag(write_json_lines(tmp_path / "x.jsonl", *records), ConversionOptions())


def test_items_with_unusable_endings_are_left_out_and_counted(tmp_path: Path) -> None:
    good = ["sits.", "runs.", "sings.", "leaves."]
    all_endings = [
        *(["sits.", "runs.", "sits.", "leaves."], ["a|b", "a/b", "c", "d"]),
        *(["sits.", " ", "sings.", "leaves."], ["", "runs.", "sings.", "leaves."], ["sits."], good),
    ]
    records = [{"ctx": "A man stands. He", "endings": endings, "label": 0} for endings in all_endings]
    records.append({"ctx": " ", "endings": good, "label": 0})
    dataset = read_hellaswag(write_json_lines(tmp_path / "h.jsonl", *records), ConversionOptions())
    assert [row[0] for row in dataset.rows["known-answers"]] == [row[0] for row in dataset.rows["items"]]
    assert [row[0] for row in dataset.rows["items"]] == ["hellaswag-6"]
    assert dataset.notes == [
        "Items: 1.",
        "Left out: 2 with two equal choices, 2 with an empty choice, 1 with fewer than two choices, 1 with no context.",
    ]


def test_questions_with_unusable_choices_are_left_out_and_counted(tmp_path: Path) -> None:
    targets: list[dict[str, Any]] = [
        {"a": 1, "b": 0}, {"a": 1}, {"a": 1, " ": 0}, {"choices": ["a", "b", "b "], "labels": [1, 0, 0]},
    ]  # fmt: skip
    records = [{"question": "q?", "mc1_targets": entry} for entry in targets]
    dataset = read_truthful_qa(write_json_lines(tmp_path / "x.jsonl", *records), ConversionOptions())
    for kind in ("items", "questions", "known-answers"):
        assert [row[0] for row in dataset.rows[kind]] == ["truthful-qa-1", "truthful-qa-4"]
    assert dataset.notes == ["Questions: 2.", "Left out: 1 with fewer than two choices, 1 with an empty choice."]


def test_a_contradictory_target_or_an_empty_question_is_an_error(tmp_path: Path) -> None:
    record = {"question": "q?", "mc1_targets": {"choices": ["a", "b", "a"], "labels": [1, 0, 0]}}
    with pytest.raises(ImportFileError, match="'mc1_targets' says of 'a' that it is right and wrong"):
        read_truthful_qa(write_json_lines(tmp_path / "x.jsonl", record), ConversionOptions())
    record = {"question": " ", "mc1_targets": {"a": 1, "b": 0}}
    with pytest.raises(ImportFileError, match="line 1: the field 'question' is empty"):
        read_truthful_qa(write_json_lines(tmp_path / "x.jsonl", record), ConversionOptions())


MIC_HEADER = ["", "Q", "A", "rot", "moral", "moral-vector", "rot-agree", "rot-agree-collapsed", "split"]
MIC_ROWS = [
    ["5", "Is it fair?", "Yes.", "Be fair.", "fairness|care", "[]", "3", "1", "train"],
    ["1", "Why lie?", "Dunno.", "Do not lie.", "", "[]", "-1", "1", "dev"],
    ["9", "Is it fair?", "No.", "Share.", "fairness", "[]", "5", "3", "train"],
    ["2", "Is it fair?", "No.", "Share all.", "loyalty", "[]", "5", "3", "train"],
    ["3", "Is it kind?", "No.", "Be kind.", "care|loyalty", "[]", "4", "2", "train"],
]


def test_mic_has_the_rule_that_most_people_agree_with(tmp_path: Path) -> None:
    dataset = read_mic(write_table(tmp_path / "MIC.csv", MIC_HEADER, *MIC_ROWS), ConversionOptions())
    assert dataset.rows["questions"] == [
        PublishedQuestion("mic-1", "Is it fair?", "fairness", "care|fairness|loyalty"),
        PublishedQuestion("mic-2", "Why lie?", "", ""),
        PublishedQuestion("mic-3", "Is it kind?", "", "care|loyalty"),
    ]
    assert dataset.rows["rules"] == [
        PublishedRule("mic-1", "Share."),
        PublishedRule("mic-2", "Do not lie."),
        PublishedRule("mic-3", "Be kind."),
    ]
    assert dataset.notes == [
        "Questions: 3, of them without one most frequent foundation: 2.",
        "Rules of thumb by people: 5, of them used, one for each question: 3.",
    ]
    write_rows(dataset, tmp_path / "q.jsonl", "questions")
    questions = load_questions(str(tmp_path / "q.jsonl"))
    assert (questions[0].id, questions[0].foundation, questions[0].topics) == (
        "mic-1",
        "fairness",
        ("care", "fairness", "loyalty"),
    )


@pytest.mark.parametrize("agreement", ["9", "0", "-2"])
def test_agreement_beyond_its_scale_is_an_error(agreement: str, tmp_path: Path) -> None:
    """-1 is what the authors' program writes where an annotator said nothing; the rows above have it."""
    file = write_table(tmp_path / "MIC.csv", MIC_HEADER, ["1", "q?", "a", "r", "care", "[]", agreement, "1", "dev"])
    with pytest.raises(ImportFileError, match=f"column 'rot-agree': {agreement} is not on the scale from 1 to 5"):
        read_mic(file, ConversionOptions())


def test_mic_may_be_read_by_split(tmp_path: Path) -> None:
    file = write_table(tmp_path / "MIC.csv", MIC_HEADER, *MIC_ROWS)
    dataset = read_mic(file, ConversionOptions(split="dev"))
    assert dataset.rows["questions"] == [PublishedQuestion("mic-1", "Why lie?", "", "")]
    with pytest.raises(UsageError) as error:
        read_mic(file, ConversionOptions(split="test"))
    assert error.value.how_to_fix == "Use one of dev, train."


def test_an_unknown_foundation_or_column_is_named(tmp_path: Path) -> None:
    file = write_table(tmp_path / "MIC.csv", ["Q", "rot", "moral"], ["q?", "r", "care|beauty"])
    with pytest.raises(ImportFileError, match="line 2, column 'moral': 'beauty' is not a moral foundation"):
        read_mic(file, ConversionOptions())
    with pytest.raises(ImportFileError, match="the column 'rot' is missing"):
        read_mic(write_table(tmp_path / "x.csv", ["Q", "answer"], ["q?", "a"]), ConversionOptions())


MMLU_ROWS = [
    ["What is 2 + 2?", "3", "4", "5", "6", "B"],
    ["Which is a | bar?", "a|b", "a, b", "c", "d", "A"],
    ["Which?", "same", "same", "c", "d", "C"],
]


def test_mmlu_is_read_from_a_table_without_a_header_and_from_records(tmp_path: Path) -> None:
    table = tmp_path / "anatomy_test.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(MMLU_ROWS)
    records = tmp_path / "mmlu.jsonl"
    lines = [
        {"question": q, "subject": "anatomy", "choices": choices, "answer": "ABCD".index(letter)}
        for q, *choices, letter in MMLU_ROWS
    ]
    records.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    expected = [
        PublishedTaskItem("mmlu-anatomy-1", "What is 2 + 2?", "3|4|5|6", "4"),
        PublishedTaskItem("mmlu-anatomy-2", "Which is a | bar?", "a/b|a, b|c|d", "a/b"),
    ]
    for source in (table, records):
        dataset = read_mmlu(source, ConversionOptions())
        assert dataset.rows["items"] == expected
        assert dataset.notes[:2] == ["Items: 2.", "Left out: 1 with two equal choices."]
    write_rows(dataset, tmp_path / "items.jsonl", "items")
    task = load_task(TaskSection(source=str(tmp_path / "items.jsonl"), answer="choice"))
    assert task.items["mmlu-anatomy-1"].truth == "4"


def test_gsm8k_items_have_the_number_after_the_mark(tmp_path: Path) -> None:
    file = tmp_path / "test.jsonl"
    rows = [{"question": "How many?", "answer": "He has 3 * 400 = <<3*400=1200>>1200.\n#### 1,200"}]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    dataset = read_gsm8k(file, ConversionOptions())
    assert dataset.rows["items"] == [PublishedTaskItem("gsm8k-1", "How many?", "", "1200")]
    write_rows(dataset, tmp_path / "items.jsonl", "items")
    task = load_task(TaskSection(source=str(tmp_path / "items.jsonl"), answer="exact"))
    assert (task.numbers, task.items["gsm8k-1"].truth) == (True, "1200")
    file.write_text(json.dumps({"question": "How many?", "answer": "12"}), encoding="utf-8")
    with pytest.raises(ImportFileError, match=r"the field 'answer' has no number after ####"):
        read_gsm8k(file, ConversionOptions())


def test_a_row_that_is_none_of_mmlu_is_named(tmp_path: Path) -> None:
    file = tmp_path / "anatomy_test.csv"
    file.write_text("What is 2 + 2?,3,4,5,6,E\n", encoding="utf-8")
    with pytest.raises(ImportFileError, match="row 1: is not question, A, B, C, D and the letter"):
        read_mmlu(file, ConversionOptions())
