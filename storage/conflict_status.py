"""The queue of conflicts in words: how a conflict stands, what the queue may show, and one line of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from auditor.domain import Conflict, ConflictKind, Decision, Rating, canonical_hash

CONFLICT_KEY_COLUMNS = ("country", "topic", "left", "right")


class ConflictStatus(StrEnum):
    """How a conflict stands now, people's decisions included."""

    OPEN = "open"
    DISPUTED = "disputed"
    """People disagree, and no strict majority of them says the same."""
    MAJORITY = "majority"
    """Settled by the judges."""
    PERSON = "person"
    """Settled by people."""


class QueueSort(StrEnum):
    """Orders of the queue."""

    INFORMATIVENESS = "teaches"
    GAP = "gap"
    COUNTRY = "country"
    TOPIC = "topic"
    KIND = "kind"
    STATE = "state"


class ConflictKey(NamedTuple):
    """Which conflict of an audit; its `repr` keeps the authors to itself, since it may end in a log or on a screen."""

    country: str
    topic: str
    left: str
    right: str

    @property
    def id(self) -> str:
        """Short name of the conflict, as `Conflict.id`."""
        return canonical_hash(list(self))[:10]

    def __repr__(self) -> str:
        return f"ConflictKey({self.country!r}, {self.topic!r}, ...)"


class RatedContent(NamedTuple):
    """What a decision is about: it holds while these stay the same. Some are None, which is the same as None."""

    score_left: float | None
    score_right: float | None
    answer_left: str | None
    answer_right: str | None


RATED_COLUMNS = RatedContent._fields


def rated_content(conflict_or_rating: Conflict | Rating) -> RatedContent:
    """What a conflict is about now, or what a decision was about."""
    return RatedContent(
        conflict_or_rating.score_left,
        conflict_or_rating.score_right,
        conflict_or_rating.answer_left,
        conflict_or_rating.answer_right,
    )


@dataclass(frozen=True, slots=True)
class QueueFilter:
    """What the queue shows, and in which order; empty tuples and None let everything through.

    Attributes:
        words: each must be in the country, the topic or the rater's own note.
        models: only conflicts whose authors the rater has been shown can match.
        raters: conflicts that one of these people decided.
        min_gap: least absolute difference of scores, in [0, 2].
        todo: True for what still needs the rater, False for what does not.
    """

    words: tuple[str, ...] = ()
    kinds: tuple[ConflictKind, ...] = ()
    states: tuple[ConflictStatus, ...] = ()
    countries: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    raters: tuple[str, ...] = ()
    min_gap: float | None = None
    max_gap: float | None = None
    flagged: bool | None = None
    todo: bool | None = None
    sort: QueueSort = QueueSort.INFORMATIVENESS
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One line of the queue; decision, score, flag and note are the asking rater's own.

    The two sides have scores in an audit of a survey, answers in one of a task, and both where those are numbers.

    Attributes:
        raters: people whose decision settles, the asking one included.
        decision: None when the rater has done nothing yet; `skip` when nothing that settles.
        seen: whether the rater has been shown authors, verdicts and survey.
    """

    key: ConflictKey
    kind: ConflictKind
    score_left: float | None
    score_right: float | None
    status: ConflictStatus
    n_raters: int
    decision: Decision | None
    score: float | None
    flagged: bool
    note: str
    revealed: bool
    answer_left: str | None = None
    answer_right: str | None = None

    @property
    def gap(self) -> float | None:
        """How far apart the scores are; None for answers that are none."""
        return None if self.score_left is None or self.score_right is None else abs(self.score_left - self.score_right)
