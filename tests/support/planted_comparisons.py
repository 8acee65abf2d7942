"""Answers with planted faults on two sets of unequal size, as comparisons to import and as measured audits."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from auditor.config import AuditConfig
from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.replications.definitions import MeasuredAudit
from auditor.reports.data.build import build_report
from auditor.storage.database import open_database

SIZES = {"few": 5, "many": 12}
"""Items of each set: people prefer the item with the lower number."""
Chooser = Callable[[int, int, int], bool]
"""Whether the first of two items is chosen, from the size of the set and the positions of the items as shown."""


def linear(_: int, first: int, second: int) -> bool:
    """As people do."""
    return first < second


def cyclic(size: int, first: int, second: int) -> bool:
    """In cycles in the small set: each item is preferred to the next two."""
    return (second - first) % 5 in (1, 2) if size == SIZES["few"] else first < second


def first_shown(size: int, first: int, second: int) -> bool:
    """The item shown first, in the large set."""
    return size == SIZES["many"] or first < second


CHOOSERS: dict[str, Chooser] = {"linear": linear, "cyclic": cyclic, "first-shown": first_shown}


def write_csv(path: Path, header: str, rows: Iterable[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header.split(","), *rows])
    return path


def ask(model: str, set_name: str, choose: Chooser, paraphrase: int = 0) -> list[tuple[Any, ...]]:
    """Answers of a model on a set, in both orders. In the small set, negated questions get the other answer."""
    size = SIZES[set_name]
    rows: list[tuple[Any, ...]] = []
    for i, j in ((i, j) for i in range(size) for j in range(size) if i != j):
        is_first = choose(size, i, j)
        is_first_negated = not is_first if set_name == "few" else is_first
        for relation, answer in (("standard", is_first), ("negated", is_first_negated)):
            rows.append((model, set_name, f"{i:02}", f"{j:02}", relation, "A" if answer else "B", 0, paraphrase))
    return rows


def repeats(model: str) -> list[tuple[Any, ...]]:
    """Four repeats of one question of the small set, all equal, and of three of the large set, half of them equal."""
    asked = [("few", 0, 1), *(("many", 0, j) for j in (1, 2, 3))]
    return [
        (model, name, f"{i:02}", f"{j:02}", "standard", "A" if name == "few" or sample % 2 else "B", sample, 0)
        for name, i, j in asked
        for sample in range(1, 5)
    ]


def measure(
    folder: Path, audit: str, models: list[str], rows: list[tuple[Any, ...]], *, has_people: bool = True
) -> MeasuredAudit:
    """An audit with these comparisons, and with people's scores of the items."""
    storage = f"sqlite:///{folder}/planted.db"
    columns = "judge,context,item_a,item_b,relation,decision,sample,paraphrase"
    comparisons = write_csv(folder / f"{audit}.csv", columns, rows)
    items = [(f"{i:02}", name, size - i) for name, size in SIZES.items() for i in range(size)]
    people = write_csv(folder / "people.csv", "item,context,human", items)
    import_comparisons(comparisons, audit=audit, storage=storage, items=people if has_people else None)
    sections = [{"name": name, "model": f"openai/{name}"} for name in models]
    config = {"name": audit, "judges": [], "models": sections, "probes": {"logic": {"items": str(people)}}}
    with open_database(storage, create=False) as db:
        return MeasuredAudit(audit, AuditConfig.model_validate(config), build_report(db, audit))


WORDING_ERRORS = {"few": ((0, 0), (2, 0), (4, 1)), "many": ((0, 0), (40, 0), (0, 30))}
"""Of each wording, the pairs of a set of which the first is chosen, and those that are decided against people."""


def make_wording(set_name: str, wording: int) -> Chooser:
    """A model that decides the last pairs of a set as people do."""
    pairs = list(combinations(range(SIZES[set_name]), 2))
    n_first, n_wrong = WORDING_ERRORS[set_name][wording]
    by_position, wrong = pairs[:n_first], pairs[n_first : n_first + n_wrong]

    def choose(_: int, first: int, second: int) -> bool:
        pair = (min(first, second), max(first, second))
        return pair in by_position or (first < second) != (pair in wrong)

    return choose
