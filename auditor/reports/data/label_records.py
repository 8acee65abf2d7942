"""People's labels on a random sample of an audit's traces, as the report needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor.domain.labels import Label, LabelUnit, SampledUnit


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
