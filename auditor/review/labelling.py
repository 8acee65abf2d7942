"""One rater's labelling of a random sample: what comes next, drafts, saving and undo, progress, agreement."""

from __future__ import annotations

import json
import time
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from threading import Lock
from typing import Any

from auditor.domain.decisions import AspectQuestion, aspect_questions
from auditor.domain.labels import UNSURE, Label, LabelAction, LabelChoice, LabelEntry, LabelKind, LabelUnit, UnitToLabel
from auditor.errors import ReviewError
from auditor.reports.data.report_source import Units, sampling_units
from auditor.review.conflict_list import (
    ACTIVE_RATER_PERIOD,
    DEFAULT_RATERS_PER_SHARED_UNIT,
    DEFAULT_SECOND_RATER_SHARE,
    MAX_PACE_DECISIONS,
    ReviewProgress,
    compute_pace,
)
from auditor.review.item import choose_rater, escape_unstorable, hash_to_fraction
from auditor.review.label_sampling import LabelItem, LabelItemLoader
from auditor.review.rater_agreement import PairAgreement, RaterAgreement, compute_agreement_on
from auditor.storage import audits, labels
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.labels import list_part_names, load_draw, load_sampled_contents
from auditor.text_safety import truncate_text


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


class LabellingSession:
    """One rater's access to the sample of one kind, from several threads if need be.

    It holds the labels in memory. Each call reads the rows that were appended since the last one, by any rater.

    Args:
        second_rater_share: share of the units, in [0, 1], that several raters label; the same ones for all raters.
        raters_per_shared_unit: number of raters who label each of these.
    """

    def __init__(
        self,
        db: Database,
        audit: Audit,
        rater: str,
        kind: LabelKind = LabelKind.TRACE,
        *,
        second_rater_share: float = DEFAULT_SECOND_RATER_SHARE,
        raters_per_shared_unit: int = DEFAULT_RATERS_PER_SHARED_UNIT,
    ) -> None:
        self.db = db
        self.audit = audit
        self.rater = choose_rater(rater, labels.load_raters(db, audit.id))
        self.kind = kind
        self.second_rater_share = second_rater_share
        self.raters_per_shared_unit = raters_per_shared_unit
        self.sample = labels.load_label_sample(db, audit.id, kind)
        draw = load_draw(db, audit.id, kind)
        self._contents = load_sampled_contents(db, draw) if draw else {}
        self._state = LabelState(db, audit.id, kind, self._contents)
        self._lock = Lock()
        self._positions = {sampled.unit: position for position, sampled in enumerate(self.sample)}
        self._left = [i for i, sampled in enumerate(self.sample) if self._is_left(sampled.unit)]
        self._agreement: tuple[int, RaterAgreement] | None = None

    @cached_property
    def aspect_questions(self) -> Mapping[str, AspectQuestion]:
        """Questions that judges of this audit answer besides the verdict, by name of the aspect; empty if none."""
        if self.kind is not LabelKind.TRACE or self.audit.config is None:
            return {}
        return aspect_questions(for_task=json.loads(self.audit.survey).get("task") is not None)

    def next_unit(self, after: LabelUnit | None = None, skipped: Collection[LabelUnit] = ()) -> UnitToLabel | None:
        """Return the first unit that is left to this rater, other than `after` and `skipped`; None if there is none.

        Raters who are active at the same time begin with different units, so that they do not label the same one twice.
        """
        with self._lock:
            self._refresh()
            since = datetime.now(UTC) - ACTIVE_RATER_PERIOD
            other_raters = {rater for rater, acted_at in self._state.last_acts.items() if acted_at >= since}
            active_raters = sorted({self.rater, *other_raters})
            place, first = active_raters.index(self.rater), None
            for position in self._left:
                sampled = self.sample[position]
                if sampled.unit == after or sampled.unit in skipped:
                    continue
                if int(self._fractions[position] * len(active_raters)) == place:
                    return sampled
                first = first or sampled
            return first

    def save(
        self,
        unit: LabelUnit,
        value: str,
        aspects: Mapping[str, bool] | None = None,
        *,
        duration_s: float | None = None,
        text_hash: str | None = None,
        note: str = "",
    ) -> LabelEntry:
        """Store the rater's label of a unit; it is durable when this returns, and replaces the rater's earlier one.

        Args:
            value: value of a choice of the kind.
            aspects: answers to some of `aspect_questions`.
            duration_s: seconds from showing the unit to the label.
            text_hash: SHA-256 of the text that the rater read.

        Raises:
            ValueError: an unknown value or aspect.
            StorageError: the unit no longer exists or has another text than when the sample was drawn, which the rater
                may not have read; or the label could not be saved.
        """
        if unknown := set(aspects or {}) - set(self.aspect_questions):
            raise ValueError(f"this audit has no aspect {sorted(unknown)}")
        label = Label(
            unit=unit,
            rater=self.rater,
            value=value,
            labelled_at=datetime.now(UTC),
            aspects=aspects or {},
            note=escape_unstorable(note),
            text_hash=text_hash,
            duration_s=None if duration_s is None else round(duration_s, 3),
        )
        return labels.append_label(self.db, self.audit.id, label, self._contents.get(unit))

    def undo(self) -> Label | None:
        """Undo the rater's last label and return it, so that its unit can be shown again; None if there is none."""
        return labels.undo_label(self.db, self.audit.id, self.kind, self.rater)

    def find_label(self, unit: LabelUnit) -> Label | None:
        """Return this rater's label of a unit; None if there is none."""
        with self._lock:
            self._refresh()
            return self._state.labels_of_rater(self.rater).get(unit)

    def needs_several_raters(self, unit: LabelUnit) -> bool:
        """Whether a unit is in the pseudo-random share that several raters label."""
        return hash_to_fraction("second", self.audit.name, self.kind, *unit.parts) < self.second_rater_share

    def load_progress(self) -> ReviewProgress:
        """Count the units that are left to the rater, and estimate the time that they will take."""
        with self._lock:
            self._refresh()
            own_labels = self._state.labels_of_rater(self.rater)
            last_labels = islice(reversed(own_labels.values()), MAX_PACE_DECISIONS)
            return ReviewProgress(
                n_total=len(self.sample),
                n_left=len(self._left),
                n_by_rater=len(own_labels),
                seconds_per_decision=compute_pace([y.duration_s for y in last_labels if y.duration_s is not None]),
            )

    def load_agreement(self) -> RaterAgreement:
        """Load the agreement of raters on the units that several have labelled; its `pairs` are empty without any."""
        with self._lock:
            self._refresh()
            version = self._state.n_shared_changes
            if self._agreement is None or self._agreement[0] != version:
                self._agreement = version, compute_label_agreement(self._state.iter_shared())
            return self._agreement[1]

    # --- inside

    @cached_property
    def _fractions(self) -> list[float]:
        """Pseudo-random number in [0, 1) of each sampled unit, by which active raters divide the sample."""
        return [hash_to_fraction("rater", *sampled.unit.parts) for sampled in self.sample]

    def _refresh(self) -> None:
        """Take in what raters have appended; the caller has the lock."""
        for unit in self._state.refresh():
            position = self._positions[unit]
            place = bisect_left(self._left, position)
            was_left = self._left[place : place + 1] == [position]
            if was_left and not self._is_left(unit):
                del self._left[place]
            elif not was_left and self._is_left(unit):
                self._left.insert(place, position)

    def _is_left(self, unit: LabelUnit) -> bool:
        """Whether a unit needs a label of this rater."""
        n_needed = self.raters_per_shared_unit if self.needs_several_raters(unit) else 1
        by_rater = self._state.labels_of_unit(unit)
        return self.rater not in by_rater and len(by_rater) < n_needed


def compute_label_agreement(labelled: Iterable[Label]) -> RaterAgreement:
    """Compute the agreement of raters on labels of one kind. `unsure` counts as no label.

    Intervals are over countries and topics, the items of a task, questions, or sets of items.
    """
    values: dict[LabelUnit, dict[str, str]] = {}
    for label in labelled:
        if label.value != UNSURE:
            values.setdefault(label.unit, {})[label.rater] = label.value
    return compute_agreement_on(values, find_sampling_units)


def find_sampling_units(units: Iterable[LabelUnit]) -> Units:
    """Return the units that intervals over labels are over: see `compute_label_agreement`."""
    parts = [dict(zip(list_part_names(unit.kind), unit.parts, strict=True)) for unit in units]
    if all("topic" in part for part in parts):
        return sampling_units([part["country"] for part in parts], [part["topic"] for part in parts])
    return {"item": [part.get("question") or part["context"] for part in parts]}


MIN_SHARED_UNITS = 5
"""Number of units that two raters must share before their agreement is shown."""


@dataclass(frozen=True, slots=True)
class LabelDraft:
    """What a rater has entered besides the value: answers by name of the aspect, and a note."""

    aspects: Mapping[str, bool] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class OpenUnit:
    """A unit that a rater is shown.

    Attributes:
        position: place in the sample, from 1; 0 if a new sample without it was drawn since.
        label: the rater's label in force; None without one.
        draft: aspects and note of the label, or what was entered before labelling.
        shown_at: time in seconds of `time.monotonic` at which it was loaded.
    """

    unit: LabelUnit
    position: int
    item: LabelItem
    label: Label | None
    draft: LabelDraft
    shown_at: float

    @property
    def choice(self) -> LabelChoice | None:
        """The choice that the rater made; None without a label."""
        choices = self.unit.kind.choices
        return None if self.label is None else next(c for c in choices if c.value == self.label.value)


def open_labelling_session(db: Database, audit: str, rater: str, kind: LabelKind, **options: Any) -> LabellingSession:
    """Open a rater's session in an audit that has a sample.

    Args:
        options: see `LabellingSession`.

    Raises:
        StorageError: there is no such audit.
        ReviewError: the audit has no label sample of this kind.
    """
    session = LabellingSession(db, audits.get_audit(db, audit), rater, kind, **options)
    if not session.sample:
        option = "" if kind is LabelKind.TRACE else f" --kind {kind}"
        raise ReviewError(
            f"audit '{truncate_text(audit)}' has no label sample of {kind.noun}s to label.",
            f"Draw one: auditor review {truncate_text(audit)} --sample 200{option}",
        )
    return session


class LabelQueue:
    """One rater's way through a sample.

    Attributes:
        missing: why a unit cannot be shown, for units that were passed over so far; they stay in the sample.
    """

    def __init__(self, session: LabellingSession) -> None:
        self.session = session
        self.missing: dict[LabelUnit, str] = {}
        self._skipped: dict[LabelUnit, None] = {}
        self._drafts: dict[LabelUnit, LabelDraft] = {}
        self._loader = LabelItemLoader(session.db, session.audit, session.rater)
        self._positions = {sampled.unit: place for place, sampled in enumerate(session.sample, start=1)}

    @property
    def n_units(self) -> int:
        """Size of the sample."""
        return len(self._positions)

    # --- what is shown

    def load(self, unit: LabelUnit) -> OpenUnit:
        """Load a unit of the sample with the rater's label and draft."""
        label = self.session.find_label(unit)
        stored_draft = LabelDraft() if label is None else LabelDraft(label.aspects, label.note)
        draft = self._drafts.get(unit, stored_draft)
        item = self._loader.load(unit)
        asked = {name: text for name, text in item.aspects.items() if name in self.session.aspect_questions}
        position = self._positions.get(unit, 0)
        return OpenUnit(unit, position, replace(item, aspects=asked), label, draft, time.monotonic())

    def load_next(self, after: LabelUnit | None = None) -> OpenUnit | None:
        """Load the next unit without a label of this rater; None if none is left.

        Units that cannot be shown are passed over and noted in `missing`. Skipped units come last.
        """
        return self._load_unlabelled(after, is_last_round=False) or self._load_unlabelled(after, is_last_round=True)

    def _load_unlabelled(self, after: LabelUnit | None, *, is_last_round: bool) -> OpenUnit | None:
        """Load the next unit that is left and was not skipped; in the last round, skipped units come again."""
        if is_last_round:
            self._skipped.clear()
        while (sampled := self._next_unit(after)) is not None:
            opened = self.load(sampled.unit)
            if not opened.item.missing:
                return opened
            self.missing[sampled.unit] = opened.item.missing
        return None

    def _next_unit(self, after: LabelUnit | None) -> UnitToLabel | None:
        return self.session.next_unit(after, skipped={*self.missing, *self._skipped})

    def load_neighbour(self, opened: OpenUnit, offset: int) -> OpenUnit | None:
        """Load the unit `offset` places further in the sample; None at its ends."""
        place = opened.position - 1 + offset
        return self.load(self.session.sample[place].unit) if opened.position and 0 <= place < self.n_units else None

    def skip(self, unit: LabelUnit) -> None:
        """Go past a unit without a label; it comes again when no other unit is left."""
        self._skipped[unit] = None

    # --- saving

    def save_value(self, opened: OpenUnit, value: str) -> OpenUnit:
        """Store a label with the draft's aspects and note; it is durable when this returns.

        Raises:
            StorageError: the label could not be saved; the draft is kept.
        """
        return self._save(opened, value, time.monotonic() - opened.shown_at)

    def save_draft(self, opened: OpenUnit, draft: LabelDraft) -> OpenUnit:
        """Keep aspects and note until the unit is labelled, or store them with its label if it has one."""
        changed = replace(opened, draft=draft)
        if opened.label is None:
            self._drafts[opened.unit] = draft
            return changed
        return self._save(changed, opened.label.value, opened.label.duration_s)

    def list_unsaved_drafts(self) -> dict[LabelUnit, LabelDraft]:
        """The aspects and notes that are not stored, since their units have no label, by unit."""
        return {unit: draft for unit, draft in list(self._drafts.items()) if draft != LabelDraft()}

    def _save(self, opened: OpenUnit, value: str, duration_s: float | None) -> OpenUnit:
        self.session.save(
            opened.unit,
            value,
            opened.draft.aspects,
            duration_s=duration_s,
            text_hash=opened.item.text_hash,
            note=opened.draft.note,
        )
        self._drafts.pop(opened.unit, None)
        self._skipped.pop(opened.unit, None)
        return replace(opened, label=self.session.find_label(opened.unit))

    def undo(self) -> OpenUnit | None:
        """Undo the rater's last act and load its unit; None if there is nothing to undo.

        A unit that has no label any more keeps the aspects and the note that were undone, as a draft.
        """
        label = self.session.undo()
        if label is None:
            return None
        if self.session.find_label(label.unit) is None:
            self._drafts[label.unit] = LabelDraft(label.aspects, label.note)
        return self.load(label.unit)

    # --- progress

    def load_own_agreement(self) -> PairAgreement | None:
        """Load the agreement with the rater who shares most units with this one.

        None below `MIN_SHARED_UNITS`: it would tell the rater what others chose on a single unit.
        """
        pairs = self.session.load_agreement().pairs
        own_pairs = [pair for pair in pairs if self.session.rater in (pair.rater_a, pair.rater_b)]
        best = max(own_pairs, key=lambda pair: pair.raw_agreement.n, default=None)
        return best if best is not None and best.raw_agreement.n >= MIN_SHARED_UNITS else None
