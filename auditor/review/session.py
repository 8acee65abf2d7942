"""Review session of one rater in one audit: the queue of conflicts, and the rater's decisions on them.

The order of the sides is pseudo-random for each rater and conflict, so that "left" does not reveal the author.
`ReviewItem` and `ReviewSession.decide` use the sides as shown, storage the sides as stored. A `ReviewItem` does not
contain what blinding hides until the rater has decided the conflict, or asked to reveal it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from auditor.config import load_stored_config
from auditor.domain import ENGLISH, ConflictSides, Decision, Rating, RatingAction, lettered_options
from auditor.errors import StorageError
from auditor.review.item import ReviewItem, ReviewSide
from auditor.review.word_comparison import escape_unstorable
from auditor.storage import evidence, rating_log, rating_undo, review_queue, tasks
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictKey, ConflictStatus, QueueFilter, QueueRow
from auditor.storage.database import Database
from auditor.storage.rating_log import CONFLICT_GONE, CONFLICT_GONE_FIX, FULL_DISCLOSURE, RatingChange, RatingEntry

DEFAULT_SECOND_RATER_SHARE = 0.2
"""Share of the conflicts that two raters decide, so that their agreement can be measured."""
DecisionT = TypeVar("DecisionT", Decision, Decision | None)


PAIR_QUESTION = "Two items of a set were compared. Which side names the right one?"
"""Question for conflicts on pairs of items, for which the survey has no wording."""


class ReviewSession:
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
        self.db = db
        self.audit = audit
        self.rater = escape_unstorable(rater)
        self.blind = blind
        self.second_rater_share = second_rater_share
        self.n_changes = 0
        self._queue = review_queue.ConflictQueue(db, audit.id, self.rater, unblinded=not blind)
        self._survey = json.loads(audit.survey)
        self.is_task_audit = self._survey.get("task") is not None
        self._models = _list_audit_models(audit)
        self._next_keys: list[ConflictKey] = []
        self._decided_keys: set[ConflictKey] = set()

    # --- the queue

    def conflict_keys(self, queue_filter: QueueFilter | None = None, limit: int | None = None) -> list[ConflictKey]:
        """Return the keys of the conflicts that match a filter, in its order: at most `limit`, all if it is None."""
        queue_filter = queue_filter or QueueFilter()
        if queue_filter.todo is None:
            return [key for key, _ in self._queue.keys(queue_filter, limit)]
        # `keys` returns each conflict with the number of raters who decided it. One that a single other rater decided
        # is left to do only if it is in the share that two raters decide, which the database cannot tell. So four times
        # as many keys are loaded as asked for, and all of them if too few remain.
        if queue_filter.todo:
            keys_and_raters = self._queue.keys(queue_filter, limit and 4 * limit)
            todo = [key for key, n_raters in keys_and_raters if n_raters != 1 or self.needs_second_rater(key)]
            is_truncated = limit and len(todo) < limit and len(keys_and_raters) == 4 * limit
            return self.conflict_keys(queue_filter)[:limit] if is_truncated else todo[:limit]
        todo_keys = set(self.conflict_keys(replace(queue_filter, todo=True)))
        return [key for key, _ in self._queue.keys(replace(queue_filter, todo=None)) if key not in todo_keys][:limit]

    def load_queue_rows(self, keys: Sequence[ConflictKey]) -> list[QueueRow]:
        """Load the queue's rows of some conflicts, with scores and decisions for the sides as shown."""
        return [self._swap_row_if_shown_swapped(row) for row in self._queue.rows(keys)]

    def count_by_status(self) -> dict[ConflictStatus, int]:
        """Return the number of conflicts of the audit by status."""
        return self._queue.count_by_status()

    def needs_second_rater(self, key: ConflictKey) -> bool:
        """Whether a conflict is in the pseudo-random share that two raters decide."""
        return _hash_to_fraction("second", self.audit.name, *key) < self.second_rater_share

    def next_conflict_key(self, after: ConflictKey | None = None) -> ConflictKey | None:
        """Return the most informative undecided conflict other than `after`; None if there is none.

        Takes the first of the prefetched keys that is left; if none is, it prefetches anew and looks a second time.
        """
        for is_second_pass in (False, True):
            if is_second_pass:
                self._decided_keys.clear()
                self.prefetch_next_keys()
            for key in self._next_keys:
                if key != after and key not in self._decided_keys:
                    return key
        return None

    def prefetch_next_keys(self, n_keys: int = 50) -> None:
        """Load the next undecided conflicts, so that `next_conflict_key` is fast; called after each decision."""
        self._next_keys = self.conflict_keys(QueueFilter(todo=True), limit=n_keys)

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
        row, swapped = rows[0], self._is_swapped(key)
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
            left, right = self._blind_side(left), self._blind_side(right)
        return ReviewItem(
            key=key,
            row=self._swap_row_if_shown_swapped(row),
            question=PAIR_QUESTION if row.kind.spec.sides is ConflictSides.CLAIMS else self._format_question(key),
            left=right if swapped else left,
            right=left if swapped else right,
            swapped=swapped,
            decision=_mirror_decision(row.decision, swapped),
            revealed=revealed,
            disclosed_elsewhere=""
            if revealed
            else rating_log.find_disclosed_elsewhere(self.db, self.audit.id, key, self.rater),
            survey=survey_cell,
            correct_answer=correct_answer,
            first_decision=self._find_first_decision(key, row, swapped),
            needs_second_rater=row.n_raters == 1
            and not (row.decision and row.decision.resolves_conflict)
            and self.needs_second_rater(key),
            shown_at=time.monotonic(),
        )

    def decide(
        self, item: ReviewItem, decision: Decision, *, score: float | None = None, note: str | None = None
    ) -> RatingEntry:
        """Store a decision about the sides as shown; it is durable when this returns.

        Args:
            score: custom score in [-1, 1], only for a decision that needs one.

        Raises:
            ValueError: a score is missing, out of range, or given with another decision; or the sides have no scores.
        """
        if decision.needs_score != (score is not None) or not -1 <= (score or 0.0) <= 1:
            raise ValueError(f"a score in [-1, 1] goes only with a decision that needs one, but got {decision} {score}")
        if decision not in item.possible_decisions:
            raise ValueError("answers that are no scores are not settled by one")
        stored_decision = _mirror_decision(decision, item.swapped)
        entry = self._append_to_log(
            item, RatingChange(RatingAction.DECIDE, decision=stored_decision, score=score, note=note)
        )
        self._decided_keys.add(item.key)
        if decision.resolves_conflict:
            self.n_changes += 1
        return entry

    def save_note(self, item: ReviewItem, text: str) -> RatingEntry:
        """Store the rater's note on a conflict; it replaces the previous note."""
        return self._append_to_log(item, RatingChange(RatingAction.NOTE, note=text))

    def toggle_flag(self, item: ReviewItem) -> RatingEntry:
        """Flag a conflict for attention, or remove the flag."""
        return self._append_to_log(item, RatingChange(RatingAction.FLAG, flagged=not item.row.flagged))

    def reveal(self, item: ReviewItem) -> RatingEntry:
        """Log that the rater asked to see the hidden evidence before deciding; their decision is then not blind."""
        return self._append_to_log(item, RatingChange(RatingAction.REVEAL), disclosure=FULL_DISCLOSURE)

    def undo(self) -> RatingEntry | None:
        """Undo the rater's last decision, note or flag; None if there is nothing to undo."""
        return self._apply_undo(rating_undo.undo(self.db, self.audit.id, self.rater))

    def redo(self) -> RatingEntry | None:
        """Redo the rater's last undone action; None if there is nothing to redo."""
        return self._apply_undo(rating_undo.redo(self.db, self.audit.id, self.rater))

    def load_history(self, key: ConflictKey) -> list[RatingEntry]:
        """Load all of the rater's actions on a conflict, oldest first, with decisions about the sides as shown."""
        entries = rating_log.load_entries(self.db, self.audit.id, rater=self.rater, key=key)
        return [entry._replace(rating=self._to_shown_sides(entry)) for entry in entries]

    def has_open_conflicts(self) -> bool:
        """Whether any conflict of the audit is open or disputed."""
        return bool(self._queue.keys(QueueFilter(states=(ConflictStatus.OPEN, ConflictStatus.DISPUTED)), limit=1))

    # --- inside

    def _apply_undo(self, entry: RatingEntry | None) -> RatingEntry | None:
        """Drop the prefetched conflicts and count the change after an undo or redo; return its entry as shown."""
        self._next_keys = []
        self.n_changes += entry is not None
        return entry and entry._replace(rating=self._to_shown_sides(entry))

    def _to_shown_sides(self, entry: RatingEntry) -> Rating:
        """Return the entry's rating with its decision about the sides as shown to the rater."""
        return replace(entry.rating, decision=_mirror_decision(entry.rating.decision, self._is_swapped(entry.key)))

    def _append_to_log(
        self, item: ReviewItem, rating_change: RatingChange, disclosure: str | None = None
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
        return rating_log.append_rating(self.db, self.audit.id, item.key, self.rater, rating_change)

    def _log_unblinded_view(self, row: QueueRow, swapped: bool) -> None:
        """Log a reveal, once, if a session that is not blind shows a conflict, so that a later blind session knows."""
        entries = rating_log.load_entries(self.db, self.audit.id, rater=self.rater, key=row.key)
        if not any(
            entry.rating.act is RatingAction.REVEAL or entry.rating.decision.resolves_conflict for entry in entries
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
        return _mirror_decision(first_decision, swapped) if first_decision is not row.decision else None

    def preload_masking(self) -> None:
        """Load the word lists for masking, so that the first conflict opens as fast as later ones."""
        self._mask_author_names("-")

    def _blind_side(self, side: ReviewSide) -> ReviewSide:
        """Return the side with the names of models and providers masked in the texts of its samples."""
        return replace(
            side, samples=tuple(replace(sample, text=self._mask_author_names(sample.text)) for sample in side.samples)
        )

    def _mask_author_names(self, text: str | None) -> str | None:
        """Mask the names of the audit's models and their providers in a text; None stays None."""
        # Not at the top: it loads word lists, which would delay the first screen.
        from auditor.agents.blinding import author_names, mask_authors

        provider_names = [name for _, model in self._models for name in model.split("/")]
        return text and mask_authors(text, [*author_names(self._models), *provider_names])

    def _format_question(self, key: ConflictKey) -> str:
        """Return a task item's text with its options, or the survey's wording with topic and country filled in."""
        if self.is_task_audit and (item := tasks.load_item(self.db, self.audit.id, key.topic)) is not None:
            return "\n".join(part for part in (item.context, item.question, *lettered_options(item)) if part)
        wording: str = self._survey["wording"]
        topics = self._survey.get("phrasings", {}).get(ENGLISH, {}).get("topics", {})
        return wording.replace("{topic}", topics.get(key.topic, key.topic)).replace("{country}", key.country)

    def _is_swapped(self, key: ConflictKey) -> bool:
        """Whether this rater sees the stored left side of a conflict on the right: so for half of them, by a hash."""
        return _hash_to_fraction("side", self.audit.name, self.rater, *key) < 0.5

    def _swap_row_if_shown_swapped(self, row: QueueRow) -> QueueRow:
        """Return a row of the queue with scores, answers and decision for the sides as shown to the rater."""
        if not self._is_swapped(row.key):
            return row
        return replace(
            row,
            score_left=row.score_right,
            score_right=row.score_left,
            answer_left=row.answer_right,
            answer_right=row.answer_left,
            decision=_mirror_decision(row.decision, swapped=True),
        )


def _mirror_decision(decision: DecisionT, swapped: bool) -> DecisionT:
    """Return the decision about the sides in their other order if they are swapped."""
    return decision.mirrored if swapped and decision is not None else decision


def _hash_to_fraction(*parts: str) -> float:
    """Hash texts to a number in [0, 1): pseudo-random, but the same for the same texts in every session."""
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def _list_audit_models(audit: Audit) -> list[tuple[str, str]]:
    """Return the name and model string of each model in the audit's configuration; empty without one."""
    config = load_stored_config(audit.config)
    return [(model.name, model.model) for model in config.models] if config else []
