"""People's labels on a random sample of an audit's traces, as the report needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor.domain.labels import Label, LabelKind, LabelUnit, SampledUnit
from auditor.storage.database import Database
from auditor.storage.label_draws import load_label_frame, load_label_sample
from auditor.storage.labels import load_labels

CHANGED_REASON = (
    "traces were added, removed or changed since the random sample was drawn, so it is no random sample of them. "
    "Draw a new one with `auditor review AUDIT --sample N --redraw`; labels of unchanged traces are kept"
)


@dataclass(frozen=True)
class LabelRecords:
    """A random sample of traces and people's labels.

    Attributes:
        sample: empty unless one was drawn or imported.
        labels: in force.
        frame: the traces that could be drawn, with the stratum of each; empty if they were in no strata.
        reason: why the labels cannot be used; None if they can, or if there are none.
    """

    sample: Sequence[SampledUnit] = ()
    labels: Sequence[Label] = ()
    frame: Sequence[tuple[LabelUnit, tuple[str, ...]]] = ()
    reason: str | None = None


def load_label_records(db: Database, audit_id: int) -> LabelRecords:
    """Load the labels of traces. Of a sample that was drawn here, all traces must be as they were at the draw."""
    labels = load_labels(db, audit_id, LabelKind.TRACE)
    frame = load_label_frame(db, audit_id, LabelKind.TRACE)
    if frame is None:
        return LabelRecords(labels=labels)
    sample = load_label_sample(db, audit_id, LabelKind.TRACE)
    return LabelRecords(sample, labels, frame.units, CHANGED_REASON if frame.is_outdated else None)
