"""People's labels on pairs: reading, errors that name the row, and the order of the items."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from auditor.domain import ComparisonChoice
from auditor.errors import ImportFileError
from auditor.probes.logic.comparisons import Item, ItemSet
from auditor.probes.logic.people_labels import (
    LabelledPair,
    check_people_labels,
    find_people_decision,
    load_people_labels,
    read_people_labels,
)

HEADER = "context,item_a,item_b,decision"
SETS = [
    ItemSet("best fruit", "best fruit", "preference", (Item("apple", ""), Item("pear", ""), Item("plum", ""))),
    ItemSet("best tree", "best tree", "preference", (Item("oak", ""), Item("elm", ""))),
]


def write(folder: Path, *rows: str, header: str = HEADER) -> Path:
    """A file of labels."""
    file = folder / "people.csv"
    file.write_text("\n".join((header, *rows)) + "\n", encoding="utf-8")
    return file


def test_a_label_holds_in_both_orders(tmp_path: Path) -> None:
    labels = read_people_labels(write(tmp_path, "best fruit,apple,pear,A", "best fruit,plum,pear,tie"))
    apple_first, tie = LabelledPair("best fruit", "apple", "pear"), LabelledPair("best fruit", "pear", "plum")
    assert find_people_decision(labels, apple_first) is ComparisonChoice.FIRST
    assert find_people_decision(labels, apple_first.swapped) is ComparisonChoice.SECOND
    assert find_people_decision(labels, tie) is find_people_decision(labels, tie.swapped) is ComparisonChoice.TIE
    assert find_people_decision(labels, LabelledPair("best tree", "apple", "pear")) is None


@pytest.mark.parametrize(
    ("rows", "message", "fix"),
    [
        (["best fruit,apple,pear,C"], "line 2, column 'decision': 'C' is not one of A, B, TIE", "Correct it."),
        (["best fruit,apple,pear,"], "line 2: the column 'decision' is empty", "Fill it in"),
        (["best fruit,apple,apple,A"], "line 2: the row compares 'apple' with itself", "Remove the row."),
        (["best fruit,apple,pear,A", "best fruit,apple,pear,A"],
         "line 3: the pair 'apple' and 'pear' already has this label", "Keep one of the two rows."),
        (["best fruit,apple,pear,A", "best fruit,pear,apple,B"], "line 3: the pair 'pear' and 'apple' already",
         "Keep"),
        (["best fruit,apple,pear,A", "best fruit,pear,apple,A"],
         "line 3: the label of 'pear' and 'apple' contradicts that of", "Keep one label for each pair"),
        (["best fruit,apple,pear,A", "best fruit,apple,pear,TIE"], "line 3: the label of 'apple' and 'pear'", "Keep"),
        ([], "people.csv: has no rows", "Check that it is the right file."),
        (["best fruits,apple,pear,A"], "line 2: items.csv has no context 'best fruits'",
         "Did you mean 'best fruit'?"),
        (["best fruit,apple,oak,A"], "line 2: the context 'best fruit' has no item 'oak'", "Copy the item"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_used_is_named_with_its_remedy(
    tmp_path: Path, rows: list[str], message: str, fix: str
) -> None:
    with pytest.raises(ImportFileError) as refused:
        check_people_labels(read_people_labels(write(tmp_path, *rows)), SETS, Path("items.csv"))
    assert message in refused.value.message
    assert fix in refused.value.how_to_fix


def test_answers_to_negated_questions_are_refused(tmp_path: Path) -> None:
    header = f"judge,{HEADER},relation"
    assert len(read_people_labels(write(tmp_path, "people,best fruit,apple,pear,A,standard", header=header))) == 1
    with pytest.raises(ImportFileError, match="line 2, column 'relation': labels must answer the standard question"):
        read_people_labels(write(tmp_path, "people,best fruit,apple,pear,A,negated", header=header))


def test_a_file_is_read_again_if_it_has_changed(tmp_path: Path) -> None:
    file = write(tmp_path, "best fruit,apple,pear,A")
    assert load_people_labels(None) == {}
    assert load_people_labels(str(file)) is load_people_labels(str(file))
    write(tmp_path, "best fruit,apple,pear,B")
    os.utime(file, ns=(0, 0))
    assert [label.decision for label in load_people_labels(str(file)).values()] == [ComparisonChoice.SECOND]
