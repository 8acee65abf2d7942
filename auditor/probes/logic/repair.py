"""REPAIR (Aligning with Logic): ratings of items, the answers that they imply, and the stages of its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from auditor.domain import ComparisonChoice, derive_seed
from auditor.errors import UsageError
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.unit_means import mean_over_units
from auditor.metrics.logic.consistency import LogicEstimate, decisions, estimate_commutativity
from auditor.metrics.logic.ranking import (
    BradleyTerry,
    RatingMethod,
    Repair,
    add_flip_noise,
    bradley_terry,
    comparisons_from_preferences,
    elo,
    repair,
    win_loss_rate,
)
from auditor.metrics.logic.transitivity import PartialTransitivity, estimate_transitivity
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
    """Rate every item by win-loss rate, the Bradley–Terry model and Elo, best first by the method of repair.

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
            win_loss_rate(comparison_rows, n_items),
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
        comparison_rows: shape (m, 3): first item, second item and outcome (see `auditor.metrics.logic.ranking`).

    Returns:
        The strengths, and a note that explains the prior; None where none was needed.
    """
    unregularized = bradley_terry(comparison_rows, n_items, prior=0.0)
    if unregularized.reason is None and np.isfinite(unregularized.strength).all():
        return unregularized, None
    regularized = bradley_terry(comparison_rows, n_items)
    reason = regularized.reason or "some items won or lost all"
    return regularized, (
        f"{reason}; a prior shrinks strengths towards 0, and strengths from different sets are not comparable"
    )


Floats = NDArray[np.float64]
RepairStage = Literal["raw", "perturbed", "repaired", "size-matched"]
REPAIR_STAGES: tuple[RepairStage, ...] = get_args(RepairStage)


class StageAnswers(NamedTuple):
    """One judge's answers on one set at one stage, shape (N, N) each; nan where there is none.

    Attributes:
        flipped: whether the judge's answer to the standard question was the opposite one.
    """

    source: RepairedAnswers
    standard: Floats
    negated: Floats
    flipped: NDArray[np.bool_]


class StageSummary(NamedTuple):
    """Size and consistency of one judge's data at one stage: a row of table 2 of the paper.

    Attributes:
        negated: whether questions in negated form are counted.
        transitivity: share of the subsets of K items without a cycle by the comparisons there are, as the mean over
            sets. Missing comparisons cannot be part of a cycle: it has the mean share of pairs that are present.
        commutativity: mean over sets of the share of pairs decided alike in both orders.
        rows: comparisons with a decision.
        rows_per_set: `rows` per item set.
    """

    judge: str
    stage: RepairStage
    negated: bool
    transitivity: PartialTransitivity
    commutativity: LogicEstimate
    rows: int
    rows_per_set: Estimate

    def to_json(self) -> dict[str, Any]:
        """The values by name, and the estimates with their intervals under `estimates`."""
        estimates = {
            "transitivity": self.transitivity,
            "commutativity": self.commutativity,
            "rows_per_set": self.rows_per_set,
        }
        return {
            **self._asdict(),
            **{name: estimate.value for name, estimate in estimates.items()},
            "pairs_present": self.transitivity.pairs_present,
            "estimates": {name: asdict(estimate) for name, estimate in estimates.items()},
        }


def select_stage(
    repaired: Sequence[RepairedAnswers], stage: RepairStage, *, negated: bool = True, seed: int = 0
) -> list[StageAnswers]:
    """Select the answers of a stage, one entry per judge and item set.

    Args:
        repaired: of any judges.
        stage: `raw` is as the judge answered, `perturbed` with noise, `repaired` as the ranking implies, and
            `size-matched` a random sample of the repaired answers with as many as `perturbed` has, for each judge.
        negated: whether answers to questions in negated form are kept.
        seed: of the sample.
    """
    answers = [_select_stage_answers(entry, stage, negated=negated) for entry in repaired]
    if stage != "size-matched":
        return answers
    for judge in dict.fromkeys(entry.raw.judge for entry in repaired):
        indices = [i for i, entry in enumerate(repaired) if entry.raw.judge == judge]
        size = sum(_count_rows(_select_stage_answers(repaired[i], "perturbed", negated=negated)) for i in indices)
        for i, sample in zip(indices, _sample_rows([answers[i] for i in indices], size, seed), strict=True):
            answers[i] = sample
    return answers


def summarize_stages(
    repaired: Sequence[RepairedAnswers], *, k: int = 5, seed: int = 0, max_subsets: int = 1000, negated: bool = True
) -> list[StageSummary]:
    """Measure each judge's data at every stage; `perturbed` is left out if no noise was asked for.

    Args:
        k: number of items in each subset that is checked for cycles.
        seed: of the samples.
        max_subsets: most subsets to check per set; of more, a sample is drawn.
        negated: whether stages are also counted with the negated form: the raw ones if the judge was asked in it.
    """
    rows = []
    for judge in dict.fromkeys(entry.raw.judge for entry in repaired):
        sets = [entry for entry in repaired if entry.raw.judge == judge]
        has_noise = sets[0].noise > 0  # also if so few answers were reversed that none was
        is_asked_negated = any(not np.isnan(_decided_only(entry.raw.negated)).all() for entry in sets)
        for stage in REPAIR_STAGES:
            has_negated = is_asked_negated or stage in ("repaired", "size-matched")
            for with_negated in (False, True) if negated and has_negated else (False,):
                if stage != "perturbed" or has_noise:
                    answers = select_stage(sets, stage, negated=with_negated, seed=seed)
                    rows.append(_summarize_stage(judge, stage, answers, k, seed, max_subsets, negated=with_negated))
    return rows


def _select_stage_answers(entry: RepairedAnswers, stage: RepairStage, *, negated: bool) -> StageAnswers:
    """Answers of one set at a stage; `size-matched` is not yet sampled."""
    if stage in ("raw", "perturbed"):
        source = entry.raw if stage == "raw" else entry.original
        standard, negated_answers = source.preferences, source.negated
        flipped = np.zeros(standard.shape, dtype=bool)
    else:
        standard, negated_answers = entry.repair.preferences, entry.repair.negated
        flipped = np.zeros(standard.shape, dtype=bool)
        flipped[tuple(entry.repair.flipped.T)] = True
    selected_negated = negated_answers if negated else np.full(standard.shape, np.nan)
    return StageAnswers(entry, _decided_only(standard), _decided_only(selected_negated), flipped)


def _decided_only(preferences: Floats) -> Floats:
    """The preferences without ties and without the diagonal, which are no comparison to train on."""
    decided = np.where(np.abs(decisions(preferences)) == 1, preferences, np.nan)
    np.fill_diagonal(decided, np.nan)
    return decided


def _count_rows(answers: StageAnswers) -> int:
    """Number of decided answers, of both forms."""
    return int((~np.isnan(answers.standard)).sum() + (~np.isnan(answers.negated)).sum())


def _sample_rows(answers: Sequence[StageAnswers], size: int, seed: int) -> list[StageAnswers]:
    """Keep a random sample of the answers of all sets, without replacement; all of them if there are not more."""
    grids = [np.stack([entry.standard, entry.negated]) for entry in answers]
    rows = [(s, *map(int, position)) for s, grid in enumerate(grids) for position in np.argwhere(~np.isnan(grid))]
    sampled = [np.full(grid.shape, np.nan) for grid in grids]
    for index in np.random.default_rng(seed).permutation(len(rows))[:size]:
        s, *position = rows[index]
        sampled[s][tuple(position)] = grids[s][tuple(position)]
    return [entry._replace(standard=grid[0], negated=grid[1]) for entry, grid in zip(answers, sampled, strict=True)]


def _summarize_stage(
    judge: str, stage: RepairStage, answers: Sequence[StageAnswers], k: int, seed: int, max_subsets: int, *,
    negated: bool,
) -> StageSummary:  # fmt: skip
    """Measure one judge's data at one stage; see `summarize_stages`."""
    sets = []
    for entry in answers:
        asked = np.stack([~np.isnan(entry.standard), ~np.isnan(entry.negated)])
        shown = replace(entry.source.original, preferences=entry.standard, asked=asked, negated=entry.negated)
        sets.append(shown.metric_input)
    n_rows = list(map(_count_rows, answers))
    most = max(2 * entry.standard.shape[0] * (entry.standard.shape[0] - 1) for entry in answers)
    return StageSummary(
        judge=judge,
        stage=stage,
        negated=negated,
        transitivity=estimate_transitivity(sets, k, max_subsets, seed).partial["instances"],
        commutativity=estimate_commutativity(sets, "instances"),
        rows=sum(n_rows),
        rows_per_set=mean_over_units(
            n_rows, {"set": range(len(n_rows))}, (0.0, float(most)), empty_reason="no item set"
        ),
    )
