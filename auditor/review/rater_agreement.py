"""Blind decisions of raters: agreement between raters, and of judges with people, calibration included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from math import log
from typing import TypeVar

import numpy as np

from auditor.domain import Cell, Decision, Outcome, Rating, Ruling
from auditor.metrics.intervals.estimate import ShareEstimate
from auditor.metrics.intervals.unit_means import ShareTable, share_over_units, shares_over_units
from auditor.metrics.judges.agreement import Agreement, count_ratings, fleiss_kappa
from auditor.metrics.labels.calibration import Calibration, calibrate
from auditor.reports.data.report_source import Units, sampling_units
from auditor.storage import audits, rating_log, results
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictKey, rated_content
from auditor.storage.database import Database
from auditor.storage.rating_log import RatingEntry
from auditor.storage.votes import make_verdict_filter

BlindDecisions = Mapping[ConflictKey, Mapping[str, Decision]]
"""Blind decision by conflict and rater."""

BlindRatings = Mapping[ConflictKey, Mapping[str, Rating]]
"""Blind rating by conflict and rater."""

RatedT = TypeVar("RatedT", bound=Hashable)
"""What is rated: a conflict, or a unit that is labelled."""
UnitsFinder = Callable[[Iterable[RatedT]], Units]
"""Finds the units that intervals are over, of what is rated."""


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Agreement of two raters on what both rated."""

    rater_a: str
    rater_b: str
    raw_agreement: ShareEstimate
    kappa: Agreement


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """Agreement of all raters.

    Attributes:
        n_decided_by_rater: number of conflicts that each rater decided blind, or of units that the rater labelled.
        kappa: Fleiss' kappa over those that at least two raters decided.
        pairs: agreement of each two raters who share one.
    """

    n_decided_by_rater: Mapping[str, int]
    kappa: Agreement
    pairs: tuple[PairAgreement, ...]


def load_blind_decisions(db: Database, audit_id: int) -> BlindDecisions:
    """Load each rater's last blind decision on each conflict: see `load_blind_ratings`."""
    return select_decisions(load_blind_ratings(db, audit_id))


def select_decisions(blind_ratings: BlindRatings) -> BlindDecisions:
    """Return the decisions of ratings."""
    return {
        key: {rater: rating.decision for rater, rating in by_rater.items()} for key, by_rater in blind_ratings.items()
    }


def load_blind_ratings(db: Database, audit_id: int) -> BlindRatings:
    """Load each rater's last blind decision on each conflict, if the conflict still has the scores that were rated.

    A decision that settled several conflicts of a cell counts once, for the conflict on which it was made.
    """
    last_ratings: dict[ConflictKey, dict[str, Rating]] = {}
    for entry in select_current_entries(db, audit_id, rating_log.load_entries(db, audit_id)):
        if not entry.rating.shown:  # `shown` names the hidden evidence that the rater had seen: empty if blind
            last_ratings.setdefault(entry.key, {})[entry.rating.rater] = entry.rating
    deciding_ratings = {
        key: {
            rater: rating
            for rater, rating in by_rater.items()
            if rating.decision.resolves_conflict and rating.follows is None
        }
        for key, by_rater in last_ratings.items()
    }
    return {key: ratings for key, ratings in deciding_ratings.items() if ratings}


def select_current_entries(db: Database, audit_id: int, entries: Iterable[RatingEntry]) -> list[RatingEntry]:
    """Select the log entries whose conflict still exists and has the scores or answers that were rated."""
    current_content = {
        ConflictKey(*conflict.cell, conflict.left, conflict.right): rated_content(conflict)
        for conflict in results.load_conflicts(db, audit_id)
    }
    return [entry for entry in entries if current_content.get(entry.key) == rated_content(entry.rating)]


def find_majority(decisions: Iterable[Decision]) -> Decision | None:
    """Return the decision that more than half of `decisions` are; None if there is no majority."""
    counts = Counter(decisions)
    most_common = max(counts, key=counts.__getitem__, default=None)
    return most_common if most_common is not None and 2 * counts[most_common] > counts.total() else None


def categorize_ratings(blind_ratings: BlindRatings) -> Mapping[ConflictKey, Mapping[str, Hashable]]:
    """Return the categories that raters can agree on: decisions, with custom scores below 0 apart from those above.

    Raters whose scores have opposite signs do not agree: one calls unacceptable what the other calls acceptable. A
    score of 0 goes with both, so that it has the more frequent sign of the other scores of its conflict.
    """
    return {key: _categorize_conflict(by_rater) for key, by_rater in blind_ratings.items()}


def _categorize_conflict(by_rater: Mapping[str, Rating]) -> dict[str, Hashable]:
    """The category of each rater's decision on one conflict."""
    scores = {rater: rating.score or 0.0 for rater, rating in by_rater.items()}
    balance = sum(score > 0 for score in scores.values()) - sum(score < 0 for score in scores.values())
    return {
        rater: (rating.decision, rating.decision.needs_score and (scores[rater] or balance) < 0)
        for rater, rating in by_rater.items()
    }


def compute_rater_agreement(categories: Mapping[ConflictKey, Mapping[str, Hashable]]) -> RaterAgreement:
    """Compute the agreement of all raters, and of each two raters who share a conflict, over their blind decisions."""
    return compute_agreement_on(categories, conflict_units)


def compute_agreement_on(
    ratings: Mapping[RatedT, Mapping[str, Hashable]], find_units: UnitsFinder[RatedT]
) -> RaterAgreement:
    """Compute the agreement of all raters, and of each two raters who share something rated.

    Args:
        ratings: value by what is rated and rater; values are categories without an order.
        find_units: finds the units that the intervals are over.
    """
    raters = sorted({rater for by_rater in ratings.values() for rater in by_rater})
    pairs = [
        pair for pair in combinations(raters, 2) if any(set(pair) <= by_rater.keys() for by_rater in ratings.values())
    ]
    raw_agreement = shares_over_units([_tabulate_equal_ratings(ratings, *pair, find_units) for pair in pairs])
    return RaterAgreement(
        {rater: sum(rater in by_rater for by_rater in ratings.values()) for rater in raters},
        _compute_kappa(ratings, raters, find_units),
        tuple(
            PairAgreement(*pair, share, _compute_kappa(ratings, pair, find_units))
            for pair, share in zip(pairs, raw_agreement, strict=True)
        ),
    )


def _tabulate_equal_ratings(
    ratings: Mapping[RatedT, Mapping[str, Hashable]], rater_a: str, rater_b: str, find_units: UnitsFinder[RatedT]
) -> ShareTable:
    """Tabulate what both raters rated, and what they rated alike."""
    shared = {key: by_rater for key, by_rater in ratings.items() if {rater_a, rater_b} <= by_rater.keys()}
    is_equal = [by_rater[rater_a] == by_rater[rater_b] for by_rater in shared.values()]
    return ShareTable(is_equal, [1] * len(shared), find_units(shared))


def _compute_kappa(
    ratings: Mapping[RatedT, Mapping[str, Hashable]], raters: Sequence[str], find_units: UnitsFinder[RatedT]
) -> Agreement:
    """Return Fleiss' kappa between some raters, with its interval."""
    values = dict.fromkeys(value for by_rater in ratings.values() for value in by_rater.values())
    codes = {value: float(i) for i, value in enumerate(values)}
    table = np.full((len(raters), len(ratings)), np.nan)
    for item, by_rater in enumerate(ratings.values()):
        for row, rater in enumerate(raters):
            if rater in by_rater:
                table[row, item] = codes[by_rater[rater]]
    return compute_fleiss_kappa(table, find_units(ratings))


def conflict_units(keys: Iterable[ConflictKey]) -> Units:
    """Return the countries and topics of conflicts, or the items of a task: the units that intervals are over."""
    conflict_keys = list(keys)
    return sampling_units([key.country for key in conflict_keys], [key.topic for key in conflict_keys])


def compute_fleiss_kappa(ratings: np.ndarray[tuple[int, ...], np.dtype[np.float64]], units: Units) -> Agreement:
    """Compute Fleiss' kappa of ratings given as category numbers.

    Args:
        ratings: shape (raters, items); nan if a rater did not rate an item.
        units: of the items.
    """
    return fleiss_kappa(count_ratings(ratings), units=units)


MIN_SIDES = 10
"""Sides that a weight requires; with fewer, it would mostly reflect chance."""


@dataclass(frozen=True, slots=True)
class JudgedSide:
    """A model's answer on a cell, as rated by one judge and by people, over all conflicts in which it is a side.

    Attributes:
        valid_share: share of VALID among the judge's verdicts on the model's traces of the cell, in [0, 1].
        is_correct: whether people call the side correct in more of these conflicts than they call it wrong.
    """

    judge: str
    cell: Cell
    valid_share: float
    is_correct: bool


@dataclass(frozen=True, slots=True)
class JudgeCalibration:
    """Agreement of a judge with people.

    Attributes:
        raw_agreement: share of sides on which the majority of the judge's verdicts agrees with people.
        n_tied: number of sides on which its verdicts tie, which are not part of the share.
        kappa: Fleiss' kappa between the judge and people.
        calibration: maps the judge's share of VALID to how often people call such a side correct, both in [0, 1].
        weight: log odds of agreeing with people, at least 0; None with fewer than `MIN_SIDES` sides.
    """

    judge: str
    raw_agreement: ShareEstimate
    n_tied: int
    kappa: Agreement
    calibration: Calibration
    weight: float | None


def load_judged_sides(db: Database, audit: Audit, blind_decisions: BlindDecisions) -> list[JudgedSide]:
    """Load one `JudgedSide` per judge, model and cell on which both the judge and a majority of people decided.

    A model that conflicts with several others on a cell counts once. Sides that people call correct in as many
    conflicts as wrong are left out, as are the verdicts that count for no side, and those of judges that were not asked
    in any case: an adaptive panel asks its other judges about disputed traces only.
    """
    net_votes_by_side: Counter[tuple[str, Cell]] = Counter()
    for key, decisions in blind_decisions.items():
        decision = find_majority(decisions.values())
        if decision is None or decision.spec.upholds is None:
            continue
        cell = Cell(key.country, key.topic)
        for model, is_correct in zip((key.left, key.right), decision.spec.upholds, strict=True):
            net_votes_by_side[model, cell] += 1 if is_correct else -1
    shares_by_side = _load_valid_shares(db, audit, {cell for _, cell in net_votes_by_side})
    # `side[1]` is the cell. More votes for correct than for wrong make the side correct; equal numbers leave it out.
    return [
        JudgedSide(judge, side[1], valid_share, net_votes > 0)
        for side, net_votes in net_votes_by_side.items()
        if net_votes
        for judge, valid_share in shares_by_side.get(side, {}).items()
    ]


def _load_valid_shares(db: Database, audit: Audit, cells: Set[Cell]) -> dict[tuple[str, Cell], dict[str, float]]:
    """Load the share of VALID among each judge's verdicts on a side, by side (a model and a cell) and judge."""
    counts_for_side = make_verdict_filter(
        audits.load_audit_survey(db, audit).task,
        lambda: results.load_scores(db, audit.id),
        lambda: audits.load_answers(db, audit.id),
    )
    rulings: dict[tuple[str, Cell], dict[str, list[bool]]] = {}
    for row in sorted(results.load_rulings(db, audit.id, cells)) if cells else ():
        if row.always and row.outcome is Outcome.OK and counts_for_side((row.model, row.cell, row.sample)):
            by_judge = rulings.setdefault((row.model, row.cell), {})
            by_judge.setdefault(row.judge, []).append(row.ruling is Ruling.VALID)
    return {
        side: {judge: sum(is_valid) / len(is_valid) for judge, is_valid in by_judge.items()}
        for side, by_judge in rulings.items()
    }


def calibrate_judges(judged_sides: Iterable[JudgedSide]) -> list[JudgeCalibration]:
    """Compare each judge with people; return one entry per judge, sorted by name."""
    by_judge: dict[str, list[JudgedSide]] = {}
    for judged_side in judged_sides:
        by_judge.setdefault(judged_side.judge, []).append(judged_side)
    return [_calibrate_judge(judge, sides_of_judge) for judge, sides_of_judge in sorted(by_judge.items())]


def compute_judge_weights(calibrations: Iterable[JudgeCalibration]) -> dict[str, float]:
    """Compute weights of the judges' votes for another audit, with mean 1; judges without an estimated weight get 1.

    If no judge agrees with people more often than chance, all estimated weights are 0.

    Weights log(p / (1 - p)) minimize the error of a vote of independent judges, where p is how often a judge is right
    (Nitzan and Paroush, International Economic Review 23, 1982, 289-297). p is estimated as (hits + 1) / (n + 2), so
    that it is never 1; a judge that is right less often than chance has weight 0.
    """
    weight_by_judge = {calibration.judge: calibration.weight for calibration in calibrations}
    weights = {judge: weight for judge, weight in weight_by_judge.items() if weight is not None}
    mean = sum(weights.values()) / len(weights) if any(weights.values()) else 1.0
    return {judge: 1.0 if weight is None else weight / mean for judge, weight in weight_by_judge.items()}


def _calibrate_judge(judge: str, judged_sides: list[JudgedSide]) -> JudgeCalibration:
    """Compare one judge with people; sides on which its verdicts tie only count for the calibration."""
    untied_sides = [side for side in judged_sides if side.valid_share != 0.5]
    n_agreed = sum((side.valid_share > 0.5) == side.is_correct for side in untied_sides)
    # Two raters of each side, in rows: the judge (1 if most of its verdicts are VALID) and people (1 for correct).
    table = np.array(
        [[float(side.valid_share > 0.5) for side in untied_sides], [float(side.is_correct) for side in untied_sides]]
    )
    # Estimated probability that the judge agrees with people, which is never 0 or 1; see `compute_judge_weights`.
    p = (n_agreed + 1) / (len(untied_sides) + 2)
    units = _side_units(untied_sides)
    cell_index = {cell: i for i, cell in enumerate(dict.fromkeys(side.cell for side in judged_sides))}
    return JudgeCalibration(
        judge,
        share_over_units(table[0] == table[1], np.ones(len(untied_sides)), units),
        len(judged_sides) - len(untied_sides),
        compute_fleiss_kappa(table, units),
        calibrate(
            [side.valid_share for side in judged_sides],
            [float(side.is_correct) for side in judged_sides],
            groups=[cell_index[side.cell] for side in judged_sides],  # people rated the sides of a cell together
            units=_side_units(judged_sides),
        ),
        max(log(p / (1 - p)), 0.0) if len(untied_sides) >= MIN_SIDES else None,
    )


def _side_units(judged_sides: Sequence[JudgedSide]) -> Units:
    """Return the countries and topics of sides, or the items of a task."""
    return sampling_units([side.cell.country for side in judged_sides], [side.cell.topic for side in judged_sides])
