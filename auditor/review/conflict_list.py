"""The conflicts of an audit as one rater's list: filters, which comes next, and the rater's progress."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from statistics import median
from typing import Any, TypeVar

from auditor.domain import ConflictKind
from auditor.errors import UsageError, did_you_mean, format_count
from auditor.review.item import SideOrder, choose_rater, escape_unstorable, hash_to_fraction
from auditor.storage import rating_log, review_queue
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import UNSETTLED, ConflictKey, ConflictStatus, QueueFilter, QueueRow, QueueSort
from auditor.storage.database import Database

MAX_PACE_DECISIONS = 30
"""Number of the rater's last decisions over which the pace is the median."""
MIN_PACE_DECISIONS = 3
"""Number of decisions below which no pace is given."""


@dataclass(frozen=True, slots=True)
class ReviewProgress:
    """Progress of a rater.

    Attributes:
        n_total: conflicts that people have to settle or have settled; those that judges settled are not among them.
        n_left: conflicts of these that the rater still has to decide, second opinions included.
        n_by_rater: conflicts that the rater has settled.
        seconds_per_decision: median time of the rater's last decisions; None with fewer than `MIN_PACE_DECISIONS`.
    """

    n_total: int
    n_left: int
    n_by_rater: int
    seconds_per_decision: float | None

    @property
    def n_done(self) -> int:
        """Conflicts of the total that the rater need not decide any more."""
        return max(self.n_total - self.n_left, 0)

    @property
    def seconds_left(self) -> float | None:
        """Time that the conflicts left will take at the rater's pace in whole seconds, as printed; None without one."""
        pace = self.seconds_per_decision
        return None if pace is None else self.n_left * max(math.ceil(pace), 1)


def compute_pace(durations: Sequence[float]) -> float | None:
    """Median of the durations of a rater's last decisions in seconds; None if there are too few.

    The median ignores a break during which a conflict stayed on the screen.
    """
    return median(durations) if len(durations) >= MIN_PACE_DECISIONS else None


def format_progress(progress: ReviewProgress) -> str:
    """Describe the progress in one line, such as `8 of 20 left · 12 done (9 by you) · 40 s each`."""
    parts = [
        f"{format_count(progress.n_left)} of {format_count(progress.n_total)} left",
        f"{format_count(progress.n_done)} done ({format_count(progress.n_by_rater)} by you)",
    ]
    if progress.n_left and progress.seconds_per_decision is not None and progress.seconds_left is not None:
        parts.append(f"{format_duration(progress.seconds_per_decision)} each")
        parts.append(f"about {format_duration(progress.seconds_left)} to go")
    return " · ".join(parts)


def format_left(progress: ReviewProgress) -> str:
    """Describe what is left in a few words, such as `8 left, about 6 min`."""
    if not progress.n_left or progress.seconds_left is None:
        return f"{format_count(progress.n_left)} left"
    return f"{format_count(progress.n_left)} left, about {format_duration(progress.seconds_left)}"


def format_pace(progress: ReviewProgress) -> list[str]:
    """Describe what is left, the pace and the time to go, in forms of decreasing length."""
    left = f"{format_count(progress.n_left)} left"
    if not progress.n_left or progress.seconds_per_decision is None or progress.seconds_left is None:
        return [left]
    pace, time_left = format_duration(progress.seconds_per_decision), format_duration(progress.seconds_left)
    return [f"{left} · {pace} each · about {time_left} to go", f"{left} · {pace} each · {time_left}", left]


def format_duration(seconds: float) -> str:
    """Format a duration, rounded up to a whole unit: seconds up to 90 s, minutes up to 90 min, else hours."""
    if seconds <= 90:
        return f"{max(math.ceil(seconds), 1)} s"
    if seconds <= 90 * 60:
        return f"{math.ceil(seconds / 60)} min"
    hours, minutes = divmod(math.ceil(seconds / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


EnumT = TypeVar("EnumT", bound=StrEnum)

# Field of `QueueFilter` by key of the filter; for an enum also its class; for `is:` by word, with the value to set.
LIST_FIELDS = {"country": "countries", "topic": "topics", "model": "models", "rater": "raters"}
ENUM_FIELDS: dict[str, tuple[str, type[StrEnum]]] = {
    "kind": ("kinds", ConflictKind),
}
STATE_WORDS = {
    "open": (ConflictStatus.OPEN,),
    "contested": (ConflictStatus.DISPUTED,),
    "settled": (ConflictStatus.MAJORITY, ConflictStatus.PERSON),
    "settled-by-judges": (ConflictStatus.MAJORITY,),
    "decided-by-people": (ConflictStatus.PERSON,),
}
FLAG_FIELDS = {
    "todo": ("todo", True),
    "done": ("todo", False),
    "flagged": ("flagged", True),
    "unflagged": ("flagged", False),
}
FILTER_KEYS = (*LIST_FIELDS, *ENUM_FIELDS, "state", "gap", "is", "sort")
MAX_SCORE_GAP = 2.0
"""Largest difference of two scores in [-1, 1]."""


def parse_filter(text: str) -> QueueFilter:
    """Parse a filter. Words without a key are searched in country, topic and rater's notes; repeated keys mean "or".

    Keys: `kind:` `state:` `country:` `topic:` `model:` `rater:` take a value (quoted where it has spaces),
    `gap:>0.5` and `gap:<1` bound the difference of scores, `is:` takes todo, done, flagged or unflagged, and
    `sort:` an order, reversed by a minus.

    Raises:
        UsageError: an unknown key or value; the message suggests a similar one.
    """
    filter_fields: dict[str, Any] = {}
    for token in _split_terms(escape_unstorable(text)):
        key, colon, value = token.partition(":")
        if not colon or not key.isalpha():
            filter_fields["words"] = (*filter_fields.get("words", ()), token)
            continue
        if not value:
            raise UsageError(f"the filter '{key}:' has no value.", f"Write {key}:value, without a space.")
        for field_name, field_value in _parse_term(key.lower(), value).items():
            filter_fields[field_name] = (
                (*filter_fields.get(field_name, ()), *field_value) if isinstance(field_value, tuple) else field_value
            )
    return QueueFilter(**filter_fields)


def format_filter(queue_filter: QueueFilter) -> str:
    """Format a filter as a text that `parse_filter` reads back."""
    parts = [
        f"{key}:{shlex.quote(value)}"
        for key, field_name in LIST_FIELDS.items()
        for value in getattr(queue_filter, field_name)
    ]
    parts += [
        f"{key}:{value}" for key, (field_name, _) in ENUM_FIELDS.items() for value in getattr(queue_filter, field_name)
    ]
    parts += [f"state:{word}" for word in _name_states(queue_filter.states)]
    if queue_filter.min_gap is not None:
        parts.append(f"gap:>{queue_filter.min_gap:g}")
    if queue_filter.max_gap is not None:
        parts.append(f"gap:<{queue_filter.max_gap:g}")
    parts += [
        f"is:{word}" for word, (field_name, value) in FLAG_FIELDS.items() if getattr(queue_filter, field_name) is value
    ]
    if queue_filter.sort is not QueueSort.INFORMATIVENESS or queue_filter.reverse:
        parts.append(f"sort:{'-' if queue_filter.reverse else ''}{queue_filter.sort}")
    return " ".join([*parts, *map(shlex.quote, queue_filter.words)])


def with_next_sort(queue_filter: QueueFilter) -> QueueFilter:
    """Return the filter with the next sort order of `QueueSort`, not reversed."""
    orders = list(QueueSort)
    return replace(queue_filter, sort=orders[(orders.index(queue_filter.sort) + 1) % len(orders)], reverse=False)


def matches_everything(queue_filter: QueueFilter) -> bool:
    """Whether the filter matches all conflicts; its sort order is ignored."""
    compared_fields = {field.name for field in fields(queue_filter)} - {"sort", "reverse"}
    return all(
        getattr(queue_filter, field_name) == getattr(QueueFilter(), field_name) for field_name in compared_fields
    )


def _split_terms(text: str) -> list[str]:
    """Split a filter at spaces outside quotes; raise UsageError for an unclosed quote."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters, lexer.quotes = True, "", "\"'"
    try:
        return list(lexer)
    except ValueError:
        raise UsageError("a quotation mark is not closed.", 'Close it, as in country:"United States".') from None


def _parse_term(key: str, value: str) -> dict[str, Any]:
    """Return the fields of `QueueFilter` that one `key:value` sets; tuples are to be appended to earlier ones."""
    if key in LIST_FIELDS:
        return {LIST_FIELDS[key]: (value,)}
    if key in ENUM_FIELDS:
        field_name, enum_class = ENUM_FIELDS[key]
        return {field_name: (_parse_enum(enum_class, key, value),)}
    if key == "state":
        return {"states": _parse_states(value)}
    if key == "gap":
        sign, number = value[0], value[1:].lstrip("=")
        try:
            bound = float(number)
        except ValueError:
            bound = -1.0  # outside the range, so that it is refused below
        if sign not in "<>" or not 0 <= bound <= MAX_SCORE_GAP:
            raise UsageError(
                f"'gap:{value}' has no valid limit.", "Write gap:>0.5 or gap:<1, with a number from 0 to 2."
            )
        return {"min_gap" if sign == ">" else "max_gap": bound}
    if key == "sort":
        return {"sort": _parse_enum(QueueSort, key, value.removeprefix("-")), "reverse": value.startswith("-")}
    if key != "is":
        raise UsageError(f"unknown filter '{key}:'.", _suggest_name(key, FILTER_KEYS))
    if value.lower() not in FLAG_FIELDS:
        raise UsageError(f"unknown value 'is:{value}'.", _suggest_name(value, FLAG_FIELDS))
    return dict([FLAG_FIELDS[value.lower()]])


def _parse_states(value: str) -> tuple[ConflictStatus, ...]:
    """Return the statuses that a word stands for."""
    if value.lower() not in STATE_WORDS:
        raise UsageError(f"unknown value 'state:{value}'.", _suggest_name(value, STATE_WORDS))
    return STATE_WORDS[value.lower()]


def _name_states(states: Sequence[ConflictStatus]) -> list[str]:
    """Return the words for some statuses: one for those that judges and those that people decided, if both are in."""
    remaining, words = list(dict.fromkeys(states)), []
    for word, named_states in STATE_WORDS.items():
        if set(named_states) <= set(remaining):
            words.append(word)
            remaining = [state for state in remaining if state not in named_states]
    return words


def _parse_enum(enum_class: type[EnumT], key: str, value: str) -> EnumT:
    """Return the member of `enum_class` with this value, in any case; raise UsageError if there is none."""
    try:
        return enum_class(value.lower())
    except ValueError:
        raise UsageError(
            f"unknown value '{key}:{value}'.", _suggest_name(value, [str(member) for member in enum_class])
        ) from None


def _suggest_name(word: str, known: Iterable[str]) -> str:
    """Return a hint: the known name that is most similar to `word`, or all known names if none is similar."""
    names = list(known)
    return did_you_mean(word, names, f"Known: {', '.join(names)}.")


DEFAULT_SECOND_RATER_SHARE = 0.2
"""Share of the conflicts that two raters decide, so that their agreement can be measured."""
DEFAULT_RATERS_PER_SHARED_UNIT = 2
"""Raters who label each unit of that share of a sample."""
ACTIVE_RATER_PERIOD = timedelta(minutes=10)
"""Time after an act during which a rater counts as active; active raters start with different conflicts."""


class ConflictList:
    """One rater's list of the conflicts of one audit.

    Args:
        blind: whether authors, verdicts and survey are hidden until the rater has decided.
        second_rater_share: share of the conflicts, in [0, 1], that two raters decide; the same ones for all raters.
    """

    def __init__(self, db: Database, audit: Audit, rater: str, *, blind: bool, second_rater_share: float) -> None:
        self.db = db
        self.audit = audit
        self.rater = choose_rater(rater, rating_log.load_raters(db, audit.id))
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
        return rating_log.load_last_rating_id(self.db, self.audit.id)

    def load_progress(self) -> ReviewProgress:
        """Count the conflicts that are left to the rater, estimate the time that they will take, and keep both."""
        counts = self.count_by_status()
        durations = rating_log.load_decision_durations(self.db, self.audit.id, self.rater, MAX_PACE_DECISIONS)
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
        active_raters = sorted(rating_log.load_raters(self.db, self.audit.id, since) | {self.rater})
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
