"""REPAIR (Aligning with Logic): the answers implied by all of a judge's comparisons, and the verdicts they reverse.

The items of a set are ranked; every pair then has one answer, in both orders and both forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from auditor.domain import ComparisonChoice, derive_seed
from auditor.errors import UsageError
from auditor.metrics.preference_repair import RatingMethod, Repair, add_flip_noise, repair
from auditor.probes.logic import comparison_rows
from auditor.probes.logic.comparison_rows import ItemSetAnswers
from auditor.probes.logic.comparisons import Comparison, ItemSet
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.records import load_records


@dataclass(frozen=True)
class RepairedAnswers:
    """One judge's answers on one set.

    Attributes:
        raw: the judge's answers.
        original: the answers that were repaired: the raw ones, with noise if any was added.
        repair: the ranking, with the answers implied by it.
        noise: share of all decided answers of the judge that were reversed, in [0, 1].
    """

    raw: ItemSetAnswers
    original: ItemSetAnswers
    repair: Repair
    noise: float


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


def repair_comparisons(
    db: Database,
    audit_name: str,
    judge: str | None = None,
    *,
    noise: float = 0.0,
    seed: int | None = None,
    method: RatingMethod = "win-loss",
) -> list[RepairedAnswers]:
    """Repair the comparisons of an audit, judge by judge and set by set, in the first wording they were asked in.

    Args:
        db: the database with the audit.
        audit_name: name of the audit.
        judge: only this judge's comparisons; None repairs those of all judges.
        noise: share of all decided answers of a judge, in [0, 1], to reverse at random before the repair, to test it:
            of those to the standard question, and of those in negated form.
        seed: of the noise (None is 0), and of the order of comparisons for Elo (None takes them in the order of the
            file that they were imported from; of a model's answers, in that of the items: first all that show the
            first item first).
        method: of rating the items.

    Returns:
        One entry per judge and item set.

    Raises:
        StorageError: there is no such audit.
        UsageError: it has no comparisons, or no such judge.
    """
    selected = _select_answers(db, audit_name, judge)
    return [
        RepairedAnswers(raw, original, repair(original.preferences, method, seed, original.positions), noise)
        for raw, original in zip(selected, _add_noise(selected, noise, seed or 0), strict=True)
    ]


def _select_answers(db: Database, audit_name: str, judge: str | None) -> list[ItemSetAnswers]:
    """The answers of one judge or (None) of all, in the first wording of each judge; see `repair_comparisons`."""
    audit = audits.get_audit(db, audit_name)
    item_sets = comparison_rows.load_item_sets(db, audit.id)
    answers = comparison_rows.build_set_answers(item_sets, load_records(db, audit.id, Comparison))
    judges = list(dict.fromkeys(set_answers.judge for set_answers in answers))
    if not judges:
        raise UsageError(
            f"audit '{audit_name}' has no comparisons.",
            "Run the audit with the probe 'logic', or import comparisons with `auditor import comparisons`.",
        )
    if judge is not None and judge not in judges:
        raise UsageError(f"audit '{audit_name}' has no judge '{judge}'.", f"It has: {', '.join(judges)}.")
    first_paraphrase = {
        name: min(set_answers.paraphrase for set_answers in answers if set_answers.judge == name) for name in judges
    }
    return [
        set_answers
        for set_answers in answers
        if judge in (None, set_answers.judge) and set_answers.paraphrase == first_paraphrase[set_answers.judge]
    ]


def _add_noise(answers: Sequence[ItemSetAnswers], noise: float, seed: int) -> list[ItemSetAnswers]:
    """The answers with a share of each judge's standard ones reversed, over all its sets, and of its negated ones."""
    noisy = list(answers)
    for judge in dict.fromkeys(set_answers.judge for set_answers in answers):
        indices = [i for i, set_answers in enumerate(answers) if set_answers.judge == judge]
        standard = add_flip_noise([answers[i].preferences for i in indices], noise, seed)
        negated_seed = derive_seed(seed, "logic", "noise", "negated")  # else the same questions would be reversed
        negated = add_flip_noise([answers[i].negated for i in indices], noise, negated_seed)
        for i, preferences, negated_preferences in zip(indices, standard, negated, strict=True):
            noisy[i] = replace(answers[i], preferences=preferences, negated=negated_preferences)
    return noisy


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
