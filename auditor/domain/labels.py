"""People's labels on a random sample: of traces, of pairs of answers, or of comparisons of items.

A label says what a judge says of the same unit, seen in the same form. Labels measure the judges. They are
not decisions on conflicts, which are the cases that judges could not resolve.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple, Self

from auditor.domain.terms import ComparisonChoice, Ruling


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
UNSURE = "unsure"
"""The rater cannot say; counted, and never read as one of the other values."""


class LabelKind(StrEnum):
    """What is labelled; each kind has its own sample."""

    TRACE = (
        "trace",
        (LabelChoice(Ruling.VALID.value, "valid"), LabelChoice(Ruling.INVALID.value, "invalid")),
    )
    """A sampled chain of thought, as a judge reviews it."""
    ANSWER_PAIR = ("answer_pair", (LabelChoice("yes", "yes"), LabelChoice("no", "no")))
    """Two answers of a model to one question, as a judge of consistency compares them."""
    COMPARISON = (
        "comparison",
        (
            LabelChoice(ComparisonChoice.FIRST.value, "A"),
            LabelChoice(ComparisonChoice.SECOND.value, "B"),
            LabelChoice(ComparisonChoice.TIE.value, "neither"),
        ),
    )
    """Two items of a set, as a judge of the probe `logic` compares them."""

    choices: tuple[LabelChoice, ...]

    def __new__(cls, value: str, *specs: tuple[LabelChoice, ...]) -> Self:
        """Create a member from its stored name and its choices without `unsure`."""
        member = str.__new__(cls, value)
        member._value_ = value
        # any number in the signature, which type checkers also apply to `LabelKind("trace")`
        [member.choices] = ((*choices, LabelChoice(UNSURE, UNSURE)) for choices in specs)
        return member

    @property
    def noun(self) -> str:
        """Noun for one unit in messages, such as "trace" or "answer pair"."""
        return self.value.replace("_", " ")


class LabelUnit(NamedTuple):
    """What one label is about.

    Attributes:
        parts: its identity within the kind, as in the columns of an import: (model, country, topic, sample) of a
            trace; (purpose, model, question, left, right) of a pair of answers; (context, item_a, item_b) of a
            comparison. Numbers are written as text.
    """

    kind: LabelKind
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SampledUnit:
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
        aspects: the rater's answers to the questions of `auditor.domain.review_aspects`, by name, where asked.
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
