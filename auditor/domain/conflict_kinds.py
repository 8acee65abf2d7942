"""The kinds of conflict. Each is declared once: filters, labels, tables and the rules of votes read the declaration."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from auditor.domain.terms import OpenEnum


class ConflictSides(Enum):
    """What the two sides of a conflict are."""

    SCORES = auto()
    """The scores of two models on a cell, or on an item of a scored task."""
    ANSWERS = auto()
    """The answers of two models to an item of a task."""
    METHODS = auto()
    """The scores of one model by two methods."""
    CLAIMS = auto()
    """Two claims on a pair of items, in words; queued by a user's command, not by a run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConflictKindSpec:
    """The properties of a kind of conflict.

    Attributes:
        sides: what the two sides are.
        explanation: how the sides differ, as a clause for the report.
        unvoted_label: completes "13 conflicts …" where judges do not vote on this kind; empty where they do.
    """

    sides: ConflictSides
    explanation: str
    unvoted_label: str = ""


class ConflictKind(OpenEnum):
    """How the two sides of a conflict differ; lists of kinds are in this order, with those of probes at the end."""

    BINARY = (
        "binary",
        ConflictKindSpec(sides=ConflictSides.SCORES, explanation="the scores are on opposite sides of zero"),
    )
    OUTLIER = (
        "outlier",
        ConflictKindSpec(
            sides=ConflictSides.SCORES,
            explanation="one model differs from all others, which agree with each other",
        ),
    )
    GRADIENT = (
        "gradient",
        ConflictKindSpec(
            sides=ConflictSides.SCORES,
            explanation="the scores have the same direction but differ in strength",
        ),
    )
    METHODS = (
        "methods",
        ConflictKindSpec(
            sides=ConflictSides.METHODS,
            explanation="one model’s scores by two methods differ; only people decide these",
            unvoted_label="between two methods of one model",
        ),
    )
    ANSWERS = (
        "answers",
        ConflictKindSpec(sides=ConflictSides.ANSWERS, explanation="two models give different answers"),
    )

    spec: ConflictKindSpec

    def __new__(cls, value: str, *specs: ConflictKindSpec) -> Self:
        """Create a member from its stored name and its one spec."""
        kind = str.__new__(cls, value)
        kind._value_ = value
        [kind.spec] = specs  # any number in the signature, which type checkers also apply to `ConflictKind("binary")`
        return kind

    @classmethod
    def of_probe(cls, value: str, spec: ConflictKindSpec) -> Self:
        """Declare a kind of conflicts that a probe's commands queue."""
        kind = cls.declare(value)
        kind.spec = spec
        return kind

    @property
    def is_voted(self) -> bool:
        """Whether judges vote on conflicts of this kind; otherwise only people decide them."""
        return not self.spec.unvoted_label

    @property
    def label(self) -> str:
        """The name on screen and in the report."""
        return self.value.replace("_", " ")
