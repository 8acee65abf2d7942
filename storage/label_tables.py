"""Row classes of people's labels on a random sample: how it was drawn, its units, and the labels."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Text
from sqlmodel import Field

from auditor.storage.row_classes import AppendOnlyRow


class LabelDrawRow(AppendOnlyRow, table=True):
    """How a random sample of units to label was drawn; the last one of an audit and kind is in force.

    `stratify` is a JSON list. `strata` has the stratum of every unit that could be drawn, as JSON: `values`, and
    `index` by unit. `population` is the number of these units, `population_hash` the hash of the units and their texts.
    """

    __tablename__ = "label_draw"
    id: int | None = Field(default=None, primary_key=True)
    audit_id: int = Field(sa_column=Column(ForeignKey("audit.id"), nullable=False))
    kind: str
    source: str
    seed: int
    stratify: str
    strata: str = Field(sa_column=Column(Text, nullable=False))
    population: int
    population_hash: str
    drawn_at: str


class SampledUnitRow(AppendOnlyRow, table=True):
    """A unit of a drawn sample. `unit` is its identity as a JSON list, `content` the hash of its text when drawn.

    `inclusion` is set in an imported sample only. A drawn unit has the drawn share of its stratum, which may grow.
    """

    __tablename__ = "sampled_unit"
    __table_args__ = (Index("ix_sampled_unit_draw", "draw"),)
    id: int | None = Field(default=None, primary_key=True)
    audit_id: int = Field(sa_column=Column(ForeignKey("audit.id"), nullable=False))
    draw: int = Field(sa_column=Column(ForeignKey("label_draw.id"), nullable=False))
    position: int
    unit: str
    stratum: str
    n_in_stratum: int
    inclusion: float | None = None
    content: str
    drawn_at: str


class LabelRow(AppendOnlyRow, table=True):
    """What a person says of a unit, or the undo of an earlier row (`of`); appended, never changed.

    `unit` is as in `sampled_unit`, `content` the hash of the unit's text, `text_hash` that of the text as it was shown.
    """

    __tablename__ = "label"
    __table_args__ = (Index("ix_label_audit", "audit_id", "kind", "rater"),)
    id: int | None = Field(default=None, primary_key=True)
    audit_id: int = Field(sa_column=Column(ForeignKey("audit.id"), nullable=False))
    kind: str
    unit: str
    rater: str
    act: str
    of: int | None = None
    value: str
    aspects: str
    note: str = ""
    content: str
    text_hash: str | None = None
    duration_s: float | None = None
    source: str
    labelled_at: str
