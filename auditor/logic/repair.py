"""REPAIR (Aligning with Logic): the answers implied by all of a judge's comparisons, and the verdicts they reverse.

The items of a set are ranked by win-loss rate; every pair then has one answer, in both orders and both forms. The
results are a list of flipped verdicts, rows for preference tuning, and conflicts for human review.
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
from auditor.metrics.logic import JudgeAnswers, estimate_commutativity
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
from auditor.metrics.set_transitivity import estimate_transitivity
from auditor.storage import audits, comparisons, results
from auditor.storage.comparisons import ItemSetAnswers
from auditor.storage.database import Database

REPAIRED_SUFFIX = "after repair"
"""Suffix of the judge's name for the side of a conflict that holds the repaired answer."""


@dataclass(frozen=True)
class RepairedAnswers:
    """One judge's answers on one set: the original ones, and the ranking with the answers implied by it (`repair`)."""

    original: ItemSetAnswers
    repair: Repair


class FlippedComparison(NamedTuple):
    """A verdict that the ranking reverses.

    Attributes:
        first, second: positions in the set of the item shown first and of the item shown second.
        original_choice: what the judge answered.
        repaired_choice: what follows from the ranking.
    """

    judge: str
    item_set: ItemSet
    first: int
    second: int
    original_choice: ComparisonChoice
    repaired_choice: ComparisonChoice


class RepairSummary(NamedTuple):
    """Effect of the repair on one judge's answers.

    Each pair of numbers is a share in [0, 1] before and after the repair, None where it cannot be measured.

    Attributes:
        sets: number of item sets.
        questions: number of answers to the standard question.
        flipped: number of those that the ranking reverses.
        transitivity: share of the subsets of items without a cycle, of those with a decision on every pair.
        commutativity: share of pairs whose decision is the same in both orders, of those decided in both.
        people: share of answers that agree with people, over the questions that people, the judge and the ranking all
            decide (no ties).
    """

    judge: str
    sets: int
    questions: int
    flipped: int
    transitivity: tuple[float | None, float | None]
    commutativity: tuple[float | None, float | None]
    people: tuple[float | None, float | None]


class TrainingRow(NamedTuple):
    """One question with the answer implied by the ranking (`chosen`) and the opposite one (`rejected`).

    Attributes:
        context: name of the item set.
        item_a, item_b: ids of the items shown first and second.
        relation: whether the question is the standard or the negated form.
        messages: the prompt.
        flipped: whether the judge had given the rejected answer; always False for the negated form.
    """

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
        db: the database with the audit.
        audit_name: name of the audit.
        judge: only this judge's comparisons; None repairs those of all judges.
        noise: share of the answers, in [0, 1], to reverse at random before the repair, to test it.
        seed: of the noise.

    Returns:
        One entry per judge and item set.

    Raises:
        StorageError: there is no such audit.
        UsageError: it has no comparisons, or no such judge.
    """
    audit = audits.get_audit(db, audit_name)
    item_sets = comparisons.load_item_sets(db, audit.id)
    answers = comparisons.build_set_answers(item_sets, comparisons.load_comparisons(db, audit.id))
    judges = list(dict.fromkeys(set_answers.judge for set_answers in answers))
    if not judges:
        raise UsageError(
            f"audit '{audit_name}' has no comparisons.", "Ask for the probe 'logic', or `auditor import comparisons`."
        )
    if judge is not None and judge not in judges:
        raise UsageError(f"audit '{audit_name}' has no judge '{judge}'.", f"It has: {', '.join(judges)}.")
    first_paraphrase = {
        name: min(set_answers.paraphrase for set_answers in answers if set_answers.judge == name) for name in judges
    }
    selected = [
        set_answers
        for set_answers in answers
        if judge in (None, set_answers.judge) and set_answers.paraphrase == first_paraphrase[set_answers.judge]
    ]
    if noise:
        selected = [
            replace(set_answers, preferences=add_flip_noise(set_answers.preferences, noise, seed + i))
            for i, set_answers in enumerate(selected)
        ]
    return [RepairedAnswers(set_answers, repair(set_answers.preferences)) for set_answers in selected]


def list_flips(repaired: Sequence[RepairedAnswers]) -> list[FlippedComparison]:
    """List the verdicts that the rankings reverse, in the order of the sets and of the items in each."""
    return [
        FlippedComparison(
            judge=repaired_set.original.judge,
            item_set=repaired_set.original.item_set,
            first=int(i),
            second=int(j),
            # A preference above 0.5 means that the item shown first was preferred.
            original_choice=ComparisonChoice.FIRST
            if repaired_set.original.preferences[i, j] > 0.5
            else ComparisonChoice.SECOND,
            repaired_choice=ComparisonChoice.FIRST
            if repaired_set.repair.preferences[i, j] > 0.5
            else ComparisonChoice.SECOND,
        )
        for repaired_set in repaired
        for i, j in repaired_set.repair.flipped
    ]


def summarize_repairs(repaired: Sequence[RepairedAnswers], k: int = 3, max_subsets: int = 1000) -> list[RepairSummary]:
    """Measure each judge's answers over all its sets before and after the repair; one summary per judge.

    Transitivity is computed from one order of each pair, drawn at random.

    Args:
        k: number of items in each subset that is checked for cycles.
        max_subsets: most subsets to check per set; of more, a sample is drawn.
    """
    return [
        _summarize_judge(
            judge, [repaired_set for repaired_set in repaired if repaired_set.original.judge == judge], k, max_subsets
        )
        for judge in dict.fromkeys(repaired_set.original.judge for repaired_set in repaired)
    ]


def _summarize_judge(judge: str, repaired: Sequence[RepairedAnswers], k: int, max_subsets: int) -> RepairSummary:
    """Measure one judge's answers over all its sets before and after the repair; see `summarize_repairs`."""
    before = [_to_judge_answers(repaired_set.original, repaired_set.original.preferences) for repaired_set in repaired]
    after = [_to_judge_answers(repaired_set.original, repaired_set.repair.preferences) for repaired_set in repaired]
    transitivity = [
        estimate_transitivity(answer_sets, k, max_subsets).complete["pooled"].value for answer_sets in (before, after)
    ]
    commutativity = [estimate_commutativity(answer_sets, "pooled").value for answer_sets in (before, after)]
    human_agreement = measure_repair_effect(before, [answers.preferences for answers in after])
    return RepairSummary(
        judge=judge,
        sets=len(repaired),
        questions=sum(int((~np.isnan(answers.preferences)).sum()) for answers in before),
        flipped=sum(len(repaired_set.repair.flipped) for repaired_set in repaired),
        transitivity=(transitivity[0], transitivity[1]),
        commutativity=(commutativity[0], commutativity[1]),
        people=(human_agreement.before.value, human_agreement.after.value),
    )


def _to_judge_answers(answers: ItemSetAnswers, preferences: NDArray[np.float64]) -> JudgeAnswers:
    """Convert the answers on a set to the input of the metrics, with the given preferences instead of its own."""
    return JudgeAnswers(
        preferences,
        answers.negated,
        answers.asked,
        answers.samples,
        answers.human_preferences,
        answers.item_set.context,
    )


class ItemRating(NamedTuple):
    """Three ratings of one item; nan where it has no comparison, or no estimate.

    Attributes:
        win_loss: (wins - losses) / comparisons, in [-1, 1].
        strength, std_error: of the Bradley–Terry model, on the logit scale, relative to the mean item.
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
    """Rate every item by win-loss rate, the Bradley–Terry model and Elo, best first in each set.

    Returns:
        The ratings, and notes on sets with items without a comparison, or with items that comparisons do not connect,
        whose ratings are not comparable.
    """
    rows, notes = [], []
    for repaired_set in repaired:
        n_items, item_set = len(repaired_set.original.item_set.items), repaired_set.original.item_set
        comparison_rows = comparisons_from_preferences(repaired_set.original.preferences)
        strength, note = _estimate_strengths(comparison_rows, n_items)
        elo_ratings = elo(comparison_rows, n_items, seed=seed)
        notes += [f"{repaired_set.original.judge}, {item_set.context}: {note}"] if note else []
        columns = (  # one value per item, in the order of the fields of `ItemRating` from `win_loss` on
            repaired_set.repair.rating,
            strength.strength,
            strength.std_error,
            elo_ratings.rating,
            elo_ratings.low,
            elo_ratings.high,
        )
        unrated = [i for i in range(n_items) if i not in repaired_set.repair.order]
        for i in [*repaired_set.repair.order, *unrated]:
            rows.append(
                ItemRating(
                    repaired_set.original.judge,
                    item_set.context,
                    item_set.items[i].id,
                    *(float(column[i]) for column in columns),
                )
            )
    return rows, notes


def _estimate_strengths(comparison_rows: NDArray[np.float64], n_items: int) -> tuple[BradleyTerry, str | None]:
    """Estimate Bradley–Terry strengths by maximum likelihood, or with a prior where that gives no finite estimate.

    Args:
        comparison_rows: shape (m, 3): first item, second item and outcome (see `auditor.metrics.ranking`).

    Returns:
        The strengths, and a note that explains the prior; None where none was needed.
    """
    unregularized = bradley_terry(comparison_rows, n_items, prior=0.0)
    if unregularized.reason is None and np.isfinite(unregularized.strength).all():
        return unregularized, None
    regularized = bradley_terry(comparison_rows, n_items)
    reason = regularized.reason or "some items won or lost all"
    return regularized, f"{reason}; strengths are drawn to 0 by a prior, and those of sets apart share no scale"


def build_training_rows(repaired: Sequence[RepairedAnswers]) -> list[TrainingRow]:
    """Build rows for preference tuning: both orders and both forms of every pair that the rankings decide.

    Pairs of equal rate, and pairs that no comparison connects, are left out.
    """
    return [row for repaired_set in repaired for row in _training_rows_of_set(repaired_set)]


def _training_rows_of_set(repaired: RepairedAnswers) -> list[TrainingRow]:
    """Build the training rows of one judge's ranking of one set; see `build_training_rows`."""
    item_set, repair_outcome = repaired.original.item_set, repaired.repair
    flipped = {(int(i), int(j)) for i, j in repair_outcome.flipped}
    rows = []
    for relation, answers in (
        (Relation.STANDARD, repair_outcome.preferences),
        (Relation.NEGATED, repair_outcome.negated),
    ):
        for i, j in np.argwhere(~np.isnan(answers)):
            chosen, rejected = ("A", "B") if answers[i, j] > 0.5 else ("B", "A")
            rows.append(
                TrainingRow(
                    judge=repaired.original.judge,
                    context=item_set.context,
                    item_a=item_set.items[i].id,
                    item_b=item_set.items[j].id,
                    relation=relation,
                    messages=render_question(item_set, int(i), int(j), relation),
                    chosen=f'{{"answer": "{chosen}"}}',
                    rejected=f'{{"answer": "{rejected}"}}',
                    flipped=relation is Relation.STANDARD and (int(i), int(j)) in flipped,
                )
            )
    return rows


# --- human review -----------------------------------------------------------------------------------------------


def send_to_review(db: Database, audit_name: str, flips: Sequence[FlippedComparison]) -> int:
    """Put the flipped verdicts into the queue for human review, in place of those sent before.

    There is one conflict per judge and pair of items, between the judge's answer and the one implied by the ranking.

    Earlier human decisions on a pair are kept, since they belong to the pair and not to one submission.

    Returns:
        The number of conflicts in the queue.
    """
    conflicts: dict[Conflict, tuple[str, str]] = {}  # each with the texts of its left and right side
    for flip in flips:
        conflict, claims = _build_conflict(flip)
        if not any(queued.id == conflict.id for queued in conflicts):
            conflicts[conflict] = claims
    results.replace_claim_conflicts(db, audits.get_audit(db, audit_name).id, conflicts)
    return len(conflicts)


def _build_conflict(flip: FlippedComparison) -> tuple[Conflict, tuple[str, str]]:
    """The conflict between an original (left) and a repaired verdict (right), and the text that each side upholds.

    A verdict has no survey score, so it is written as one: +1 prefers the item with the lower position in the set, -1
    the other item. The context of the set stands for the country, and both item ids for the topic.
    """
    pair = sorted((flip.first, flip.second))
    first_item, second_item = (flip.item_set.items[i] for i in pair)
    prefers_shown_first = flip.original_choice is ComparisonChoice.FIRST
    first_of_pair = prefers_shown_first == (flip.first == pair[0])  # whether the lower position was preferred
    topic = f"{first_item.id} / {second_item.id}"
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
    texts = [
        f"{question}\n\n{item.text}"
        for item in ((first_item, second_item) if first_of_pair else (second_item, first_item))
    ]
    return conflict, (texts[0], texts[1])
