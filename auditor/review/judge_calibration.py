"""Compare the judges' verdicts with people's decisions: agreement, calibration, and weights of the judges' votes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from auditor.domain import Cell
from auditor.metrics.agreement import Agreement
from auditor.metrics.calibration import Calibration, calibrate
from auditor.metrics.estimate import ShareEstimate
from auditor.metrics.unit_means import share_over_units
from auditor.reports.data.sampling_units import Units, sampling_units
from auditor.review.rater_agreement import BlindDecisions, compute_fleiss_kappa, find_majority
from auditor.storage import evidence
from auditor.storage.database import Database

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


def load_judged_sides(db: Database, audit_id: int, blind_decisions: BlindDecisions) -> list[JudgedSide]:
    """Load one `JudgedSide` per judge, model and cell on which both the judge and a majority of people decided.

    A model that conflicts with several others on a cell counts once. Sides that people call correct in as many
    conflicts as wrong are left out.
    """
    # A side is a model and a cell; its shares are pairs of a judge and the share of VALID among its verdicts.
    shares_by_side: dict[tuple[str, Cell], list[tuple[str, float]]] = {}
    for (judge, model, cell), (n_valid, n_verdicts) in evidence.count_valid_verdicts(db, audit_id).items():
        shares_by_side.setdefault((model, cell), []).append((judge, n_valid / n_verdicts))
    net_votes_by_side: Counter[tuple[str, Cell]] = Counter()
    for key, decisions in blind_decisions.items():
        decision = find_majority(decisions.values())
        if decision is None or decision.spec.upholds is None:
            continue
        cell = Cell(key.country, key.topic)
        for model, is_correct in zip((key.left, key.right), decision.spec.upholds, strict=True):
            net_votes_by_side[model, cell] += 1 if is_correct else -1
    # `side[1]` is the cell. More votes for correct than for wrong make the side correct; equal numbers leave it out.
    return [
        JudgedSide(judge, side[1], valid_share, net_votes > 0)
        for side, net_votes in net_votes_by_side.items()
        if net_votes
        for judge, valid_share in shares_by_side.get(side, [])
    ]


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
