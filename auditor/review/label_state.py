"""The labels in force on a sample, held in memory and kept up to date with what all raters append to the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from auditor.domain.labels import Label, LabelAction, LabelEntry, LabelKind, LabelUnit
from auditor.storage import labels
from auditor.storage.database import Database


class LabelState:
    """Labels in force on the units of one sample.

    `refresh` reads only the rows that were appended since it was called last, so its cost does not grow with the
    number of labels.

    Args:
        contents: hash of the text of each sampled unit; a label of another text is not in force.

    Attributes:
        last_acts: time of each rater's last act in the review screen, by rater.
        n_shared_changes: number of changes so far of labels on units that several raters have labelled.
    """

    def __init__(self, db: Database, audit_id: int, kind: LabelKind, contents: Mapping[LabelUnit, str]) -> None:
        self._db, self._audit_id, self._kind = db, audit_id, kind
        self._contents = contents
        self._last_id = 0
        self._entries: dict[tuple[LabelUnit, str], dict[int, LabelEntry]] = {}
        self._by_unit: dict[LabelUnit, dict[str, Label]] = {}
        self._by_rater: dict[str, dict[LabelUnit, Label]] = {}
        self._shared: dict[LabelUnit, None] = {}
        self.last_acts: dict[str, datetime] = {}
        self.n_shared_changes = 0

    def refresh(self) -> set[LabelUnit]:
        """Read the rows that were appended since the last call; return the units whose labels changed."""
        entries, self._last_id = labels.load_new_entries(self._db, self._audit_id, self._kind, self._last_id)
        changed = {self._apply(entry) for entry in entries if entry.label.unit in self._contents}
        for unit, rater in changed:
            self._update(unit, rater)
        return {unit for unit, _ in changed}

    def labels_of_unit(self, unit: LabelUnit) -> Mapping[str, Label]:
        """Labels of a unit by rater."""
        return self._by_unit.get(unit, {})

    def labels_of_rater(self, rater: str) -> dict[LabelUnit, Label]:
        """Labels of a rater by unit, in the order in which they came into force."""
        return self._by_rater.get(rater, {})

    def iter_shared(self) -> Iterator[Label]:
        """Yield the labels of units that at least two raters labelled."""
        for unit in self._shared:
            yield from self._by_unit[unit].values()

    def _apply(self, entry: LabelEntry) -> tuple[LabelUnit, str]:
        """Add a label or take back an undone one; return its unit and rater."""
        label = entry.label
        key = label.unit, label.rater
        if entry.act is LabelAction.UNDO:
            self._entries.get(key, {}).pop(entry.of or 0, None)
        elif entry.content == self._contents[label.unit]:
            self._entries.setdefault(key, {})[entry.id] = entry
        if label.source == labels.REVIEW_SOURCE:
            self.last_acts[label.rater] = label.labelled_at
        return key

    def _update(self, unit: LabelUnit, rater: str) -> None:
        """Put the last label of a rater on a unit in force, if there is one."""
        in_force = next(reversed(self._entries.get((unit, rater), {}).values()), None)
        of_unit, of_rater = self._by_unit.setdefault(unit, {}), self._by_rater.setdefault(rater, {})
        of_unit.pop(rater, None)
        of_rater.pop(unit, None)
        if in_force is not None:
            of_unit[rater] = of_rater[unit] = in_force.label
        if len(of_unit) > 1:
            self._shared[unit] = None
            self.n_shared_changes += 1
        elif unit in self._shared:
            del self._shared[unit]
            self.n_shared_changes += 1
