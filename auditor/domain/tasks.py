"""Items of a user's own that models are asked instead of a survey's cells, and what answers to them look like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from auditor.domain.terms import SCORE_MAX, SCORE_MIN, Cell

OPTION_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""By which options are named before models, in their order."""


class AnswerKind(StrEnum):
    """What an item is answered with."""

    SCORE = "score"
    """A number in a declared range."""
    CHOICE = "choice"
    """One of the item's options."""
    EXACT = "exact"
    """A number or a few words that are either the right ones or not."""


@dataclass(frozen=True, slots=True)
class TaskItem:
    """One question.

    Attributes:
        context: what is shown before the question; may be empty.
        options: what there is to choose from; empty for other kinds than `choice`.
        truth: the right answer, in the form in which answers are stored; None where it is not known.
    """

    id: str
    question: str
    context: str = ""
    options: tuple[str, ...] = ()
    truth: str | None = None

    @property
    def cell(self) -> Cell:
        """What stands for the item wherever an audit counts cells: its id is the topic, and no country is asked."""
        return Cell("", self.id)

    @property
    def letters(self) -> dict[str, str]:
        """Options by letter."""
        return dict(zip(OPTION_LETTERS, self.options, strict=False))


def lettered_options(item: TaskItem) -> list[str]:
    """An item's options as they are shown, a line each; none for other kinds than `choice`."""
    return [f"{letter}) {option}" for letter, option in item.letters.items()]


@dataclass(frozen=True, slots=True)
class Task:
    """Items, and how their answers are read.

    Attributes:
        source: the file, by its name.
        digest: SHA-256 of the items, so that a changed file is another task.
        range: of a score, least and most.
        numbers: whether exact answers are numbers.
        tolerance: how far a number may lie from the truth and still be right, in the units of the answers; None for a
            score, where nothing is said to be right.
        items: by id, in order.
    """

    source: str
    kind: AnswerKind
    digest: str
    range: tuple[float, float] | None = None
    numbers: bool = False
    tolerance: float | None = None
    items: Mapping[str, TaskItem] = field(default_factory=dict, repr=False)

    def item_for(self, cell: Cell) -> TaskItem:
        """The item that a cell stands for."""
        return self.items[cell.topic]

    def scale_score(self, score: float) -> float:
        """A score of the declared range as one in [-1, 1], on which thresholds and variances are."""
        low, high = self.range or (SCORE_MIN, SCORE_MAX)
        return SCORE_MIN + (SCORE_MAX - SCORE_MIN) * (score - low) / (high - low)
