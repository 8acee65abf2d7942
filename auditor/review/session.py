"""Review session of one rater in one audit: conflicts, decisions on them and on their cells, and their completion."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from auditor.config import load_stored_config
from auditor.domain import ENGLISH, ConflictSides, Decision, Method, RatingAction, lettered_options
from auditor.errors import StorageError
from auditor.lazy_imports import import_when_used
from auditor.review.conflict_list import DEFAULT_SECOND_RATER_SHARE, ConflictList
from auditor.review.item import AuthorMask, ReviewItem, ReviewSide, escape_unstorable, mirror_decision
from auditor.storage import audits, evidence, rating_log, results
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import (
    UNSETTLED,
    ConflictKey,
    QueueFilter,
    QueueRow,
    QueueSort,
    RatedContent,
)
from auditor.storage.database import Database
from auditor.storage.rating_log import (
    CONFLICT_GONE,
    CONFLICT_GONE_FIX,
    FULL_DISCLOSURE,
    FollowingChange,
    RatingChange,
    RatingEntry,
)

if not TYPE_CHECKING:
    conflict_resolution = import_when_used("auditor.agents.conflict_resolution")
    conflict = import_when_used("auditor.metrics.people.conflict")
    np = import_when_used("numpy")
else:
    import numpy as np

    from auditor.agents import conflict_resolution
    from auditor.metrics.people import conflict


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
        change = RatingChange(
            RatingAction.FOLLOW,
            decision=mirror_decision(self.decision, self.swapped),
            score=self.score,
            shown=FULL_DISCLOSURE if row.revealed else "",
            swapped=self.swapped,
            withheld=True,
        )
        return FollowingChange(row.key, stored_content(row, self.swapped), change)


def stored_content(row: QueueRow, swapped: bool) -> RatedContent:
    """Return the scores and answers of a conflict's sides as stored, from its row with the sides as shown."""
    if swapped:
        return RatedContent(row.score_right, row.score_left, row.answer_right, row.answer_left)
    return RatedContent(row.score_left, row.score_right, row.answer_left, row.answer_right)


def load_threshold(db: Database, audit: Audit) -> float:
    """Load the smallest distance of two scores that is a conflict in an audit, in [0, 2]; 0 if it is not known.

    The threshold `auto` is computed from the scores, as for the detection of conflicts.
    """
    config = load_stored_config(audit.config)
    if config is None:
        return 0.0
    if config.conflicts.threshold != "auto":
        return config.conflicts.threshold

    scores = [score for score in results.load_scores(db, audit.id) if score.method == Method.DIRECT]
    row_by_cell = {cell: row for row, cell in enumerate(dict.fromkeys(score.cell for score in scores))}
    column_by_model = {model: column for column, model in enumerate(dict.fromkeys(score.model for score in scores))}
    table = np.full((len(row_by_cell), len(column_by_model)), np.nan)
    for score in scores:
        table[row_by_cell[score.cell], column_by_model[score.model]] = np.nan if score.score is None else score.score
    return conflict_resolution.effective_threshold("auto", table)


def can_follow(row: QueueRow) -> bool:
    """Whether a custom score for the cell can settle a conflict: it has two scores, and is open or contested."""
    is_unsettled = row.status in UNSETTLED
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
    near = [
        decision
        for decision, side_score in ((Decision.LEFT, row.score_left), (Decision.RIGHT, row.score_right))
        if side_score is not None
        and abs(side_score - score) < threshold - conflict.ZERO_TOLERANCE
        and not conflict.have_opposite_signs(side_score, score)
    ]
    if len(near) == 1:
        return CellDecision(row, near[0], None, swapped)
    return CellDecision(row, Decision.SCORE, score, swapped)


PAIR_QUESTION = "Two items of a set were compared. Which side names the right one?"
"""Question for conflicts on pairs of items, for which the survey has no wording."""


class ReviewSession(ConflictList):
    """One rater's access to the conflicts of one audit.

    `n_changes` counts the actions that may have resolved or reopened a conflict.

    Args:
        blind: whether authors, verdicts and survey are hidden until the rater has decided.
        second_rater_share: share of the conflicts, in [0, 1], that two raters decide; the same ones for all raters.
    """

    def __init__(
        self,
        db: Database,
        audit: Audit,
        rater: str,
        *,
        blind: bool = True,
        second_rater_share: float = DEFAULT_SECOND_RATER_SHARE,
    ) -> None:
        super().__init__(db, audit, rater, blind=blind, second_rater_share=second_rater_share)
        self.n_changes = 0
        self._survey = json.loads(audit.survey)
        self.is_task_audit = self._survey.get("task") is not None
        config = load_stored_config(audit.config)
        direct = config.probes.direct if config and not self.is_task_audit else None
        self._has_norms = direct is not None and direct.mode == "structured"
        self._author_mask = AuthorMask(audit)
        self._threshold: float | None = None

    # --- one conflict

    def load_item(self, key: ConflictKey, *, keep_hidden: bool = False) -> ReviewItem:
        """Load a conflict as the rater may see it now.

        Args:
            keep_hidden: reveal nothing, and log no view, even in a session that is not blind.

        Raises:
            StorageError: the conflict no longer exists, since the audit was run again.
        """
        rows = self._queue.rows([key])
        if not rows:
            raise StorageError(CONFLICT_GONE, CONFLICT_GONE_FIX)
        row, swapped = rows[0], self._order.is_swapped(key)
        has_claims = row.kind.spec.sides is ConflictSides.CLAIMS
        revealed = row.revealed and not keep_hidden
        if revealed and not self.blind:
            self._log_unblinded_view(row, swapped)
        # Samples of the stored left side, then of the stored right side.
        samples = evidence.load_sides(self.db, self.audit.id, key)
        left = ReviewSide(row.score_left, samples[0], answer=row.answer_left)
        right = ReviewSide(row.score_right, samples[1], answer=row.answer_right)
        survey_cell = correct_answer = None
        if revealed:
            hidden_evidence = evidence.load_hidden_evidence(self.db, self.audit.id, key)
            left = replace(left, author=hidden_evidence.left, verdicts=hidden_evidence.verdicts_left)
            right = replace(right, author=hidden_evidence.right, verdicts=hidden_evidence.verdicts_right)
            survey_cell, correct_answer = hidden_evidence.survey, hidden_evidence.truth
        else:
            left, right = self._author_mask.blind_side(left), self._author_mask.blind_side(right)
        return ReviewItem(
            key=key,
            row=self._order.show_row(row),
            question=PAIR_QUESTION if has_claims else self._format_question(key),
            has_norms=self._has_norms and not has_claims,
            left=right if swapped else left,
            right=left if swapped else right,
            swapped=swapped,
            decision=mirror_decision(row.decision, swapped),
            revealed=revealed,
            disclosed_elsewhere=""
            if revealed
            else rating_log.find_disclosed_elsewhere(self.db, self.audit.id, key, self.rater),
            survey=survey_cell,
            correct_answer=correct_answer,
            first_decision=self._find_first_decision(key, row, swapped),
            needs_second_rater=self._needs_second_opinion(row),
            effect=self._queue.load_effect(key) if self.queue_filter.sort is QueueSort.EFFECT else None,
            shown_at=time.monotonic(),
        )

    def preview_cell(self, item: ReviewItem, score: float) -> list[CellDecision]:
        """Return the decisions that a custom score for an item's cell implies for the cell's other conflicts.

        They contain nothing that is hidden from the rater. Only conflicts that are open or contested are included.

        Args:
            score: in [-1, 1].
        """
        if self._threshold is None:
            self._threshold = load_threshold(self.db, self.audit)
        # The filter matches parts of names, in any case; the key is compared exactly below.
        in_cell = QueueFilter(countries=(item.key.country,), topics=(item.key.topic,), todo=True)
        keys = [key for key in self.conflict_keys(in_cell) if key[:2] == item.key[:2] and key != item.key]
        return [
            propose_decision(row, score, self._threshold, swapped=self._order.is_swapped(row.key))
            for row in self.load_queue_rows(keys)
            if can_follow(row)
        ]

    def decide(
        self,
        item: ReviewItem,
        decision: Decision,
        *,
        score: float | None = None,
        note: str | None = None,
        following: Sequence[CellDecision] = (),
        withhold: bool = False,
    ) -> RatingEntry:
        """Store a decision about the sides as shown; it is durable when this returns.

        Args:
            score: custom score in [-1, 1], only for a decision that needs one.
            following: decisions on other conflicts of the cell, from `preview_cell`; saved with this one or not at all.
            withhold: whether the caller does not show the rater what the decision reveals; then it stays hidden.

        Raises:
            ValueError: a score is missing, out of range, or given with another decision; or the sides have no scores;
                or a decision without a score has other conflicts follow it.
            StorageError: the conflict is gone or has other answers than those shown, or the row could not be saved.
        """
        if following and not decision.needs_score:
            raise ValueError(f"only a custom score settles other conflicts of a cell, but got {decision}")
        if decision.needs_score != (score is not None) or not -1 <= (score or 0.0) <= 1:
            raise ValueError(f"a score in [-1, 1] goes only with a decision that needs one, but got {decision} {score}")
        if decision not in item.possible_decisions:
            raise ValueError("answers that are no scores are not settled by one")
        stored_decision = mirror_decision(decision, item.swapped)
        entry = self._append_to_log(
            item,
            RatingChange(
                RatingAction.DECIDE,
                decision=stored_decision,
                score=score,
                note=note,
                withheld=True if withhold and not item.revealed else None,
            ),
            following=following,
        )
        self._decided_keys |= {item.key, *(other.row.key for other in following)}
        if decision.resolves_conflict:
            self.n_changes += 1
        return entry

    def update_row(self, item: ReviewItem, row: QueueRow) -> ReviewItem:
        """Return an item with the current row of its conflict, after other raters have changed it."""
        return replace(item, row=row, needs_second_rater=self._needs_second_opinion(row))

    def save_note(self, item: ReviewItem, text: str) -> RatingEntry:
        """Store the rater's note on a conflict; it replaces the previous note."""
        return self._append_to_log(item, RatingChange(RatingAction.NOTE, note=text))

    def toggle_flag(self, item: ReviewItem) -> RatingEntry:
        """Flag a conflict for attention, or remove the flag."""
        return self._append_to_log(item, RatingChange(RatingAction.FLAG, flagged=not item.row.flagged))

    def reveal(self, item: ReviewItem) -> RatingEntry:
        """Log that the rater asked to see the hidden evidence; a decision that they make afterwards is not blind."""
        return self._append_to_log(item, RatingChange(RatingAction.REVEAL), disclosure=FULL_DISCLOSURE)

    def undo(self) -> RatingEntry | None:
        """Undo the rater's last decision, note or flag; None if there is nothing to undo."""
        return self._apply_undo(rating_log.undo(self.db, self.audit.id, self.rater))

    def redo(self) -> RatingEntry | None:
        """Redo the rater's last undone action; None if there is nothing to redo."""
        return self._apply_undo(rating_log.redo(self.db, self.audit.id, self.rater))

    def load_history(self, key: ConflictKey) -> list[RatingEntry]:
        """Load all of the rater's actions on a conflict, oldest first, with decisions about the sides as shown."""
        entries = rating_log.load_entries(self.db, self.audit.id, rater=self.rater, key=key)
        return [self._order.show_entry(entry) for entry in entries]

    # --- inside

    def _apply_undo(self, entry: RatingEntry | None) -> RatingEntry | None:
        """Drop the prefetched conflicts and count the change after an undo or redo; return its entry as shown."""
        self._next_keys = []
        self.n_changes += entry is not None
        return entry and self._order.show_entry(entry)

    def _append_to_log(
        self,
        item: ReviewItem,
        rating_change: RatingChange,
        disclosure: str | None = None,
        following: Sequence[CellDecision] = (),
    ) -> RatingEntry:
        """Store a change of the rater's rating, with what they had seen and the seconds since the conflict was shown.

        Args:
            disclosure: the evidence shown, as in `Rating.shown`; by default all if the item is revealed, else none.
        """
        rating_change = replace(
            rating_change,
            note=rating_change.note and escape_unstorable(rating_change.note),
            shown=disclosure if disclosure is not None else FULL_DISCLOSURE if item.revealed else "",
            swapped=item.swapped,
            duration_s=round(time.monotonic() - item.shown_at, 3),
        )
        changes = [other.to_change() for other in following]
        decides = rating_change.decision is not None and rating_change.decision.resolves_conflict
        content = stored_content(item.row, item.swapped) if decides else None
        return rating_log.append_rating(
            self.db, self.audit.id, item.key, self.rater, rating_change, changes, content=content
        )

    def _log_unblinded_view(self, row: QueueRow, swapped: bool) -> None:
        """Log a reveal, once, if a session that is not blind shows a conflict, so that a later blind session knows."""
        entries = rating_log.load_entries(self.db, self.audit.id, rater=self.rater, key=row.key)
        if not any(
            entry.rating.act is RatingAction.REVEAL
            or (entry.rating.decision.resolves_conflict and not entry.rating.withheld)
            for entry in entries
        ):
            reveal_change = RatingChange(RatingAction.REVEAL, shown=FULL_DISCLOSURE, swapped=swapped)
            rating_log.append_rating(self.db, self.audit.id, row.key, self.rater, reveal_change)

    def _find_first_decision(self, key: ConflictKey, row: QueueRow, swapped: bool) -> Decision | None:
        """The rater's first decision about the sides as shown, if it differs from the current one; otherwise None."""
        if row.decision is None or not row.decision.resolves_conflict:
            return None
        entries = rating_log.load_entries(self.db, self.audit.id, rater=self.rater, key=key)
        first_decision = next(
            (entry.rating.decision for entry in entries if entry.rating.decision.resolves_conflict), None
        )
        return mirror_decision(first_decision, swapped) if first_decision is not row.decision else None

    def preload_masking(self) -> None:
        """Load the word lists for masking, so that the first conflict opens as fast as later ones."""
        self._author_mask.preload()

    def _format_question(self, key: ConflictKey) -> str:
        """Return a task item's text with its options, or the survey's wording with topic and country filled in."""
        if self.is_task_audit and (item := audits.load_item(self.db, self.audit.id, key.topic)) is not None:
            return "\n".join(part for part in (item.context, item.question, *lettered_options(item)) if part)
        wording: str = (self._survey.get("topic_questions", {}).get(key.topic) or [self._survey["wording"]])[0]
        topics = self._survey.get("phrasings", {}).get(ENGLISH, {}).get("topics", {})
        return wording.replace("{topic}", topics.get(key.topic, key.topic)).replace("{country}", key.country)


OnDecided = Callable[[str], None]
"""Called with the name of an audit whose conflicts were decided; it may be slow, and may raise AuditorError."""


class CompletionNotifier:
    """Calls `on_decided` when no conflict of an audit is open, and when the reviewer leaves; never twice per change."""

    def __init__(self, on_decided: OnDecided | None) -> None:
        self._on_decided = on_decided
        self._notified_changes: dict[str, int] = {}

    def notify_if_complete(self, session: ReviewSession) -> None:
        """Call `on_decided` if there are new decisions and no conflict is open; to be called after each decision."""
        if self._has_new_decisions(session) and not session.has_open_conflicts():
            self._notify(session)

    def notify_remaining(self, sessions: Iterable[ReviewSession]) -> None:
        """Call `on_decided` for each audit with decisions that were not reported yet; to be called at the end."""
        for session in sessions:
            if self._has_new_decisions(session):
                self._notify(session)

    def _has_new_decisions(self, session: ReviewSession) -> bool:
        """Whether there is a callback, and the session has changes since its last call."""
        return self._on_decided is not None and session.n_changes > self._notified_changes.get(session.audit.name, 0)

    def _notify(self, session: ReviewSession) -> None:
        """Call `on_decided` with the audit's name, and note the number of changes that it covers."""
        self._notified_changes[session.audit.name] = session.n_changes
        if self._on_decided is not None:
            self._on_decided(session.audit.name)
