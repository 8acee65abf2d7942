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

from auditor.agents.logic.questions import comparison_prompt_fields, render_question
from auditor.domain import Cell, ComparisonChoice, Conflict, ConflictKind, ItemSet, Message, Relation
from auditor.errors import UsageError
from auditor.metrics.logic import JudgeAnswers, pooled_commutativity, pooled_transitivity
from auditor.metrics.ranking import (
    BradleyTerry,
    Repair,
    add_flip_noise,
    bradley_terry,
    comparisons_from_preferences,
    elo,
    repair,
)
from auditor.metrics.repair_effect import measure_repair_effect
from auditor.storage import audits, comparisons, results
from auditor.storage.comparisons import ItemSetAnswers
from auditor.storage.database import Database

REPAIRED_SUFFIX = "after repair"


@dataclass(frozen=True)
class RepairedAnswers:
    """One judge's answers on one set, as they were and as they follow from the ranking."""

    original: ItemSetAnswers
    repair: Repair


class FlippedComparison(NamedTuple):
    """One verdict that the ranking reverses: a question with `first` shown first, by position in the set."""

    judge: str
    item_set: ItemSet
    first: int
    second: int
    original_choice: ComparisonChoice
    repaired_choice: ComparisonChoice


class RepairSummary(NamedTuple):
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


def repair_comparisons(
    db: Database, audit_name: str, judge: str | None = None, *, noise: float = 0.0, seed: int = 0
) -> list[RepairedAnswers]:
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
    found = audits.get_audit(db, audit_name)
    sets = comparisons.load_item_sets(db, found.id)
    answers = comparisons.build_set_answers(sets, comparisons.load_comparisons(db, found.id))
    judges = list(dict.fromkeys(a.judge for a in answers))
    if not judges:
        raise UsageError(
            f"audit '{audit_name}' has no comparisons.", "Ask for the probe 'logic', or `auditor import comparisons`."
        )
    if judge is not None and judge not in judges:
        raise UsageError(f"audit '{audit_name}' has no judge '{judge}'.", f"It has: {', '.join(judges)}.")
    first = {name: min(a.paraphrase for a in answers if a.judge == name) for name in judges}
    mine = [a for a in answers if judge in (None, a.judge) and a.paraphrase == first[a.judge]]
    if noise:
        mine = [replace(a, preferences=add_flip_noise(a.preferences, noise, seed + i)) for i, a in enumerate(mine)]
    return [RepairedAnswers(a, repair(a.preferences)) for a in mine]


def list_flips(repaired: Sequence[RepairedAnswers]) -> list[FlippedComparison]:
    """The verdicts that the rankings reverse, in order."""
    return [
        FlippedComparison(
            judge=m.original.judge,
            item_set=m.original.item_set,
            first=int(i),
            second=int(j),
            original_choice=ComparisonChoice.FIRST if m.original.preferences[i, j] > 0.5 else ComparisonChoice.SECOND,
            repaired_choice=ComparisonChoice.FIRST if m.repair.preferences[i, j] > 0.5 else ComparisonChoice.SECOND,
        )
        for m in repaired
        for i, j in m.repair.flipped
    ]


def summarize_repairs(repaired: Sequence[RepairedAnswers], k: int = 3, max_subsets: int = 1000) -> list[RepairSummary]:
    """Before and after, judge by judge, over all sets; transitivity as of one order a pair, drawn."""
    return [
        _summarize_judge(judge, [m for m in repaired if m.original.judge == judge], k, max_subsets)
        for judge in dict.fromkeys(m.original.judge for m in repaired)
    ]


def _summarize_judge(judge: str, repaired: Sequence[RepairedAnswers], k: int, max_subsets: int) -> RepairSummary:
    before = [_to_judge_answers(m.original, m.original.preferences) for m in repaired]
    after = [_to_judge_answers(m.original, m.repair.preferences) for m in repaired]
    tran = [pooled_transitivity(each, k, max_subsets).value for each in (before, after)]
    comm = [pooled_commutativity(each).value for each in (before, after)]
    people = measure_repair_effect(before, [one.preferences for one in after])
    return RepairSummary(
        judge=judge,
        sets=len(repaired),
        questions=sum(int((~np.isnan(one.preferences)).sum()) for one in before),
        flipped=sum(len(m.repair.flipped) for m in repaired),
        transitivity=(tran[0], tran[1]),
        commutativity=(comm[0], comm[1]),
        people=(people.before.value, people.after.value),
    )


def _to_judge_answers(answers: ItemSetAnswers, preferences: NDArray[np.float64]) -> JudgeAnswers:
    return JudgeAnswers(preferences, answers.negated, answers.asked, answers.samples, answers.human_preferences)


class ItemRating(NamedTuple):
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


def rate_items(repaired: Sequence[RepairedAnswers], seed: int = 0) -> tuple[list[ItemRating], list[str]]:
    """Every item by win-loss rate, Bradley and Terry's model and Elo, best first in each set; and what is to be said.

    Said are items without a comparison, and sets that comparisons do not connect: their ratings share no scale.
    """
    rows, notes = [], []
    for m in repaired:
        n, one = len(m.original.item_set.items), m.original.item_set
        compared = comparisons_from_preferences(m.original.preferences)
        strength, note = _estimate_strengths(compared, n)
        by_elo = elo(compared, n, seed=seed)
        notes += [f"{m.original.judge}, {one.context}: {note}"] if note else []
        columns = (m.repair.rating, strength.strength, strength.std_error, by_elo.rating, by_elo.low, by_elo.high)
        rest = [i for i in range(n) if i not in m.repair.order]
        for i in [*m.repair.order, *rest]:
            rows.append(ItemRating(m.original.judge, one.context, one.items[i].id, *(float(c[i]) for c in columns)))
    return rows, notes


def _estimate_strengths(comparison_rows: NDArray[np.float64], n_items: int) -> tuple[BradleyTerry, str | None]:
    """By maximum likelihood where that exists, with errors relative to the mean item; else with a prior, saying so."""
    plain = bradley_terry(comparison_rows, n_items, prior=0.0)
    if plain.reason is None and np.isfinite(plain.strength).all():
        return plain, None
    drawn = bradley_terry(comparison_rows, n_items)
    why = drawn.reason or "some items won or lost all"
    return drawn, f"{why}; strengths are drawn to 0 by a prior, and those of sets apart share no scale"


def build_training_rows(repaired: Sequence[RepairedAnswers]) -> list[TrainingRow]:
    """What follows from the rankings, for preference tuning: both orders and both forms of every pair that is known.

    Pairs of equal rate, and pairs that nothing connects, are left out.
    """
    return [row for m in repaired for row in _training_rows_of_set(m)]


def _training_rows_of_set(repaired: RepairedAnswers) -> list[TrainingRow]:
    one, found = repaired.original.item_set, repaired.repair
    flipped = {(int(i), int(j)) for i, j in found.flipped}
    rows = []
    for relation, answers in ((Relation.STANDARD, found.preferences), (Relation.NEGATED, found.negated)):
        for i, j in np.argwhere(~np.isnan(answers)):
            chosen, rejected = ("A", "B") if answers[i, j] > 0.5 else ("B", "A")
            rows.append(
                TrainingRow(
                    judge=repaired.original.judge,
                    context=one.context,
                    item_a=one.items[i].id,
                    item_b=one.items[j].id,
                    relation=relation,
                    messages=render_question(one, int(i), int(j), relation),
                    chosen=f'{{"answer": "{chosen}"}}',
                    rejected=f'{{"answer": "{rejected}"}}',
                    flipped=relation is Relation.STANDARD and (int(i), int(j)) in flipped,
                )
            )
    return rows


# --- for people -------------------------------------------------------------------------------------------------


def send_to_review(db: Database, audit_name: str, flips: Sequence[FlippedComparison]) -> int:
    """Put exactly the flipped verdicts into the review queue, a conflict for each pair; those sent before go.

    What people decided before holds on, since it belongs to the pair and not to the sending.

    Returns:
        How many conflicts there are now.
    """
    conflicts: dict[Conflict, tuple[str, str]] = {}
    for flip in flips:
        conflict, claims = _build_conflict(flip)
        if not any(known.id == conflict.id for known in conflicts):
            conflicts[conflict] = claims
    results.replace_logic_conflicts(db, audits.get_audit(db, audit_name).id, conflicts)
    return len(conflicts)


def _build_conflict(flip: FlippedComparison) -> tuple[Conflict, tuple[str, str]]:
    """The conflict between a verdict and what follows: of the two items +1 upholds the one named first."""
    names = sorted((flip.first, flip.second))
    one, other = (flip.item_set.items[i] for i in names)
    said = flip.original_choice is ComparisonChoice.FIRST
    first_of_pair = said == (flip.first == names[0])
    topic = f"{one.id} / {other.id}"
    score = 1.0 if first_of_pair else -1.0
    conflict = Conflict(
        cell=Cell(flip.item_set.context, topic),
        left=flip.judge,
        right=f"{flip.judge} {REPAIRED_SUFFIX}",
        score_left=score,
        score_right=-score,
        kind=ConflictKind.LOGIC,
    )
    question = comparison_prompt_fields(flip.item_set, Relation.STANDARD)["question"]
    texts = [f"{question}\n\n{item.text}" for item in ((one, other) if first_of_pair else (other, one))]
    return conflict, (texts[0], texts[1])
