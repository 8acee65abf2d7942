"""The check of names finds what it is for, and accepts what is published."""

from __future__ import annotations

import pytest

from tests.project import naming

RULES = naming.load_rules()


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "def load(wanted): ...",
        "def tell_audit(): ...",
        "class Desk: ...",
        "MOST_HELPERS = 8",
        "for said in texts: ...",
        "self.told = True",
        "with opened() as there: ...",
        "import words as telling",
        "try: ...\nexcept OSError as why: ...",
        "match x:\n    case [*rest]: ...",
    ],
)
def test_a_listed_word_is_refused(source: str) -> None:
    assert len(naming.find_refused("auditor/module.py", source, RULES)) == 1


@pytest.mark.parametrize("source", ["conflicts = 1", "not_found = 1", "MAX_HELPERS = 8", "almost = 1", "x = found"])
def test_other_names_are_accepted(source: str) -> None:
    assert naming.find_refused("auditor/module.py", source, RULES) == []


def test_the_name_of_a_module_counts_too() -> None:
    assert [d.name for d in naming.find_refused("tui/chrome.py", "", RULES)] == ["chrome"]
    assert [d.name for d in naming.find_refused("tests/tui/test_chrome.py", "", RULES)] == ["chrome"]


def test_a_published_name_stays_where_it_is_published_and_nowhere_else() -> None:
    source = "seats: int"
    assert naming.find_refused("storage/review_tables.py", source, RULES) == []
    assert naming.find_refused("auditor/run/replay.py", source, RULES) != []
