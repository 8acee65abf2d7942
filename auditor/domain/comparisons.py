"""Items that judges compare in pairs, and what they say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from auditor.domain.terms import ENGLISH, Outcome


class Relation(StrEnum):
    """Which form of the question is put: "which is more …", or its negation, "which is less …"."""

    STANDARD = "standard"
    NEGATED = "negated"


class ComparisonChoice(StrEnum):
    """The answer to a comparison: the item shown first, the one shown second, or neither."""

    FIRST = "A"
    SECOND = "B"
    TIE = "TIE"


@dataclass(frozen=True, slots=True)
class Item:
    """One of the things compared; `human` is people's score of it on any scale, None where unknown."""

    id: str
    text: str
    human: float | None = None


@dataclass(frozen=True, slots=True)
class ItemSet:
    """Items that are compared with each other.

    Attributes:
        context: names the set.
        text: what judges are told of what the items have in common, such as a query; may be empty.
        criterion: what they are compared by, as `prompts/*/logic.toml` names it.
        language: that judges are asked in, by ISO 639-1 code.
    """

    context: str
    text: str
    criterion: str
    items: tuple[Item, ...]
    language: str = ENGLISH


@dataclass(frozen=True, slots=True)
class Comparison:
    """One judge's answer to one question that shows `item_a` first; only `ok` has a decision.

    Attributes:
        paraphrase: which wording of the question, from 0.
        sample: 0 is the judge's answer; from 1 on, repeats that show how far it agrees with itself.
        probability: in [0, 1], that the item shown first is named, where the answer was read off probabilities.
        people: what people answer to the question in its standard form, where comparisons were imported with it.
    """

    judge: str
    context: str
    item_a: str
    item_b: str
    relation: Relation
    outcome: Outcome
    decision: ComparisonChoice | None = None
    paraphrase: int = 0
    sample: int = 0
    probability: float | None = None
    people: ComparisonChoice | None = None
    key: str | None = None
