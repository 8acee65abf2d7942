"""People's labels on a random sample: of traces, or of what the judges of a probe compare.

A label says what a judge says of the same unit, seen in the same form. Labels measure the judges. They are
not decisions on conflicts, which are the cases that judges could not resolve.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple, Self

from auditor.domain.records import LongText, Owners, References, RowOwner, RowPolicy, StoredAs, stored
from auditor.domain.terms import OpenEnum, Ruling, canonical_json


class LabelChoice(NamedTuple):
    """One possible answer of a rater.

    Attributes:
        value: as stored and exported.
        label: what it is called on the screen, where its key is its number.
    """

    value: str
    label: str


RaterKind = Literal["expert", "skilled", "crowd"]
"""Who labels: experts, skilled raters, or crowd workers."""
EQUIVALENCE = "equivalence"
"""Purpose of a pair of answers to two wordings, of which people say whether they mean the same; no judge is asked."""
UNSURE = "unsure"
"""The rater cannot say; counted, and never read as one of the other values."""


class LabelKind(OpenEnum):
    """What is labelled; each kind has its own sample. A probe declares the kind of its labels."""

    TRACE = (
        "trace",
        (LabelChoice(Ruling.VALID.value, "valid"), LabelChoice(Ruling.INVALID.value, "invalid")),
    )
    """A sampled chain of thought, as a judge reviews it."""

    choices: tuple[LabelChoice, ...]

    def __new__(cls, value: str, *specs: tuple[LabelChoice, ...]) -> Self:
        """Create a member from its stored name and its choices without `unsure`."""
        member = str.__new__(cls, value)
        member._value_ = value
        # any number in the signature, which type checkers also apply to `LabelKind("trace")`
        [member.choices] = ((*choices, LabelChoice(UNSURE, UNSURE)) for choices in specs)
        return member

    @classmethod
    def of_probe(cls, value: str, choices: Sequence[LabelChoice]) -> Self:
        """Declare the kind of a probe's labels.

        Args:
            value: as stored, such as "answer_pair".
            choices: possible answers, without `unsure`.
        """
        member = cls.declare(value)
        member.choices = (*choices, LabelChoice(UNSURE, UNSURE))
        return member

    @property
    def noun(self) -> str:
        """Noun for one unit in messages, such as "trace" or "answer pair"."""
        return self.value.replace("_", " ")


class LabelUnit(NamedTuple):
    """What one label is about.

    Attributes:
        parts: its identity within the kind, as in the columns of an import, such as (model, country, topic, sample)
            of a trace. Numbers are written as text.
    """

    kind: LabelKind
    parts: Annotated[tuple[str, ...], StoredAs("unit")]


Stratum = tuple[str, ...]


def _pack_strata(strata: Sequence[Stratum]) -> str:
    values = list(dict.fromkeys(strata))
    index = {stratum: i for i, stratum in enumerate(values)}
    return canonical_json({"values": values, "index": [index[stratum] for stratum in strata]})


def _unpack_strata(text: str) -> tuple[Stratum, ...]:
    packed = json.loads(text)
    values = [tuple(stratum) for stratum in packed["values"]]
    return tuple(values[i] for i in packed["index"])


@stored("label_draw", RowPolicy.APPEND_ONLY, RowOwner.AUDIT_LOG)
@dataclass(frozen=True, slots=True)
class LabelDraw:
    """How a random sample of units to label was drawn; the last one of an audit and kind is in force.

    `stratify` is a JSON list. `strata` has the stratum of every unit that could be drawn, as JSON: `values`, and
    `index` by unit. `population` is the number of these units, `population_hash` the hash of the units and their texts.

    Attributes:
        id: of the draw; 0 if it is not stored yet.
        source: "review", or the name of the file from which the sample was imported.
        stratify: names of the attributes that make the strata; empty if the sample was imported.
        strata: stratum of every unit that could be drawn, in order of the units' parts; empty if imported.
        drawn_at: UTC, ISO 8601; set when it is stored.
    """

    id: Owners[int]
    kind: LabelKind
    source: str
    seed: int
    stratify: tuple[str, ...]
    strata: LongText[Annotated[tuple[Stratum, ...], StoredAs(None, _pack_strata, _unpack_strata)]]
    population: int
    population_hash: str
    drawn_at: str = ""


@stored(
    "sampled_unit",
    RowPolicy.APPEND_ONLY,
    RowOwner.AUDIT_LOG,
    indexes={"ix_sampled_unit_draw": ("draw",)},
    first_columns=("id", "audit_id", "draw", "position", "unit", "stratum", "n_in_stratum", "inclusion", "content"),
)
@dataclass(frozen=True, slots=True)
class DrawnUnit:
    """A unit of a drawn sample. `unit` is its identity as a JSON list, `content` the hash of its text when drawn.

    `inclusion` is set in an imported sample only. A drawn unit has the drawn share of its stratum, which may grow.

    A twin of `UnitToLabel`, which has what follows from the draw and its other units: the kind of unit and the
    probability of each.

    Attributes:
        parts, stratum, n_in_stratum: as in `UnitToLabel`.
        content: hash of the unit's text.
        inclusion: its probability in an imported sample, in (0, 1]; None if it was drawn here.
        draw, position, drawn_at: id of the `LabelDraw`, place in its order, and UTC in ISO 8601; set when it is stored.
    """

    parts: Annotated[tuple[str, ...], StoredAs("unit")]
    stratum: Stratum
    n_in_stratum: int
    content: str
    inclusion: float | None = None
    draw: Annotated[int, References("label_draw.id")] = 0
    position: int = 0
    drawn_at: str = ""


@dataclass(frozen=True, slots=True)
class UnitToLabel:
    """A unit of the random sample that people label.

    Attributes:
        stratum: the values by which the sample was stratified, such as (model, verdict of the panel).
        n_in_stratum: number of units of the audit in this stratum, labelled or not.
        inclusion: probability of the unit to be in the sample, in (0, 1].
        position: place in the order of drawing, from 0; raters label in this order.
    """

    unit: LabelUnit
    stratum: tuple[str, ...]
    n_in_stratum: int
    inclusion: float
    position: int


@dataclass(frozen=True, slots=True)
class Label:
    """A rater's label in force.

    Attributes:
        value: value of a `LabelChoice` of the kind.
        aspects: the rater's answers to the questions of `auditor.domain.decisions`, by name, where asked.
        text_hash: SHA-256 of the text that the rater read, so that a label on a text that has changed since is
            noticed; None if imported.
        source: "review", or the name of the imported file.
    """

    unit: LabelUnit
    rater: str
    value: str
    labelled_at: datetime
    aspects: Mapping[str, bool] = field(default_factory=dict)
    note: str = ""
    text_hash: str | None = None
    duration_s: float | None = None
    source: str = "review"


class LabelAction(StrEnum):
    """What a row of the log of labels records."""

    LABEL = "label"
    UNDO = "undo"


@stored(
    "label",
    RowPolicy.APPEND_ONLY,
    RowOwner.AUDIT_LOG,
    indexes={"ix_label_audit": ("audit_id", "kind", "rater")},
    first_columns=(
        "id", "audit_id", "kind", "unit", "rater", "act", "of", "value", "aspects", "note", "content", "text_hash",
        "duration_s", "source",
    ),
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class LabelEntry:
    """What a person says of a unit, or the undo of an earlier row (`of`); appended, never changed.

    `unit` is as in `sampled_unit`, `content` the hash of the unit's text, `text_hash` that of the text as it was shown.

    Attributes:
        id, audit_id: of the row, and of its audit; 0 if it is not stored yet.
        of: id of the row that an undo reverts; None for a label.
        label: of an undo, the label that was undone.
        content: hash of the unit's text when it was labelled.
    """

    id: Owners[int]
    audit_id: Owners[int]
    act: LabelAction
    of: int | None
    label: Label
    content: str
