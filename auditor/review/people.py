"""What people said, as data to learn from: only decisions made blind count, since the rest had seen the judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from auditor.domain import Cell, Decision, Rating
from auditor.metrics.agreement import Agreement, count_ratings, fleiss_kappa
from auditor.metrics.share import Share, share_of
from auditor.storage import evidence, rating_log, results
from auditor.storage.database import Database
from auditor.storage.standing import ConflictKey

Said = Mapping[ConflictKey, Mapping[str, Decision]]
"""For each conflict, what each rater said of it blind."""

CATEGORIES = {decision: float(i) for i, decision in enumerate(d for d in Decision if d.settles)}
RIGHT_SIDES = {
    Decision.LEFT: (True, False),
    Decision.RIGHT: (False, True),
    Decision.BOTH: (True, True),
    Decision.NEITHER: (False, False),
}
"""Which sides, left and right, a decision says are right; a score of one's own says nothing of the kind."""


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How two raters agree on the conflicts that both decided blind."""

    one: str
    other: str
    same: Share
    kappa: Agreement


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """How all raters agree.

    Attributes:
        decided: conflicts that each rater decided blind.
        kappa: Fleiss' over the conflicts with at least two of them.
    """

    decided: Mapping[str, int]
    kappa: Agreement
    pairs: tuple[PairAgreement, ...]


@dataclass(frozen=True, slots=True)
class Lesson:
    """One side of a conflict as a judge and as people see it.

    Attributes:
        share: of the judge's verdicts on the side's traces, those that say VALID, in [0, 1].
        right: whether people say that the side is right.
    """

    judge: str
    cell: Cell
    share: float
    right: bool


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """How a judge agrees with people.

    Attributes:
        same: sides on which the majority of its verdicts says what people say; `lost` are those on which it ties.
        kappa: Fleiss' between the judge and people.
    """

    judge: str
    same: Share
    kappa: Agreement


def said_blind(db: Database, audit_id: int) -> Said:
    """What each rater last said blind of each conflict, about the scores that it has now."""
    scores = {
        ConflictKey(*c.cell, c.left, c.right): (c.score_left, c.score_right) for c in results.conflicts(db, audit_id)
    }
    last: dict[ConflictKey, dict[str, Rating]] = {}
    for entry in rating_log.entries(db, audit_id):
        rating = entry.rating
        if not rating.shown and scores.get(entry.key) == (rating.score_left, rating.score_right):
            last.setdefault(entry.key, {})[rating.rater] = rating
    settled = {
        key: {rater: r.decision for rater, r in by_rater.items() if r.decision.settles}
        for key, by_rater in last.items()
    }
    return {key: decisions for key, decisions in settled.items() if decisions}


def consensus(decisions: Iterable[Decision]) -> Decision | None:
    """What a strict majority says; None when none does."""
    counted = Counter(decisions)
    top = max(counted, key=counted.__getitem__, default=None)
    return top if top is not None and 2 * counted[top] > counted.total() else None


def rater_agreement(said: Said) -> RaterAgreement:
    """Agreement between raters over what they said blind."""
    raters = sorted({rater for decisions in said.values() for rater in decisions})
    decided = {rater: sum(rater in decisions for decisions in said.values()) for rater in raters}
    pairs = [_pair(said, one, other) for one, other in combinations(raters, 2)]
    return RaterAgreement(decided, _kappa(said, raters), tuple(pair for pair in pairs if pair.same.n))


def lessons(db: Database, audit_id: int, said: Said) -> list[Lesson]:
    """What judges and people say of the same sides, where people have a consensus."""
    shares = evidence.judge_shares(db, audit_id)
    by_trace: dict[tuple[str, Cell], list[tuple[str, float]]] = {}
    for (judge, model, cell), (valid, given) in shares.items():
        by_trace.setdefault((model, cell), []).append((judge, valid / given))
    found = []
    for key, decisions in said.items():
        decision = consensus(decisions.values())
        if decision not in RIGHT_SIDES:
            continue
        cell = Cell(key.country, key.topic)
        for model, right in zip((key.left, key.right), RIGHT_SIDES[decision], strict=True):
            found += [Lesson(judge, cell, share, right) for judge, share in by_trace.get((model, cell), [])]
    return found


def judge_agreement(learnt: Iterable[Lesson]) -> list[JudgeAgreement]:
    """Each judge's agreement with people, in order of name."""
    by_judge: dict[str, list[Lesson]] = {}
    for lesson in learnt:
        by_judge.setdefault(lesson.judge, []).append(lesson)
    return [_judge(judge, found) for judge, found in sorted(by_judge.items())]


def _judge(judge: str, found: list[Lesson]) -> JudgeAgreement:
    clear = [lesson for lesson in found if lesson.share != 0.5]
    hits = sum((lesson.share > 0.5) == lesson.right for lesson in clear)
    table = np.array([[float(x.share > 0.5) for x in clear], [float(x.right) for x in clear]])
    return JudgeAgreement(judge, share_of(hits, len(clear), len(found) - len(clear)), _fleiss(table))


def _pair(said: Said, one: str, other: str) -> PairAgreement:
    shared = {key: d for key, d in said.items() if one in d and other in d}
    same = sum(d[one] is d[other] for d in shared.values())
    return PairAgreement(one, other, share_of(same, len(shared)), _kappa(shared, [one, other]))


def _kappa(said: Said, raters: list[str]) -> Agreement:
    table = np.full((len(raters), len(said)), np.nan)
    for item, decisions in enumerate(said.values()):
        for row, rater in enumerate(raters):
            if rater in decisions:
                table[row, item] = CATEGORIES[decisions[rater]]
    return _fleiss(table)


def _fleiss(table: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Agreement:
    return fleiss_kappa(count_ratings(table))
