"""The units of a random sample as one rater labels them: what is shown next, drafts, saving and undo.

The full screen and the plain-text interface share it, so both store the same.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from auditor.domain.labels import Label, LabelChoice, LabelKind, LabelUnit, SampledUnit
from auditor.errors import ReviewError
from auditor.review.label_item import LabelItem, LabelItemLoader
from auditor.review.labelling import LabellingSession
from auditor.review.rater_agreement import PairAgreement
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.text_safety import truncate_text

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

    def _next_unit(self, after: LabelUnit | None) -> SampledUnit | None:
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
        """Undo the rater's last act and load its unit; None if there is nothing to undo."""
        label = self.session.undo()
        return None if label is None else self.load(label.unit)

    # --- progress

    def load_own_agreement(self) -> PairAgreement | None:
        """Load the agreement with the rater who shares most units with this one.

        None below `MIN_SHARED_UNITS`: it would tell the rater what others chose on a single unit.
        """
        pairs = self.session.load_agreement().pairs
        own_pairs = [pair for pair in pairs if self.session.rater in (pair.rater_a, pair.rater_b)]
        best = max(own_pairs, key=lambda pair: pair.raw_agreement.n, default=None)
        return best if best is not None and best.raw_agreement.n >= MIN_SHARED_UNITS else None
