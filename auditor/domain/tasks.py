"""Tasks: a user's own items, asked instead of a survey's cells, and the kinds of answers they take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from auditor.domain.records import Key, LongText, RowPolicy, stored
from auditor.domain.terms import SCORE_MAX, SCORE_MIN, Cell

OPTION_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Labels of the options shown to models, in order."""


class AnswerKind(StrEnum):
    """What an item is answered with."""

    SCORE = "score"
    """A number in a declared range."""
    CHOICE = "choice"
    """One of the item's options."""
    EXACT = "exact"
    """A number or a few words that are compared with the right answer."""


@stored("task_item", RowPolicy.MUTABLE, position=2)
@dataclass(frozen=True, slots=True)
class TaskItem:
    """One question of a task.

    Attributes:
        context: text shown before the question; may be empty.
        options: the options to choose from; empty for kinds other than `choice`.
        truth: the right answer in canonical form; None if unknown.
    """

    id: Key[str]
    question: LongText[str]
    context: LongText[str] = ""
    options: LongText[tuple[str, ...]] = ()
    truth: LongText[str | None] = None

    @property
    def cell(self) -> Cell:
        """Cell that represents the item in an audit: its id is the topic, the country is empty."""
        return Cell("", self.id)

    @property
    def letters(self) -> dict[str, str]:
        """Options by letter."""
        return dict(zip(OPTION_LETTERS, self.options, strict=False))


def lettered_options(item: TaskItem) -> list[str]:
    """An item's options with their letters, one per line; empty for kinds other than `choice`."""
    return [f"{letter}) {option}" for letter, option in item.letters.items()]


@dataclass(frozen=True, slots=True)
class Task:
    """The items of a task, and how their answers are read.

    Attributes:
        source: name of the file.
        digest: SHA-256 of the items, so that a changed file is a different task.
        range: minimum and maximum of a score; None for other kinds.
        numbers: whether exact answers are numbers.
        tolerance: largest distance of a correct number from the truth, in the units of the answers; None compares for
            equality, and for scores means that none is counted as correct or wrong.
        items: items by id, in order.
        people: names of people who answered the items too, among the authors of recorded answers.
    """

    source: str
    kind: AnswerKind
    digest: str
    range: tuple[float, float] | None = None
    numbers: bool = False
    tolerance: float | None = None
    items: Mapping[str, TaskItem] = field(default_factory=dict, repr=False)
    people: tuple[str, ...] = ()

    def item_for(self, cell: Cell) -> TaskItem:
        """The item that a cell represents."""
        return self.items[cell.topic]

    def scale_score(self, score: float) -> float:
        """Rescale a score from the declared range to [-1, 1], the scale of thresholds and variances."""
        low, high = self.range or (SCORE_MIN, SCORE_MAX)
        return SCORE_MIN + (SCORE_MAX - SCORE_MIN) * (score - low) / (high - low)
