"""One conflict as a rater may see it: the sides in the order in which they are shown."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.domain import Decision, SurveyCell, Verdict
from auditor.storage.conflict_status import ConflictKey, QueueRow
from auditor.storage.evidence import BlindedSample


@dataclass(frozen=True, slots=True)
class ReviewSide:
    """One side as shown; author is None and verdicts empty while blind."""

    score: float | None
    samples: tuple[BlindedSample, ...]
    author: str | None = None
    verdicts: tuple[Verdict, ...] = ()
    answer: str | None = None
    """To an item of a task; None for a survey."""


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One conflict as shown to the rater.

    Attributes:
        question: the survey's wording about this cell, or the item of the task.
        decision: the rater's, of the sides as shown; None where nothing was ever said.
        revealed: whether authors, verdicts and survey are in here.
        known: what of these the rater was shown with another conflict on the same cell, as `Rating.shown`: where it is
            not empty, a decision is not blind.
        truth: the right answer to an item of a task, where it is known and revealed.
        first: the rater's first decision that settled, where it differs from the present one.
        wants_second: whether one person has decided and another is asked too.
        shown_at: monotonic time at which the item was put together.
    """

    key: ConflictKey
    row: QueueRow
    question: str
    left: ReviewSide
    right: ReviewSide
    swapped: bool
    decision: Decision | None
    revealed: bool
    disclosed_elsewhere: str
    survey: SurveyCell | None
    correct_answer: str | None
    first_decision: Decision | None
    needs_second_rater: bool
    shown_at: float
