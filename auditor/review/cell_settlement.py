"""Settle the other conflicts of a cell with the custom score that a rater gives for one of them.

The custom score says what is right for the cell, so it answers the cell's other conflicts too: a side whose score is
within the conflict threshold of it, and not on the other side of zero, is right; where that holds for no side or for
both, the custom score itself is the decision. Choosing a side settles only its own conflict: it says which of two
answers is better, and the other conflicts have an answer that the rater has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from auditor.config import load_stored_config
from auditor.domain import ConflictSides, Decision, Method, RatingAction
from auditor.review.side_order import mirror_decision
from auditor.storage import results
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictStatus, QueueRow, RatedContent
from auditor.storage.database import Database
from auditor.storage.rating_log import FULL_DISCLOSURE, FollowingChange, RatingChange


@dataclass(frozen=True, slots=True)
class CellDecision:
    """The decision that a custom score implies for another conflict of the cell.

    Attributes:
        row: the conflict with its sides as shown to the rater.
        decision: LEFT or RIGHT about the sides as shown, or SCORE.
        score: the custom score if that is the decision; else None.
        swapped: whether the stored left side is shown on the right.
    """

    row: QueueRow
    decision: Decision
    score: float | None
    swapped: bool

    def to_change(self) -> FollowingChange:
        """Return the change of the rating to store, about the sides as stored."""
        row = self.row
        content = RatedContent(row.score_left, row.score_right, row.answer_left, row.answer_right)
        if self.swapped:
            content = RatedContent(row.score_right, row.score_left, row.answer_right, row.answer_left)
        change = RatingChange(
            RatingAction.FOLLOW,
            decision=mirror_decision(self.decision, self.swapped),
            score=self.score,
            shown=FULL_DISCLOSURE if row.revealed else "",
            swapped=self.swapped,
            withheld=True,
        )
        return FollowingChange(row.key, content, change)


def load_threshold(db: Database, audit: Audit) -> float:
    """Load the smallest distance of two scores that is a conflict in an audit, in [0, 2]; 0 if it is not known.

    The threshold `auto` is computed from the scores, as for the detection of conflicts.
    """
    config = load_stored_config(audit.config)
    if config is None:
        return 0.0
    if config.conflicts.threshold != "auto":
        return config.conflicts.threshold
    import numpy as np  # 0.1 s

    from auditor.agents.conflict_resolution import effective_threshold  # loads slow libraries

    scores = [score for score in results.load_scores(db, audit.id) if score.method == Method.DIRECT]
    row_by_cell = {cell: row for row, cell in enumerate(dict.fromkeys(score.cell for score in scores))}
    column_by_model = {model: column for column, model in enumerate(dict.fromkeys(score.model for score in scores))}
    table = np.full((len(row_by_cell), len(column_by_model)), np.nan)
    for score in scores:
        table[row_by_cell[score.cell], column_by_model[score.model]] = np.nan if score.score is None else score.score
    return effective_threshold("auto", table)


def can_follow(row: QueueRow) -> bool:
    """Whether a custom score for the cell can settle a conflict: it has two scores, and is open or contested."""
    is_unsettled = row.status in (ConflictStatus.OPEN, ConflictStatus.DISPUTED)
    has_decided = row.decision is not None and row.decision.resolves_conflict
    return is_unsettled and not has_decided and row.gap is not None and row.kind.spec.sides is not ConflictSides.CLAIMS


def propose_decision(row: QueueRow, score: float, threshold: float, *, swapped: bool) -> CellDecision:
    """Return the decision on a conflict that follows from a custom score for its cell.

    A side with the opposite sign is never chosen: the rater called acceptable what that side calls unacceptable, or the
    reverse, however close the two scores are.

    Args:
        row: the conflict with its sides as shown; both have scores.
        score: in [-1, 1].
        threshold: smallest distance at which two scores are in conflict, in [0, 2]; a side closer than that is right.
    """
    from auditor.metrics.conflict import ZERO_TOLERANCE, have_opposite_signs  # loads numpy (0.1 s)

    near = [
        decision
        for decision, side_score in ((Decision.LEFT, row.score_left), (Decision.RIGHT, row.score_right))
        if side_score is not None
        and abs(side_score - score) < threshold - ZERO_TOLERANCE
        and not have_opposite_signs(side_score, score)
    ]
    if len(near) == 1:
        return CellDecision(row, near[0], None, swapped)
    return CellDecision(row, Decision.SCORE, score, swapped)
