"""CaTeRS: events in random order, relations of brat's marks and events, and stories with enough events."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.errors import ImportFileError, UsageError
from auditor.imports.published import ConversionOptions, PublishedDataset, PublishedDecision, PublishedItem
from auditor.imports.published_registry import write_rows
from auditor.probes.logic.item_sets import load_item_sets
from auditor.probes.logic.people_labels import check_people_labels, read_people_labels
from auditor.probes.logic.published import CONTEXT_HEADING, orders_events, read_caters

FIRST_STORY = "Tom fell.\nHe cried and left.\n"
SECOND_STORY = "Ann slept.\n"
MARKS = ["T1\tEvent 4 8\tfell", "T2\tEvent 13 18\tcried", "T3\tEvent 23 27\tleft", "T4\tEvent 37 42\tslept"]
RELATIONS = ["R1\tCAUSE_BEFORE Arg1:T1 Arg2:T2\t", "R2\tBEFORE Arg1:T2 Arg2:T3\t", "R3\tOVERLAPS Arg1:T1 Arg2:T3\t"]


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
    items, people = tmp_path / "items.jsonl", tmp_path / "people.jsonl"
    write_rows(dataset, items, "items")
    write_rows(dataset, people, "comparisons")
    labels = read_people_labels(people)
    check_people_labels(labels, load_item_sets(items, "temporal"), items)
    assert len(labels) == len(decided_pairs(dataset)) == 2


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
    lines = [*MARKS, "R1\tBEFORE Arg1:T1 Arg2:T2", "R2\tBEFORE Arg1:T2 Arg2:T1", "R3\tBEFORE Arg1:T1 Arg2:T3"]
    assert decided_pairs(read(write_story_file(tmp_path / "train", *lines))) == {("fell (T1)", "left (T3)")}


@pytest.mark.parametrize(
    ("relation", "temporal", "causal"),
    [
        ("BEFORE", True, False),
        ("ENABLE_BEFORE", True, True),
        ("PREVENT_OVERLAPS", False, True),
        ("CAUSE_TO_END_BEFORE", False, False),
        ("CAUSE_TO_END_OVERLAP", False, False),
        ("DURING", False, False),
        ("IDENTITY", False, False),
    ],
)
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
