"""A reviewer's desk: one audit, one rater, the queue before them, and what they say of each conflict.

Sides are shown in an order drawn for each rater and conflict, so that "left" says nothing about whose it is; `Item` and
`decide` speak of the sides as shown, storage of the sides as stored. What blinding hides is not in an `Item` at all
until the rater has decided the conflict, or asked to see it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from auditor.domain import ENGLISH, Act, ConflictKind, Decision, Rating, lettered
from auditor.errors import StorageError
from auditor.review.item import Item, Side
from auditor.review.word_comparison import storable
from auditor.storage import evidence, rating_log, review_queue, tasks
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictKey, QueueFilter, QueueRow, Standing
from auditor.storage.database import Database
from auditor.storage.rating_log import SHOWN, Entry, Saying

SECOND_SHARE = 0.2
MIRROR: dict[Any, Any] = {Decision.LEFT: Decision.RIGHT, Decision.RIGHT: Decision.LEFT}
D = TypeVar("D", Decision, Decision | None)


PAIR = "Two items of a set were compared. Which side names the right one?"
"""Asked of a verdict on a pair, about which the survey says nothing."""


class Desk:
    """What a reviewer can see and do in one audit; `changes` counts what may have settled or opened a conflict.

    Args:
        blind: whether authors, verdicts and survey stay hidden until the rater has decided.
        second_share: share of the conflicts, in [0, 1], that are put to two raters; the same ones for everybody.
    """

    def __init__(
        self,
        db: Database,
        audit: Audit,
        rater: str,
        *,
        blind: bool = True,
        second_share: float = SECOND_SHARE,
    ) -> None:
        self.db = db
        self.audit = audit
        self.rater = storable(rater)
        self.blind = blind
        self.second_share = second_share
        self.changes = 0
        self._queue = review_queue.Queue(db, audit.id, self.rater, open_book=not blind)
        self._survey = json.loads(audit.survey)
        self.of_task = self._survey.get("task") is not None
        self._models = _models_of(audit)
        self._ahead: list[ConflictKey] = []
        self._passed: set[ConflictKey] = set()

    # --- the queue

    def keys(self, wanted: QueueFilter | None = None, limit: int | None = None) -> list[ConflictKey]:
        """The conflicts that pass a filter, in its order."""
        wanted = wanted or QueueFilter()
        if wanted.todo is None:
            return [key for key, _ in self._queue.keys(wanted, limit)]
        if wanted.todo:
            found = self._queue.keys(wanted, limit and 4 * limit)
            todo = [key for key, raters in found if raters != 1 or self.wants_second(key)]
            short = limit and len(todo) < limit and len(found) == 4 * limit
            return self.keys(wanted)[:limit] if short else todo[:limit]
        still = set(self.keys(replace(wanted, todo=True)))
        return [key for key, _ in self._queue.keys(replace(wanted, todo=None)) if key not in still][:limit]

    def rows(self, keys: Sequence[ConflictKey]) -> list[QueueRow]:
        """The queue's lines for some conflicts, scores and decisions as shown."""
        return [self._turned(row) for row in self._queue.rows(keys)]

    def counts(self) -> dict[Standing, int]:
        """Conflicts of the audit by standing."""
        return self._queue.counts()

    def wants_second(self, key: ConflictKey) -> bool:
        """Whether a conflict is among those that two raters are to decide."""
        return _fraction("second", self.audit.name, *key) < self.second_share

    def next_key(self, after: ConflictKey | None = None) -> ConflictKey | None:
        """The undecided conflict that teaches most; None when nothing is left to do. See `look_ahead`."""
        for anew in (False, True):
            if anew:
                self._passed.clear()
                self.look_ahead()
            for key in self._ahead:
                if key != after and key not in self._passed:
                    return key
        return None

    def look_ahead(self, n: int = 50) -> None:
        """Work out what comes next, so that `next_key` answers at once; done after each decision."""
        self._ahead = self.keys(QueueFilter(todo=True), limit=n)

    # --- one conflict

    def item(self, key: ConflictKey, *, peek: bool = False) -> Item:
        """A conflict as the rater may see it now.

        Args:
            peek: only the sides are looked at, so nothing is revealed and there is nothing to log.

        Raises:
            StorageError: it is gone; the audit was run anew.
        """
        rows = self._queue.rows([key])
        if not rows:
            raise StorageError("this conflict is gone: the audit was run anew.", "Go back to the queue.")
        row, swapped = rows[0], self._swaps(key)
        revealed = row.seen and not peek
        if revealed and not self.blind:
            self._note_open_book(row, swapped)
        samples = evidence.sides(self.db, self.audit.id, key)
        left = Side(row.score_left, samples[0], answer=row.answer_left)
        right = Side(row.score_right, samples[1], answer=row.answer_right)
        survey = truth = None
        if revealed:
            hidden = evidence.hidden(self.db, self.audit.id, key)
            left = replace(left, author=hidden.left, verdicts=hidden.verdicts_left)
            right = replace(right, author=hidden.right, verdicts=hidden.verdicts_right)
            survey, truth = hidden.survey, hidden.truth
        else:
            left, right = self._blinded(left), self._blinded(right)
        return Item(
            key=key,
            row=self._turned(row),
            question=PAIR if row.kind is ConflictKind.LOGIC else self._question(key),
            left=right if swapped else left,
            right=left if swapped else right,
            swapped=swapped,
            decision=_turn(row.decision, swapped),
            revealed=revealed,
            known="" if revealed else rating_log.shown_elsewhere(self.db, self.audit.id, key, self.rater),
            survey=survey,
            truth=truth,
            first=self._first(key, row, swapped),
            wants_second=row.raters == 1 and row.decision in (None, Decision.SKIP) and self.wants_second(key),
            shown_at=time.monotonic(),
        )

    def decide(self, item: Item, decision: Decision, *, score: float | None = None, note: str | None = None) -> Entry:
        """Store a decision about the sides as shown; durable when this returns.

        Args:
            score: in [-1, 1], with the decision `score` only.
        """
        if (decision is Decision.SCORE) != (score is not None) or not -1 <= (score or 0.0) <= 1:
            raise ValueError("a score in [-1, 1] goes with the decision `score`, and with no other")
        if score is not None and item.left.score is None:
            raise ValueError("answers that are no scores are not settled by one")
        turned = _turn(decision, item.swapped)
        entry = self._say(item, Saying(Act.DECIDE, decision=turned, score=score, note=note))
        self._passed.add(item.key)
        if decision.settles:
            self.changes += 1
        return entry

    def note(self, item: Item, text: str) -> Entry:
        """Store the rater's note on a conflict in place of the one before."""
        return self._say(item, Saying(Act.NOTE, note=text))

    def flag(self, item: Item) -> Entry:
        """Mark a conflict for attention, or take the mark off."""
        return self._say(item, Saying(Act.FLAG, flagged=not item.row.flagged))

    def reveal(self, item: Item) -> Entry:
        """Show what blinding hides before deciding; it goes into the log, since the decision is not blind any more."""
        return self._say(item, Saying(Act.REVEAL), shown=SHOWN)

    def undo(self) -> Entry | None:
        """Take back the rater's last decision, note or flag; None when there is nothing to take back."""
        return self._taken_back(rating_log.undo(self.db, self.audit.id, self.rater))

    def redo(self) -> Entry | None:
        """Bring back what was last taken back; None when there is nothing to bring back."""
        return self._taken_back(rating_log.redo(self.db, self.audit.id, self.rater))

    def history(self, key: ConflictKey) -> list[Entry]:
        """All that the rater ever did to a conflict, oldest first, of the sides as shown."""
        log = rating_log.entries(self.db, self.audit.id, rater=self.rater, key=key)
        return [entry._replace(rating=self._as_shown(entry)) for entry in log]

    def is_anything_open(self) -> bool:
        """Whether any conflict is still without a settlement."""
        return bool(self._queue.keys(QueueFilter(states=(Standing.OPEN, Standing.DISPUTED)), limit=1))

    # --- inside

    def _taken_back(self, entry: Entry | None) -> Entry | None:
        self._ahead = []
        self.changes += entry is not None
        return entry and entry._replace(rating=self._as_shown(entry))

    def _as_shown(self, entry: Entry) -> Rating:
        return replace(entry.rating, decision=_turn(entry.rating.decision, self._swaps(entry.key)))

    def _say(self, item: Item, saying: Saying, shown: str | None = None) -> Entry:
        saying = replace(
            saying,
            note=saying.note and storable(saying.note),
            shown=shown if shown is not None else SHOWN if item.revealed else "",
            swapped=item.swapped,
            duration_s=round(time.monotonic() - item.shown_at, 3),
        )
        return rating_log.append(self.db, self.audit.id, item.key, self.rater, saying)

    def _note_open_book(self, row: QueueRow, swapped: bool) -> None:
        """Opening a conflict with nothing hidden is a reveal, once: a later blind session must know of it."""
        log = rating_log.entries(self.db, self.audit.id, rater=self.rater, key=row.key)
        if not any(entry.rating.act is Act.REVEAL or entry.rating.decision.settles for entry in log):
            saying = Saying(Act.REVEAL, shown=SHOWN, swapped=swapped)
            rating_log.append(self.db, self.audit.id, row.key, self.rater, saying)

    def _first(self, key: ConflictKey, row: QueueRow, swapped: bool) -> Decision | None:
        if row.decision in (None, Decision.SKIP):
            return None
        log = rating_log.entries(self.db, self.audit.id, rater=self.rater, key=key)
        first = next((e.rating.decision for e in log if e.rating.decision.settles), None)
        return _turn(first, swapped) if first is not row.decision else None

    def warm_up(self) -> None:
        """Load what showing a conflict needs, so that the first one opens as fast as all others."""
        self._without_names("-")

    def _blinded(self, side: Side) -> Side:
        return replace(side, samples=tuple(replace(s, text=self._without_names(s.text)) for s in side.samples))

    def _without_names(self, text: str | None) -> str | None:
        # These read word lists, for which no first screen should wait.
        from auditor.agents.blinding import author_names, without_authors

        makers = [part for _, model in self._models for part in model.split("/")]
        return text and without_authors(text, [*author_names(self._models), *makers])

    def _question(self, key: ConflictKey) -> str:
        if self.of_task and (item := tasks.item(self.db, self.audit.id, key.topic)) is not None:
            return "\n".join(part for part in (item.context, item.question, *lettered(item)) if part)
        wording: str = self._survey["wording"]
        topics = self._survey.get("phrasings", {}).get(ENGLISH, {}).get("topics", {})
        return wording.replace("{topic}", topics.get(key.topic, key.topic)).replace("{country}", key.country)

    def _swaps(self, key: ConflictKey) -> bool:
        return _fraction("side", self.audit.name, self.rater, *key) < 0.5

    def _turned(self, row: QueueRow) -> QueueRow:
        if not self._swaps(row.key):
            return row
        return replace(
            row,
            score_left=row.score_right,
            score_right=row.score_left,
            answer_left=row.answer_right,
            answer_right=row.answer_left,
            decision=_turn(row.decision, swapped=True),
        )


def _turn(decision: D, swapped: bool) -> D:
    return MIRROR.get(decision, decision) if swapped else decision


def _fraction(*parts: str) -> float:
    """A number in [0, 1) that only depends on the parts."""
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def _models_of(audit: Audit) -> list[tuple[str, str]]:
    """Name and model string of an audit's models."""
    config = json.loads(audit.config) if audit.config else {"models": []}
    return [(model["name"], model["model"]) for model in config["models"]]
