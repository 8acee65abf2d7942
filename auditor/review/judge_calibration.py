"""What people teach about the judges: how far each agrees with them, what its verdicts are worth, and its weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import log

import numpy as np

from auditor.domain import Cell, Decision
from auditor.metrics.agreement import Agreement
from auditor.metrics.calibration import Calibration, calibrate
from auditor.metrics.share import Share, wilson_share
from auditor.review.rater_agreement import BlindDecisions, compute_fleiss_kappa, find_majority
from auditor.storage import evidence
from auditor.storage.database import Database

CORRECT_SIDES = {
    Decision.LEFT: (True, False),
    Decision.RIGHT: (False, True),
    Decision.BOTH: (True, True),
    Decision.NEITHER: (False, False),
}
"""Which sides, left and right, a decision says are right; a score of one's own says nothing of the kind."""
MIN_SIDES = 10
"""With fewer, a weight would follow chance."""


@dataclass(frozen=True, slots=True)
class JudgedSide:
    """A model's word on a cell as a judge and as people see it, however many conflicts it is a side of.

    Attributes:
        share: of the judge's verdicts on the model's traces there, those that say VALID, in [0, 1].
        right: whether people say that it is right, in more of these conflicts than in which they say that it is not.
    """

    judge: str
    cell: Cell
    valid_share: float
    is_correct: bool


@dataclass(frozen=True, slots=True)
class JudgeCalibration:
    """How a judge agrees with people.

    Attributes:
        same: sides on which the majority of its verdicts says what people say; `lost` are those on which it ties.
        kappa: Fleiss' between the judge and people.
        calibration: from its share of VALID to how often people call such a side right, both in [0, 1].
        weight: log odds of being right, not below 0; None with fewer than 10 sides.
    """

    judge: str
    raw_agreement: Share
    kappa: Agreement
    calibration: Calibration
    weight: float | None


def load_judged_sides(db: Database, audit_id: int, blind_decisions: BlindDecisions) -> list[JudgedSide]:
    """What judges and people say of the same models and cells, once each, where people have a consensus.

    A model in conflict with several others on a cell has one word there, and a judge one opinion of it. Where people
    call it right in as many conflicts as wrong, there is nothing to learn.
    """
    shares_by_side: dict[tuple[str, Cell], list[tuple[str, float]]] = {}
    for (judge, model, cell), (n_valid, n_verdicts) in evidence.count_valid_verdicts(db, audit_id).items():
        shares_by_side.setdefault((model, cell), []).append((judge, n_valid / n_verdicts))
    net_votes_by_side: Counter[tuple[str, Cell]] = Counter()
    for key, decisions in blind_decisions.items():
        decision = find_majority(decisions.values())
        if decision not in CORRECT_SIDES:
            continue
        cell = Cell(key.country, key.topic)
        for model, is_correct in zip((key.left, key.right), CORRECT_SIDES[decision], strict=True):
            net_votes_by_side[model, cell] += 1 if is_correct else -1
    return [
        JudgedSide(judge, side[1], valid_share, net_votes > 0)
        for side, net_votes in net_votes_by_side.items()
        if net_votes
        for judge, valid_share in shares_by_side.get(side, [])
    ]


def calibrate_judges(judged_sides: Iterable[JudgedSide]) -> list[JudgeCalibration]:
    """What people teach about each judge, in order of name."""
    by_judge: dict[str, list[JudgedSide]] = {}
    for judged_side in judged_sides:
        by_judge.setdefault(judged_side.judge, []).append(judged_side)
    return [_calibrate_judge(judge, sides_of_judge) for judge, sides_of_judge in sorted(by_judge.items())]


def compute_judge_weights(calibrations: Iterable[JudgeCalibration]) -> dict[str, float]:
    """Weights of the judges' votes for another audit, 1 on average; judges that people taught too little get 1.

    Where all that are known are right no more often than chance, all of those weigh 0.

    The vote that errs least weighs independent judges by log(p / (1 - p)), p being how often each is right (Nitzan and
    Paroush, International Economic Review 23, 1982, 289-297). p is (hits + 1) / (n + 2), so that no judge is
    infallible, and one that is right less often than chance weighs 0.
    """
    weight_by_judge = {calibration.judge: calibration.weight for calibration in calibrations}
    weights = {judge: weight for judge, weight in weight_by_judge.items() if weight is not None}
    mean = sum(weights.values()) / len(weights) if any(weights.values()) else 1.0
    return {judge: 1.0 if weight is None else weight / mean for judge, weight in weight_by_judge.items()}


def _calibrate_judge(judge: str, judged_sides: list[JudgedSide]) -> JudgeCalibration:
    untied_sides = [side for side in judged_sides if side.valid_share != 0.5]
    n_agreed = sum((side.valid_share > 0.5) == side.is_correct for side in untied_sides)
    table = np.array(
        [[float(side.valid_share > 0.5) for side in untied_sides], [float(side.is_correct) for side in untied_sides]]
    )
    p = (n_agreed + 1) / (len(untied_sides) + 2)
    cell_index = {cell: i for i, cell in enumerate(dict.fromkeys(side.cell for side in judged_sides))}
    return JudgeCalibration(
        judge,
        wilson_share(n_agreed, len(untied_sides), len(judged_sides) - len(untied_sides)),
        compute_fleiss_kappa(table),
        calibrate(
            [side.valid_share for side in judged_sides],
            [float(side.is_correct) for side in judged_sides],
            groups=[cell_index[side.cell] for side in judged_sides],  # people saw the sides of a cell together
        ),
        max(log(p / (1 - p)), 0.0) if len(untied_sides) >= MIN_SIDES else None,
    )
