"""One rater's labelling of an audit's random sample: what comes next, saving and undo, progress, agreement of raters.

The session never loads verdicts of judges, and units come in the order in which they were drawn.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from threading import Lock

from auditor.domain.labels import UNSURE, Label, LabelEntry, LabelKind, LabelUnit, SampledUnit
from auditor.domain.review_aspects import AspectQuestion, aspect_questions
from auditor.reports.data.sampling_units import Units, sampling_units
from auditor.review.conflict_list import (
    ACTIVE_RATER_PERIOD,
    DEFAULT_RATERS_PER_SHARED_UNIT,
    DEFAULT_SECOND_RATER_SHARE,
)
from auditor.review.label_state import LabelState
from auditor.review.progress import MAX_PACE_DECISIONS, ReviewProgress, compute_pace
from auditor.review.rater_agreement import RaterAgreement, compute_agreement_on
from auditor.review.side_order import hash_to_fraction
from auditor.review.text_comparison import escape_unstorable
from auditor.storage import labels
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.label_draws import load_draw, load_sampled_contents
from auditor.storage.label_units import list_part_names


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
        self.rater = escape_unstorable(rater)
        self.kind = kind
        self.second_rater_share = second_rater_share
        self.raters_per_shared_unit = raters_per_shared_unit
        self.sample = labels.load_label_sample(db, audit.id, kind)
        draw = load_draw(db, audit.id, kind)
        contents = load_sampled_contents(db, draw) if draw else {}
        self._state = LabelState(db, audit.id, kind, contents)
        self._lock = Lock()
        self._positions = {sampled.unit: position for position, sampled in enumerate(self.sample)}
        self._left = [i for i, sampled in enumerate(self.sample) if self._is_left(sampled.unit)]
        self._agreement: tuple[int, RaterAgreement] | None = None

    @cached_property
    def aspect_questions(self) -> dict[str, AspectQuestion]:
        """Questions that judges of this audit answer besides the verdict, by name of the aspect; empty if none."""
        if self.kind is not LabelKind.TRACE or self.audit.config is None:
            return {}
        return aspect_questions(for_task=json.loads(self.audit.survey).get("task") is not None)

    def next_unit(self, after: LabelUnit | None = None, skipped: Collection[LabelUnit] = ()) -> SampledUnit | None:
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
            StorageError: the unit no longer exists, or the label could not be saved.
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
        return labels.append_label(self.db, self.audit.id, label)

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
