"""A conflict as shown to a rater: its sides in the order of display, without what blinding hides."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.domain import Decision, SurveyCell, Verdict
from auditor.prompts.judge_address import addresses_judge
from auditor.storage.conflict_effect import ConflictEffect
from auditor.storage.conflict_status import ConflictKey, QueueRow
from auditor.storage.evidence import BlindedSample

JUDGE_ADDRESS_LABEL = "addresses its judge"
"""Mark of a sample that speaks to whoever judges it."""


def addresses_its_judge(sample: BlindedSample) -> bool:
    """Whether a sample has a text that addresses its judge."""
    return sample.text is not None and addresses_judge(sample.text, sample.language)


@dataclass(frozen=True, slots=True)
class ReviewSide:
    """One side as shown; author is None and verdicts empty while blind."""

    score: float | None
    samples: tuple[BlindedSample, ...]
    author: str | None = None
    verdicts: tuple[Verdict, ...] = ()
    answer: str | None = None
    """Answer to an item of a task; None for a survey."""


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One conflict as shown to the rater.

    Attributes:
        question: the survey's wording about this cell, or the item of the task.
        has_norms: whether a usable sample's first paragraph states the country's norms, and the rest its reasoning.
        swapped: whether the stored left side is shown on the right.
        decision: the rater's decision about the sides as shown; None if they never decided.
        revealed: whether authors, verdicts and survey are included.
        disclosed_elsewhere: which of these the rater has seen in another conflict on the same cell, as in
            `Rating.shown`; if it is not empty, a decision is not blind.
        correct_answer: the correct answer to an item of a task, if it is known and revealed.
        first_decision: the rater's first decision that resolved the conflict, if it differs from the current one.
        needs_second_rater: whether one other person has decided, and a second decision is required.
        effect: how much a decision can change the conclusion on the sides, if the list is sorted by that; else None.
        shown_at: time in seconds of `time.monotonic` at which the item was loaded.
    """

    key: ConflictKey
    row: QueueRow
    question: str
    has_norms: bool
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
    effect: ConflictEffect | None
    shown_at: float

    @property
    def possible_decisions(self) -> tuple[Decision, ...]:
        """The decisions that the rater can make; a custom score needs sides that have scores."""
        has_scores = self.left.score is not None and self.right.score is not None
        return tuple(decision for decision in Decision if has_scores or not decision.needs_score)
