"""Published files: votes of several people, summaries and passages with scores, and events in stories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from auditor.errors import ImportFileError, UsageError
from auditor.imports.published import ConversionOptions, PublishedDataset, PublishedDecision, PublishedItem
from auditor.imports.published_registry import read_dataset, write_rows
from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.probes.logic.figures.schema import LogicReport
from auditor.probes.logic.item_sets import load_item_sets
from auditor.probes.logic.people_labels import check_people_labels, read_people_labels
from auditor.probes.logic.published import (
    CONTEXT_HEADING,
    orders_events,
    parse_permutation,
    read_caters,
    read_ms_marco,
    read_novel_eval,
    read_rankgpt,
    read_summarize_from_feedback,
    read_summeval,
)
from auditor.probes.logic.repair import repair_comparisons
from auditor.probes.logic.training_data import check_item_texts
from auditor.run import open_audit
from auditor.storage.database import open_database
from tests.support.json_lines import write_json_lines

POST = "A long post."
FIRST_STORY = "Tom fell.\nHe cried and left.\n"
SECOND_STORY = "Ann slept.\n"
MARKS = ["T1\tEvent 4 8\tfell", "T2\tEvent 13 18\tcried", "T3\tEvent 23 27\tleft", "T4\tEvent 37 42\tslept"]
RELATIONS = ["R1\tCAUSE_BEFORE Arg1:T1 Arg2:T2\t", "R2\tBEFORE Arg1:T2 Arg2:T3\t", "R3\tOVERLAPS Arg1:T1 Arg2:T3\t"]


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


def write_labels(dataset: PublishedDataset, folder: Path, relation: str) -> list[str]:
    """Write the items and the comparisons of a data set; return people's decisions as labels on the items."""
    items, people = folder / "items.jsonl", folder / "people.jsonl"
    write_rows(dataset, items, "items")
    write_rows(dataset, people, "comparisons")
    labels = read_people_labels(people)
    check_people_labels(labels, load_item_sets(items, relation), items)
    return [label.decision.value for label in labels.values()]


def test_comparisons_are_labels_on_the_items(tmp_path: Path) -> None:
    records = (*VOTES, make_record("a" * 500, "b" * 500, 1))
    dataset = read_summarize_from_feedback(write_json_lines(tmp_path / "x.json", *records), ConversionOptions())
    assert write_labels(dataset, tmp_path, "preference") == ["B", "TIE", "B"]


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
    [("7 Q0 0-0 2", "queries.tsv has no '7'"), ("0 Q0 9-9 2", "corpus.tsv has no '9-9'"),
     ("0 Q0 0-0", "is not 'query 0 passage grade'"), ("0 Q0 0-0 inf", "is not 'query 0 passage grade'")],
)  # fmt: skip
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


def write_permutations(folder: Path, *permutations: str) -> Path:
    path = folder / "p.json"
    path.write_text(json.dumps(permutations), encoding="utf-8")
    return path


@pytest.mark.parametrize("form", ["retrieved_passages", "hits"])
def test_the_score_of_a_passage_is_the_number_of_passages_ranked_after_it(tmp_path: Path, form: str) -> None:
    key = "text" if form == "retrieved_passages" else "content"
    passages = [{key: text, "docid": f"d{text}"} for text in ("x", "y", "z")]
    records = [{"query": query, form: passages, "positive_passages": []} for query in ("q?", "r?", "q?")]
    file = write_json_lines(tmp_path / "marco-train-10k.jsonl", *records)
    permutations = write_permutations(tmp_path, "[3] > [1] > [2]", "[2] > [1]", "[1] > [2] > [3]")
    dataset = read_rankgpt(file, ConversionOptions(permutations=permutations))
    assert dataset.rows["items"] == [
        PublishedItem("q?", "1", "x", 1.0), PublishedItem("q?", "2", "y", 0.0), PublishedItem("q?", "3", "z", 2.0),
        PublishedItem("r?", "1", "x", 0.0), PublishedItem("r?", "2", "y", 1.0), PublishedItem("r?", "3", "z", None),
    ]  # fmt: skip
    assert dataset.notes[0] == "Items: 6, in sets: 2."
    assert dataset.notes[1].endswith("without a score: 1.")
    assert dataset.notes[2].endswith("left out there: 1.")


def test_the_first_passages_are_read_as_in_the_paper(tmp_path: Path) -> None:
    passages = [{"content": f"text {i}"} for i in range(1, 13)]
    file = write_json_lines(tmp_path / "x.jsonl", {"query": "q?", "hits": passages})
    permutations = write_permutations(tmp_path, "[12] > [3] > [11] > [1]")
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
    permutations = write_permutations(tmp_path, "[1] > [4] > [2] > [3]")
    dataset = read_rankgpt(file, ConversionOptions(permutations=permutations))
    assert dataset.rows["items"] == [PublishedItem("q?", "2", "y", 0.0), PublishedItem("q?", "4", "z", 1.0)]
    assert len(dataset.rows["comparisons"]) == 1
    assert dataset.notes == ["Items: 2, in sets: 1.", "Passages without text, left out: 2."]
    write_json_lines(file, {"query": "q?"})
    with pytest.raises(ImportFileError, match="the field 'hits' is missing") as error:
        read_rankgpt(file, ConversionOptions(permutations=permutations))
    assert "DATASET is the name" in error.value.how_to_fix


def test_a_part_without_a_query_and_permutations_of_another_file_are_errors(tmp_path: Path) -> None:
    file = write_json_lines(tmp_path / "x.jsonl", {"query": "q?", "hits": [{"content": "x"}, {"content": "y"}]})
    permutations = write_permutations(tmp_path, "[1] > [2]")
    with pytest.raises(UsageError, match="--split test: none of 1 sets is in this part"):
        read_dataset("rankgpt", file, ConversionOptions(permutations=permutations, limit=1, split="test"))
    write_permutations(tmp_path, "[1]", "[1]")
    with pytest.raises(ImportFileError, match=r"p\.json: has 2 permutations, but .*x\.jsonl has 1 queries"):
        read_rankgpt(file, ConversionOptions(permutations=permutations))
    with pytest.raises(UsageError) as error:
        read_rankgpt(file, ConversionOptions())
    assert "--permutations" in error.value.how_to_fix


def write_story_file(folder: Path, *lines: str, text: str = FIRST_STORY + "***\n" + SECOND_STORY) -> Path:
    """Write a file of two stories and its annotation, and return the folder."""
    folder.mkdir(exist_ok=True)
    (folder / "batch_1.txt").write_text(text, encoding="utf-8")
    (folder / "batch_1.ann").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def read(folder: Path, min_events: int = 2, aspect: str = "", seed: int = 0) -> PublishedDataset:
    return read_caters(folder, ConversionOptions(aspect=aspect, min_events=min_events, seed=seed))


def list_items(dataset: PublishedDataset) -> list[PublishedItem]:
    """The items of a data set."""
    return [row for row in dataset.rows["items"] if isinstance(row, PublishedItem)]


def decided_pairs(dataset: PublishedDataset) -> set[tuple[str, str]]:
    """The pairs of comparisons, each with the event that people decided for at first."""
    decisions = [row for row in dataset.rows["comparisons"] if isinstance(row, PublishedDecision)]
    assert {row.decision for row in decisions} <= {"A", "B"}
    return {(row.item_a, row.item_b) if row.decision == "A" else (row.item_b, row.item_a) for row in decisions}


def test_items_are_lines_with_the_event_in_brackets_and_no_order(tmp_path: Path) -> None:
    dataset = read(write_story_file(tmp_path / "train", *MARKS, *RELATIONS).parent)
    texts = {item.item: item.text for item in list_items(dataset)}
    assert texts == {
        "fell (T1)": "Tom [fell].",
        "cried (T2)": "He [cried] and left.",
        "left (T3)": "He cried and [left].",
    }
    [context] = {row[0] for row in dataset.rows["items"]}
    heading, *lines = context.split("\n")
    assert heading == CONTEXT_HEADING
    assert sorted(lines) == sorted(f"- {text}" for text in texts.values())
    assert decided_pairs(dataset) == {("fell (T1)", "cried (T2)"), ("cried (T2)", "left (T3)")}
    assert {row[0] for row in dataset.rows["comparisons"]} == {context}
    assert decided_pairs(read(tmp_path, aspect="causal")) == {("fell (T1)", "cried (T2)")}
    assert dataset.notes == ["Stories with at least 2 events: 1 of 2. Their events: 3."]


def test_relations_are_labels_on_the_items(tmp_path: Path) -> None:
    dataset = read(write_story_file(tmp_path / "train", *MARKS, *RELATIONS).parent)
    assert len(write_labels(dataset, tmp_path, "temporal")) == len(decided_pairs(dataset)) == 2


def test_the_order_of_events_is_random_and_the_same_for_one_seed(tmp_path: Path) -> None:
    folder = write_story_file(tmp_path / "train", *MARKS)
    orders = [tuple(item.item for item in list_items(read(folder, seed=seed))) for seed in range(20)]
    assert len(set(orders)) == 6
    assert orders[0] == tuple(item.item for item in list_items(read(folder, seed=0)))


def test_the_order_of_a_pair_is_random_and_the_same_for_one_seed(tmp_path: Path) -> None:
    """Else a judge that always names the event shown first would agree with people."""
    folder = write_story_file(tmp_path / "train", *MARKS, *RELATIONS)
    comparisons = [read(folder, seed=seed).rows["comparisons"] for seed in range(40)]
    decisions = [tuple(row[-1] for row in rows) for rows in comparisons]
    assert {*decisions} == {("A", "A"), ("A", "B"), ("B", "A"), ("B", "B")}
    assert comparisons[0] == read(folder, seed=0).rows["comparisons"]


def test_stories_need_seven_events_by_default(tmp_path: Path) -> None:
    text = " ".join(f"w{number}" for number in range(7)) + "\n***\n" + " ".join(f"w{number}" for number in range(6))
    marks = [f"T{number}\tEvent {3 * number} {3 * number + 2}\tw{number}" for number in range(7)]
    marks += [f"T1{number}\tEvent {25 + 3 * number} {27 + 3 * number}\tw{number}" for number in range(6)]
    dataset = read_caters(write_story_file(tmp_path / "x", *marks, text=text), ConversionOptions())
    assert len(dataset.rows["items"]) == 7
    assert dataset.notes[0] == "Stories with at least 7 events: 1 of 2. Their events: 7."


def test_relations_may_name_events_of_brat(tmp_path: Path) -> None:
    lines = [
        *("T1\tAction 4 8\tfell", "T2\tAction 13 18\tcried", "T3\tTime 23 27\tleft"),
        *("E1\tAction:T1 ", "E2\tAction:T2 When:T3", "A1\tNegated E2", "#1\tAnnotatorNotes E1\tsure"),
        "R1\tBEFORE Arg1:E1 Arg2:E2",
    ]
    dataset = read(write_story_file(tmp_path / "train", *lines))
    assert {item.item for item in list_items(dataset)} == {"fell (T1)", "cried (T2)"}
    assert decided_pairs(dataset) == {("fell (T1)", "cried (T2)")}


def test_times_and_people_are_no_events(tmp_path: Path) -> None:
    """Also where no lines of events say which marks they are: then the type of a mark does."""
    lines = ["T1\tPerson 0 3\tTom", *MARKS[:2], "T3\tTimex 23 27\tleft", "R1\tBEFORE Arg1:T1 Arg2:T2"]
    lines[1] = "T4\tEvent 4 8\tfell"
    lines += ["R2\tBEFORE Arg1:T4 Arg2:T2", "R3\tDURING Arg1:T4 Arg2:T3"]
    dataset = read(write_story_file(tmp_path / "train", *lines))
    assert {item.item for item in list_items(dataset)} == {"fell (T4)", "cried (T2)"}
    assert decided_pairs(dataset) == {("fell (T4)", "cried (T2)")}
    assert read(tmp_path, min_events=3).rows["items"] == []
    with pytest.raises(ImportFileError, match="has text marks, but no events"):
        read(write_story_file(tmp_path / "train", lines[0]))


def test_a_story_in_two_files_is_read_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_story_file(tmp_path / name, *MARKS, *RELATIONS)
    dataset = read(tmp_path)
    assert len(list_items(dataset)) == len({(item.context, item.item) for item in list_items(dataset)}) == 3
    assert len(decided_pairs(dataset)) == len(dataset.rows["comparisons"]) == 2
    assert dataset.notes[1] == "Stories that occur again with the same events, and are left out there: 1."
    write_rows(dataset, tmp_path / "items.jsonl", "items")
    assert len(load_item_sets(tmp_path / "items.jsonl", "temporal")) == 1


def test_a_story_in_one_line_is_a_caution(tmp_path: Path) -> None:
    lines = ["T1\tEvent 4 8\tfell", "T2\tEvent 13 18\tcried"]
    one_line = write_story_file(tmp_path / "one", *lines, text="Tom fell. He cried.\n")
    assert "Caution: stories that are one line of the file: 1." in read(one_line).notes[-1]
    assert "Caution" not in read(write_story_file(tmp_path / "two", *lines)).notes[-1]


def test_an_event_may_have_parts_in_any_order(tmp_path: Path) -> None:
    lines = [MARKS[0], "T2\tEvent 23 27;13 18\tleft cried"]
    dataset = read(write_story_file(tmp_path / "train", *lines))
    assert {item.text for item in list_items(dataset)} == {"Tom [fell].", "He [cried] and [left]."}


def test_pairs_ordered_both_ways_are_left_out(tmp_path: Path) -> None:
    lines = [*MARKS, *(f"R{i}\tBEFORE Arg1:T{a} Arg2:T{b}" for i, (a, b) in enumerate([(1, 2), (2, 1), (1, 3)]))]
    assert decided_pairs(read(write_story_file(tmp_path / "train", *lines))) == {("fell (T1)", "left (T3)")}


@pytest.mark.parametrize(
    ("relation", "temporal", "causal"),
    [("BEFORE", True, False), ("ENABLE_BEFORE", True, True), ("PREVENT_OVERLAPS", False, True),
     ("CAUSE_TO_END_BEFORE", False, False), ("CAUSE_TO_END_OVERLAP", False, False), ("DURING", False, False),
     ("IDENTITY", False, False)],
)  # fmt: skip
def test_what_ends_has_begun_before(relation: str, temporal: bool, causal: bool) -> None:
    assert orders_events(relation, "temporal") is temporal
    assert orders_events(relation, "causal") is causal


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("T9\tEvent 4 8\tcried", "line 5: the text at these positions is not 'cried'"),
        ("T9\tEvent 4 8", "line 5 is not 'id, type and positions, text'"),
        ("T9\tEvent\tfell", "line 5: the text at these positions is not 'fell'"),
        ("R9\tBEFORE Arg1:T1", "line 5 is not 'id, relation Arg1:id Arg2:id'"),
        ("R9\tBEFORE T1 T2", "line 5 is not 'id, relation Arg1:id Arg2:id'"),
        ("T1\tEvent 4 8\tfell", "line 5: the id 'T1' occurs twice"),
        ("R9\tBEFORE Arg1:T1 Arg2:E3", "line 5: the file has no event 'E3'"),
        ("R9\tBEFORE Arg1:T1 Arg2:T4", "line 5: the relation is between two stories"),
    ],
)
def test_a_line_that_does_not_fit_is_named(tmp_path: Path, line: str, problem: str) -> None:
    folder = write_story_file(tmp_path / "train", *MARKS, line)
    with pytest.raises(ImportFileError) as error:
        read(folder)
    assert f"batch_1.ann: {problem}" in error.value.message
    assert "brat" in error.value.how_to_fix


def test_an_event_whose_mark_is_missing_is_named(tmp_path: Path) -> None:
    """An event of brat is found by its mark; the file has the event, but not the mark."""
    events = ["E1\tEvent:T1", "E10\tEvent:T99"]
    folder = write_story_file(tmp_path / "train", *MARKS, *events, "R1\tBEFORE Arg1:E1 Arg2:E10")
    with pytest.raises(ImportFileError, match="line 7: the file has no text mark 'T99' of the event 'E10'"):
        read(folder)
    with pytest.raises(ImportFileError, match="line 6: the id 'E1' occurs twice"):
        read(write_story_file(tmp_path / "train", *MARKS, events[0], events[0]))


def test_annotations_without_a_text_are_named(tmp_path: Path) -> None:
    folder = write_story_file(tmp_path / "train", *MARKS)
    (folder / "second.ann").write_text("", encoding="utf-8")
    assert "second.ann" in read(folder).notes[-1]
    (folder / "batch_1.txt").unlink()
    with pytest.raises(ImportFileError, match=r"has no \.ann file with a \.txt file"):
        read(folder)
    with pytest.raises(ImportFileError, match="is not a folder"):
        read(folder / "batch_1.ann")
    with pytest.raises(UsageError, match="no aspect 'spatial'"):
        read(folder, aspect="spatial")
