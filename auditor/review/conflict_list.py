"""The conflicts of an audit as one rater's list: which are left to decide, which comes next, and the progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from auditor.review.progress import MAX_PACE_DECISIONS, ReviewProgress, compute_pace
from auditor.review.side_order import SideOrder, hash_to_fraction
from auditor.review.text_comparison import escape_unstorable
from auditor.storage import rating_pace, review_queue
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictKey, ConflictStatus, QueueFilter, QueueRow
from auditor.storage.database import Database

DEFAULT_SECOND_RATER_SHARE = 0.2
"""Share of the conflicts that two raters decide, so that their agreement can be measured."""
DEFAULT_RATERS_PER_SHARED_UNIT = 2
"""Raters who label each unit of that share of a sample."""
ACTIVE_RATER_PERIOD = timedelta(minutes=10)
"""Time after an act during which a rater counts as active; active raters start with different conflicts."""
UNSETTLED = (ConflictStatus.OPEN, ConflictStatus.DISPUTED)


class ConflictList:
    """One rater's list of the conflicts of one audit.

    Args:
        blind: whether authors, verdicts and survey are hidden until the rater has decided.
        second_rater_share: share of the conflicts, in [0, 1], that two raters decide; the same ones for all raters.
    """

    def __init__(self, db: Database, audit: Audit, rater: str, *, blind: bool, second_rater_share: float) -> None:
        self.db = db
        self.audit = audit
        self.rater = escape_unstorable(rater)
        self.blind = blind
        self.second_rater_share = second_rater_share
        self._queue = review_queue.ConflictQueue(db, audit.id, self.rater, unblinded=not blind)
        self._order = SideOrder(audit.name, self.rater)
        self._next_filter = QueueFilter(todo=True)
        self._next_keys: list[ConflictKey] = []
        self._decided_keys: set[ConflictKey] = set()
        self.progress: ReviewProgress | None = None
        """The progress as it was last loaded."""

    @property
    def queue_filter(self) -> QueueFilter:
        """Filter and order in which `next_conflict_key` goes through the conflicts."""
        return self._next_filter

    @queue_filter.setter
    def queue_filter(self, queue_filter: QueueFilter) -> None:
        self._next_filter, self._next_keys = replace(queue_filter, todo=True), []

    def conflict_keys(self, queue_filter: QueueFilter | None = None, limit: int | None = None) -> list[ConflictKey]:
        """Return the keys of the conflicts that match a filter, in its order: at most `limit`, all if it is None."""
        queue_filter = queue_filter or QueueFilter()
        return [key for key, _ in self._keys_and_raters(queue_filter, limit)]

    def _keys_and_raters(self, queue_filter: QueueFilter, limit: int | None = None) -> list[tuple[ConflictKey, int]]:
        """Return the keys that match a filter, in its order, each with the number of raters who decided the conflict.

        At most `limit`, all if it is None.
        """
        if queue_filter.todo is None:
            return self._queue.keys(queue_filter, limit)
        # A conflict that a single other rater decided is left to do only if it is in the share that two raters decide,
        # which the database cannot tell. So four times as many keys are loaded as asked for, and all if too few remain.
        if queue_filter.todo:
            keys_and_raters = self._queue.keys(queue_filter, limit and 4 * limit)
            todo = [(key, n) for key, n in keys_and_raters if n != 1 or self.needs_second_rater(key)]
            is_truncated = limit and len(todo) < limit and len(keys_and_raters) == 4 * limit
            return self._keys_and_raters(queue_filter)[:limit] if is_truncated else todo[:limit]
        todo_keys = set(self.conflict_keys(replace(queue_filter, todo=True)))
        all_keys = self._queue.keys(replace(queue_filter, todo=None))
        return [(key, n) for key, n in all_keys if key not in todo_keys][:limit]

    def load_queue_rows(self, keys: Sequence[ConflictKey]) -> list[QueueRow]:
        """Load the queue's rows of some conflicts, with scores and decisions for the sides as shown."""
        return [self._order.show_row(row) for row in self._queue.rows(keys)]

    def count_by_status(self) -> dict[ConflictStatus, int]:
        """Return the number of conflicts of the audit by status."""
        return self._queue.count_by_status()

    def has_open_conflicts(self) -> bool:
        """Whether any conflict of the audit is open or contested."""
        return bool(self._queue.keys(QueueFilter(states=UNSETTLED), limit=1))

    def needs_second_rater(self, key: ConflictKey) -> bool:
        """Whether a conflict is in the pseudo-random share that two raters decide."""
        return hash_to_fraction("second", self.audit.name, *key) < self.second_rater_share

    def load_last_rating_id(self) -> int | None:
        """Load the id of the last entry in the audit's rating log, which changes whenever a rater acts."""
        return rating_pace.load_last_rating_id(self.db, self.audit.id)

    def load_progress(self) -> ReviewProgress:
        """Count the conflicts that are left to the rater, estimate the time that they will take, and keep both."""
        counts = self.count_by_status()
        durations = rating_pace.load_decision_durations(self.db, self.audit.id, self.rater, MAX_PACE_DECISIONS)
        self.progress = ReviewProgress(
            n_total=sum(counts.values()) - counts[ConflictStatus.MAJORITY],
            n_left=self._count_left(),
            n_by_rater=self._queue.count(QueueFilter(raters=(self.rater,))),
            seconds_per_decision=compute_pace(durations),
        )
        return self.progress

    def _count_left(self) -> int:
        """Count the conflicts that `conflict_keys` returns with `todo`, without loading them."""
        todo = QueueFilter(todo=True)
        decided_once = [key for key, _ in self._queue.keys(todo, n_raters=1)]
        return self._queue.count(todo) - sum(not self.needs_second_rater(key) for key in decided_once)

    # --- what comes next

    def next_conflict_key(self, after: ConflictKey | None = None) -> ConflictKey | None:
        """Return the first undecided conflict of the filter other than `after`; None if there is none.

        Takes the first of the prefetched keys that is left, unless another rater has settled it in the meantime; if
        none is, it prefetches again and looks a second time.
        """
        for is_second_pass in (False, True):
            if is_second_pass:
                self._decided_keys.clear()
                self.prefetch_next_keys()
            for key in self._next_keys:
                if key != after and key not in self._decided_keys and self._is_left(key):
                    return key
        return None

    def prefetch_next_keys(self, n_keys: int = 50) -> None:
        """Load the next undecided conflicts, so that `next_conflict_key` is fast; called after each decision.

        Raters who are active at the same time begin with different ones of those that nobody has decided, so that they
        do not decide the same conflict twice.
        """
        queue_filter = self._next_filter
        keys_and_raters = self._keys_and_raters(queue_filter, n_keys)
        since = datetime.now(UTC) - ACTIVE_RATER_PERIOD
        active_raters = sorted(rating_pace.load_active_raters(self.db, self.audit.id, since) | {self.rater})
        place = active_raters.index(self.rater)
        keys_and_raters.sort(
            key=lambda entry: entry[1] == 0 and int(hash_to_fraction("rater", *entry[0]) * len(active_raters)) != place
        )
        if queue_filter == self._next_filter:  # else the rater has chosen another filter in the meantime
            self._next_keys = [key for key, _ in keys_and_raters]

    def _is_left(self, key: ConflictKey) -> bool:
        """Whether a conflict still needs the rater's decision, in the database as it is now."""
        for row in self._queue.rows([key]):
            has_decided = row.decision is not None and row.decision.resolves_conflict
            return not has_decided and (row.status in UNSETTLED or self._needs_second_opinion(row))
        return False

    def _needs_second_opinion(self, row: QueueRow) -> bool:
        """Whether one other rater has decided a conflict, not with another one, that two raters are to decide."""
        has_decided = row.decision is not None and row.decision.resolves_conflict
        is_decided_once = row.n_raters == row.n_direct_raters == 1
        return is_decided_once and not has_decided and self.needs_second_rater(row.key)
