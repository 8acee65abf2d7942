"""Items that judges compare in pairs, and their answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from auditor.domain.records import CallKey, Key, LongText, NotStored, stored
from auditor.domain.terms import ENGLISH, ComparisonChoice, Outcome, Purpose

LOGIC_PURPOSE = Purpose.declare("logic")

CELL_SEPARATOR = " · "
"""Between country and topic in the context of a cell whose direct answers are compared."""
TRACE_ITEM_SEPARATOR = " #"
"""Between the model and the sample's number in the id of an item that is a direct answer."""


class Relation(StrEnum):
    """Form of the question: "which is more …" (standard), or "which is less …" (negated)."""

    STANDARD = "standard"
    NEGATED = "negated"


@dataclass(frozen=True, slots=True)
class Item:
    """An item to compare; `human` is its score given by people, on any scale, None if unknown."""

    id: str
    text: str
    human: float | None = None


@stored("comparison_item", position=3)
@dataclass(frozen=True, slots=True)
class ComparisonItem:
    """An `Item` as stored, with the context of its set; `item` is its id."""

    context: Key[str]
    item: Key[str]
    text: LongText[str]
    human: float | None


@stored("comparison_set", position=2)
@dataclass(frozen=True, slots=True)
class ItemSet:
    """Items that are compared with each other.

    Attributes:
        context: name of the set.
        text: description of what the items have in common, such as a query, shown to judges; may be empty.
        criterion: name of the comparison criterion in `prompts/*/logic.toml`.
        language: ISO 639-1 code of the language of the questions.
    """

    context: Key[str]
    text: LongText[str]
    criterion: str
    items: NotStored[tuple[Item, ...]] = ()
    language: str = ENGLISH


@stored("comparison")
@dataclass(frozen=True, slots=True)
class Comparison:
    """One judge's answer to one question that shows `item_a` first; only the outcome `ok` has a decision.

    Attributes:
        paraphrase: index of the wording of the question, from 0.
        sample: 0 for the judge's answer; repeats, from 1, measure how far the judge agrees with itself.
        probability: probability in [0, 1] that the judge names the item shown first; only if measured.
        people: people's answer to the question in its standard form, from a label on the pair.
        position: its row in the imported file, from 0; None if the audit asked for it.
        repeat_key, first_outcome: as in `Trace`.
    """

    judge: Key[str]
    context: Key[str]
    item_a: Key[str]
    item_b: Key[str]
    relation: Key[Relation]
    paraphrase: Key[int] = field(default=0, kw_only=True)
    sample: Key[int] = field(default=0, kw_only=True)
    outcome: Outcome
    decision: ComparisonChoice | None = None
    probability: float | None = None
    people: ComparisonChoice | None = None
    key: Annotated[str | None, CallKey(LOGIC_PURPOSE, "judge")] = None
    position: int | None = None
    repeat_key: Annotated[str | None, CallKey(LOGIC_PURPOSE, "judge")] = None
    first_outcome: Outcome | None = None
