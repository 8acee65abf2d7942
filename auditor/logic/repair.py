"""REPAIR (Aligning with Logic): what follows from a judge's comparisons as a whole, and which of its verdicts it flips.

The items of a set are ranked by win-loss rate; every pair then has one answer, in both orders and both forms. Out of it
come a list of flipped verdicts, rows for preference tuning, and conflicts for people to settle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.agents.logic.questions import asked, question_messages
from auditor.domain import Cell, Choice, Conflict, ConflictKind, ItemSet, Message, Relation
from auditor.errors import UsageError
from auditor.metrics.logic import Answered, commutativity_over, transitivity_over
from auditor.metrics.ranking import BradleyTerry, Repair, bradley_terry, comparisons_of, elo, flip_noise, repair
from auditor.metrics.repair_effect import mending
from auditor.storage import audits, comparisons, results
from auditor.storage.comparisons import SetAnswers
from auditor.storage.database import Database

SIDE = "after repair"


@dataclass(frozen=True)
class Mended:
    """One judge's answers on one set, as they were and as they follow from the ranking."""

    given: SetAnswers
    repair: Repair


class Flip(NamedTuple):
    """One verdict that the ranking reverses: a question with `first` shown first, by position in the set."""

    judge: str
    items: ItemSet
    first: int
    second: int
    said: Choice
    follows: Choice


class Outcome(NamedTuple):
    """What the repair does to one judge's answers; shares are None where they cannot be measured.

    Attributes:
        questions: answers to the standard question; flipped: those that the ranking reverses.
        people: share of answers that say what people say, before and after, of those that people and both decide.
    """

    judge: str
    sets: int
    questions: int
    flipped: int
    transitivity: tuple[float | None, float | None]
    commutativity: tuple[float | None, float | None]
    people: tuple[float | None, float | None]


class TrainingRow(NamedTuple):
    """One question with the answer that follows, and the one that does not."""

    judge: str
    context: str
    item_a: str
    item_b: str
    relation: Relation
    messages: tuple[Message, ...]
    chosen: str
    rejected: str
    flipped: bool


def mend(db: Database, audit: str, judge: str | None = None, *, noise: float = 0.0, seed: int = 0) -> list[Mended]:
    """Repair the comparisons of an audit, judge by judge and set by set, in the first wording they were asked in.

    Args:
        db: where the audit is.
        audit: its name.
        judge: only this one's.
        noise: share of the answers to reverse first, to see what the repair makes of it.
        seed: of the noise.

    Raises:
        StorageError: there is no such audit.
        UsageError: it compares nothing, or has no such judge.
    """
    found = audits.get(db, audit)
    sets = comparisons.sets(db, found.id)
    answers = comparisons.answers(sets, comparisons.comparisons(db, found.id))
    judges = list(dict.fromkeys(a.judge for a in answers))
    if not judges:
        raise UsageError(
            f"audit '{audit}' has no comparisons.", "Ask for the probe 'logic', or `auditor import comparisons`."
        )
    if judge is not None and judge not in judges:
        raise UsageError(f"audit '{audit}' has no judge '{judge}'.", f"It has: {', '.join(judges)}.")
    first = {name: min(a.paraphrase for a in answers if a.judge == name) for name in judges}
    mine = [a for a in answers if judge in (None, a.judge) and a.paraphrase == first[a.judge]]
    if noise:
        mine = [replace(a, preferences=flip_noise(a.preferences, noise, seed + i)) for i, a in enumerate(mine)]
    return [Mended(a, repair(a.preferences)) for a in mine]


def flips(mended: Sequence[Mended]) -> list[Flip]:
    """The verdicts that the rankings reverse, in order."""
    return [
        Flip(
            judge=m.given.judge,
            items=m.given.items,
            first=int(i),
            second=int(j),
            said=Choice.FIRST if m.given.preferences[i, j] > 0.5 else Choice.SECOND,
            follows=Choice.FIRST if m.repair.preferences[i, j] > 0.5 else Choice.SECOND,
        )
        for m in mended
        for i, j in m.repair.flipped
    ]


def outcomes(mended: Sequence[Mended], k: int = 3, max_subsets: int = 1000) -> list[Outcome]:
    """Before and after, judge by judge, over all sets; transitivity as of one order a pair, drawn."""
    return [
        _outcome(judge, [m for m in mended if m.given.judge == judge], k, max_subsets)
        for judge in dict.fromkeys(m.given.judge for m in mended)
    ]


def _outcome(judge: str, mine: Sequence[Mended], k: int, max_subsets: int) -> Outcome:
    before = [_answered(m.given, m.given.preferences) for m in mine]
    after = [_answered(m.given, m.repair.preferences) for m in mine]
    tran = [transitivity_over(each, k, max_subsets).value for each in (before, after)]
    comm = [commutativity_over(each).value for each in (before, after)]
    people = mending(before, [one.preferences for one in after])
    return Outcome(
        judge=judge,
        sets=len(mine),
        questions=sum(int((~np.isnan(one.preferences)).sum()) for one in before),
        flipped=sum(len(m.repair.flipped) for m in mine),
        transitivity=(tran[0], tran[1]),
        commutativity=(comm[0], comm[1]),
        people=(people.before.value, people.after.value),
    )


def _answered(given: SetAnswers, preferences: NDArray[np.float64]) -> Answered:
    return Answered(preferences, given.negated, given.asked, given.samples, given.people)


class Rating(NamedTuple):
    """One item by three ratings; nan where it has no comparison, or no estimate.

    Attributes:
        win_loss: (wins - losses) / comparisons, in [-1, 1].
        strength, std_error: Bradley and Terry's, on the logit scale, relative to the mean item.
        elo, elo_low, elo_high: mean and 95% range over a hundred orders of the comparisons.
    """

    judge: str
    context: str
    item: str
    win_loss: float
    strength: float
    std_error: float
    elo: float
    elo_low: float
    elo_high: float


def ratings(mended: Sequence[Mended], seed: int = 0) -> tuple[list[Rating], list[str]]:
    """Every item by win-loss rate, Bradley and Terry's model and Elo, best first in each set; and what is to be said.

    Said are items without a comparison, and sets that comparisons do not connect: their ratings share no scale.
    """
    rows, notes = [], []
    for m in mended:
        n, one = len(m.given.items.items), m.given.items
        compared = comparisons_of(m.given.preferences)
        strength, note = _strengths(compared, n)
        by_elo = elo(compared, n, seed=seed)
        notes += [f"{m.given.judge}, {one.context}: {note}"] if note else []
        columns = (m.repair.rating, strength.strength, strength.std_error, by_elo.rating, by_elo.low, by_elo.high)
        rest = [i for i in range(n) if i not in m.repair.order]
        for i in [*m.repair.order, *rest]:
            rows.append(Rating(m.given.judge, one.context, one.items[i].id, *(float(c[i]) for c in columns)))
    return rows, notes


def _strengths(compared: NDArray[np.float64], n: int) -> tuple[BradleyTerry, str | None]:
    """By maximum likelihood where that exists, with errors relative to the mean item; else with a prior, saying so."""
    plain = bradley_terry(compared, n, prior=0.0)
    if plain.reason is None and np.isfinite(plain.strength).all():
        return plain, None
    drawn = bradley_terry(compared, n)
    why = drawn.reason or "some items won or lost all"
    return drawn, f"{why}; strengths are drawn to 0 by a prior, and those of sets apart share no scale"


def training_rows(mended: Sequence[Mended]) -> list[TrainingRow]:
    """What follows from the rankings, for preference tuning: both orders and both forms of every pair that is known.

    Pairs of equal rate, and pairs that nothing connects, are left out.
    """
    return [row for m in mended for row in _rows(m)]


def _rows(mended: Mended) -> list[TrainingRow]:
    one, found = mended.given.items, mended.repair
    flipped = {(int(i), int(j)) for i, j in found.flipped}
    rows = []
    for relation, answers in ((Relation.STANDARD, found.preferences), (Relation.NEGATED, found.negated)):
        for i, j in np.argwhere(~np.isnan(answers)):
            chosen, rejected = ("A", "B") if answers[i, j] > 0.5 else ("B", "A")
            rows.append(
                TrainingRow(
                    judge=mended.given.judge,
                    context=one.context,
                    item_a=one.items[i].id,
                    item_b=one.items[j].id,
                    relation=relation,
                    messages=question_messages(one, int(i), int(j), relation),
                    chosen=f'{{"answer": "{chosen}"}}',
                    rejected=f'{{"answer": "{rejected}"}}',
                    flipped=relation is Relation.STANDARD and (int(i), int(j)) in flipped,
                )
            )
    return rows


# --- for people -------------------------------------------------------------------------------------------------


def send_to_review(db: Database, audit: str, found: Sequence[Flip]) -> int:
    """Put exactly the flipped verdicts into the review queue, a conflict for each pair; those sent before go.

    What people decided before holds on, since it belongs to the pair and not to the sending.

    Returns:
        How many conflicts there are now.
    """
    conflicts: dict[Conflict, tuple[str, str]] = {}
    for flip in found:
        conflict, claims = _conflict(flip)
        if not any(known.id == conflict.id for known in conflicts):
            conflicts[conflict] = claims
    results.replace_flips(db, audits.get(db, audit).id, conflicts)
    return len(conflicts)


def _conflict(flip: Flip) -> tuple[Conflict, tuple[str, str]]:
    """The conflict between a verdict and what follows: of the two items +1 upholds the one named first."""
    names = sorted((flip.first, flip.second))
    one, other = (flip.items.items[i] for i in names)
    said = flip.said is Choice.FIRST
    first_of_pair = said == (flip.first == names[0])
    topic = f"{one.id} / {other.id}"
    score = 1.0 if first_of_pair else -1.0
    conflict = Conflict(
        cell=Cell(flip.items.context, topic),
        left=flip.judge,
        right=f"{flip.judge} {SIDE}",
        score_left=score,
        score_right=-score,
        kind=ConflictKind.LOGIC,
    )
    question = asked(flip.items, Relation.STANDARD)["question"]
    texts = [f"{question}\n\n{item.text}" for item in ((one, other) if first_of_pair else (other, one))]
    return conflict, (texts[0], texts[1])
