"""People's labels on pairs of items, from a file, and the check of items before the first call."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from auditor.agents.localization import topic_wording
from auditor.config import AuditConfig
from auditor.domain import ComparisonChoice, Survey
from auditor.domain.terms import short_id
from auditor.errors import ImportFileError, did_you_mean
from auditor.probes.logic.comparisons import ItemSet, Relation
from auditor.probes.logic.item_sets import (
    TOPIC_ITEMS,
    TRACE_ITEMS,
    configured_countries,
    load_item_sets,
    prompt_language,
    set_id,
)
from auditor.probes.logic.settings import LogicProbe
from auditor.surveys.distributions import parse_enum_cell
from auditor.surveys.row_reader import TextRow, read_rows
from auditor.text_safety import truncate_text

REQUIRED_COLUMNS = ("context", "item_a", "item_b", "decision")


class LabelledPair(NamedTuple):
    """Ids of a set and of two of its items; the label is about them in this order."""

    context: str
    item_a: str
    item_b: str

    @property
    def swapped(self) -> LabelledPair:
        """The same pair in the other order."""
        return LabelledPair(self.context, self.item_b, self.item_a)


class PeopleLabel(NamedTuple):
    """People's decision on a pair, and its location in the file for error messages."""

    decision: ComparisonChoice
    location: str


PeopleLabels = Mapping[LabelledPair, PeopleLabel]
_LOCK = threading.Lock()  # batches run in threads, and one of them reading a large file is enough


def read_people_labels(file: Path) -> PeopleLabels:
    """Read the labels of a file with the columns `context,item_a,item_b,decision`; one label for each pair.

    `auditor logic convert --as comparisons` writes such files; a column `relation` may only hold `standard`.

    Raises:
        ImportFileError: the file is empty, or a row is invalid or about a pair that already has a label; the message
            names the row.
    """
    labels: dict[LabelledPair, PeopleLabel] = {}
    for row in read_rows(file, REQUIRED_COLUMNS, ["relation"]):
        pair, label = _parse_label(row)
        earlier, is_swapped = labels.get(pair), False
        if earlier is None:
            earlier, is_swapped = labels.get(pair.swapped), True
        if earlier is not None:
            _reject_second_label(pair, label, earlier, is_swapped=is_swapped)
        labels[pair] = label
    if not labels:
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    return labels


def _parse_label(row: TextRow) -> tuple[LabelledPair, PeopleLabel]:
    """Parse a row; raise ImportFileError if a cell cannot be used, or if the item is compared with itself."""
    item_a, item_b = row.required_text("item_a"), row.required_text("item_b")
    if item_a == item_b:
        raise ImportFileError(
            f"{row.location}: the row compares '{truncate_text(item_a)}' with itself.", "Remove the row."
        )
    if parse_enum_cell(row, "relation", Relation, str.lower) is Relation.NEGATED:
        raise row.make_cell_error(
            "relation", "labels must answer the standard question", "Swap A and B in this row, and write standard."
        )
    row.required_text("decision")
    decision = parse_enum_cell(row, "decision", ComparisonChoice, str.upper)
    assert decision is not None
    pair = LabelledPair(set_id(row.cells["context"]), short_id(item_a), short_id(item_b))
    return pair, PeopleLabel(decision, row.location)


def _reject_second_label(pair: LabelledPair, label: PeopleLabel, earlier: PeopleLabel, *, is_swapped: bool) -> None:
    """Raise ImportFileError for a pair with two labels; the message says whether they contradict each other."""
    earlier_decision = earlier.decision.swapped if is_swapped else earlier.decision
    pair_text = f"'{truncate_text(pair.item_a)}' and '{truncate_text(pair.item_b)}'"
    if label.decision is earlier_decision:
        raise ImportFileError(
            f"{label.location}: the pair {pair_text} already has this label ({earlier.location}).",
            "Keep one of the two rows.",
        )
    raise ImportFileError(
        f"{label.location}: the label of {pair_text} contradicts that of {earlier.location}.",
        "Keep one label for each pair, such as the majority's.",
    )


def check_people_labels(labels: PeopleLabels, item_sets: Iterable[ItemSet], items_file: Path) -> None:
    """Check that every label is about two items of one set.

    Args:
        item_sets: all sets of the file of items.
        items_file: that file, for messages.

    Raises:
        ImportFileError: a set or an item is unknown; the message names the row.
    """
    items_by_context = {item_set.context: {item.id for item in item_set.items} for item_set in item_sets}
    for pair, label in labels.items():
        items = items_by_context.get(pair.context)
        if items is None:
            raise ImportFileError(
                f"{label.location}: {items_file.name} has no context '{truncate_text(pair.context)}'.",
                did_you_mean(pair.context, items_by_context, f"Copy the context from {items_file.name}."),
            )
        for item in (pair.item_a, pair.item_b):
            if item not in items:
                raise ImportFileError(
                    f"{label.location}: the context '{truncate_text(pair.context)}' has no item "
                    f"'{truncate_text(item)}' in {items_file.name}.",
                    did_you_mean(item, items, f"Copy the item from {items_file.name}, or remove the row."),
                )


def load_people_labels(file: str | None) -> PeopleLabels:
    """The labels of a file that was checked before the run; empty without a file. Read again only if it has changed."""
    if file is None:
        return {}
    path = Path(file)
    with _LOCK:
        return _read_version(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=1)
def _read_version(path: Path, modified_ns: int) -> PeopleLabels:
    """The labels of a file as it was at the time of its last change, which is part of the cache's key."""
    return read_people_labels(path)


def find_people_decision(labels: PeopleLabels, pair: LabelledPair) -> ComparisonChoice | None:
    """People's decision on a pair whose first item is shown as A; None without a label."""
    if (label := labels.get(pair)) is not None:
        return label.decision
    swapped_label = labels.get(pair.swapped)
    return None if swapped_label is None else swapped_label.decision.swapped


def check_items(config: AuditConfig, survey: Survey) -> None:
    """Check that the items exist in every language of the questions, and that people's labels are about them.

    Raises:
        ConfigError, ImportFileError: something is missing or invalid; the message names it.
    """
    probe = config.probes.get(LogicProbe)
    if probe.items not in (TOPIC_ITEMS, TRACE_ITEMS):
        items_file = Path(probe.items)
        item_sets = load_item_sets(items_file, probe.relation)
        if probe.people is not None:
            check_people_labels(read_people_labels(Path(probe.people)), item_sets, items_file)
        return
    for country in configured_countries(probe, survey):
        for topic in survey.topics if probe.items == TOPIC_ITEMS else ():
            topic_wording(survey, topic, prompt_language(config, country))
