"""Estimate weights of the judges' votes for the next audit from people's blind decisions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.config import load_stored_config
from auditor.errors import ReviewError, pluralize
from auditor.metrics.intervals.estimate import ShareEstimate
from auditor.review.rater_agreement import (
    MIN_SIDES,
    JudgeCalibration,
    calibrate_judges,
    compute_judge_weights,
    load_blind_decisions,
    load_judged_sides,
)
from auditor.storage.audits import Audit
from auditor.storage.database import Database

WEIGHT_DECIMALS = 4


@dataclass(frozen=True, slots=True)
class JudgeWeight:
    """The weight of one judge's vote.

    Attributes:
        weight: at least 0, with mean 1 over the judges with an estimated weight.
        raw_agreement: share of sides on which the judge agrees with people.
        n_tied: number of sides on which its verdicts tie, which are not part of the share.
        is_estimated: whether there were enough decisions to estimate the weight; otherwise it is 1.
    """

    judge: str
    weight: float
    raw_agreement: ShareEstimate
    n_tied: int
    is_estimated: bool


@dataclass(frozen=True, slots=True)
class PanelWeights:
    """The weights of an audit's judges, and the decisions from which they were estimated.

    Attributes:
        n_conflicts: number of conflicts decided blind.
        raters: names of the people who decided them.
    """

    audit: str
    n_conflicts: int
    raters: tuple[str, ...]
    judges: tuple[JudgeWeight, ...]


def estimate_panel_weights(db: Database, audit: Audit) -> PanelWeights:
    """Estimate the weight of every judge of an audit from the blind decisions on its conflicts.

    Raises:
        ReviewError: there are too few decisions, or no judge agrees with people more often than chance.
    """
    blind_decisions = load_blind_decisions(db, audit.id)
    calibration_by_judge = {
        calibration.judge: calibration
        for calibration in calibrate_judges(load_judged_sides(db, audit, blind_decisions))
    }
    config = load_stored_config(audit.config)
    configured_judges = config.judge_models if config else []
    # The judges of the configuration come first, then judges that only the stored verdicts name.
    names = [*(model.name for model in configured_judges), *calibration_by_judge]
    _require_enough_decisions(audit.name, list(dict.fromkeys(names)), calibration_by_judge)
    weights = compute_judge_weights(calibration_by_judge.values())
    judges = [_make_judge_weight(name, calibration_by_judge.get(name), weights) for name in dict.fromkeys(names)]
    raters = tuple(sorted({rater for decisions in blind_decisions.values() for rater in decisions}))
    return PanelWeights(audit.name, len(blind_decisions), raters, tuple(judges))


def format_weights_toml(panel_weights: PanelWeights) -> str:
    """Return the weights as TOML to append to a configuration: a comment and the tables `panel`, `panel.weights`."""
    basis = (
        f"{pluralize(panel_weights.n_conflicts, 'conflict')} that {_format_rater_count(panel_weights)} decided blind"
    )
    comment = f"# Learnt in audit {_format_toml_key(panel_weights.audit)} from {basis}."
    rows = [
        f"{_format_toml_key(judge.judge)} = {round(judge.weight, WEIGHT_DECIMALS)}  # {_format_weight_basis(judge)}"
        for judge in panel_weights.judges
    ]
    return "\n".join([comment, "[panel]", 'vote = "weighted"', "", "[panel.weights]", *rows]) + "\n"


def weights_to_dict(panel_weights: PanelWeights) -> dict[str, Any]:
    """Convert the weights to a JSON-serializable dict; its key `panel` is the part for a configuration.

    Per judge, `known` says whether the weight was estimated, `agreement` is the share of its `n` sides on which it
    agrees with people, and `ties` is the number of sides on which its verdicts tie, which are not among the `n`.
    """
    return {
        "audit": panel_weights.audit,
        "conflicts": panel_weights.n_conflicts,
        "raters": list(panel_weights.raters),
        "panel": {
            "vote": "weighted",
            "weights": {judge.judge: round(judge.weight, WEIGHT_DECIMALS) for judge in panel_weights.judges},
        },
        "judges": [
            {
                "judge": judge.judge, "weight": judge.weight, "known": judge.is_estimated,
                "agreement": judge.raw_agreement.value, "n": judge.raw_agreement.n,
                "ci_low": judge.raw_agreement.ci_low, "ci_high": judge.raw_agreement.ci_high,
                "ties": judge.n_tied,
            }
            for judge in panel_weights.judges
        ],
    }  # fmt: skip


def _require_enough_decisions(audit: str, judges: Sequence[str], calibrations: Mapping[str, JudgeCalibration]) -> None:
    """Raise ReviewError if no judge has enough decisions for a weight, or all weights are 0."""
    known_weights = [calibration.weight for calibration in calibrations.values() if calibration.weight is not None]
    if not known_weights:
        sides = ", ".join(
            f"{name} {calibrations[name].raw_agreement.n if name in calibrations else 0}" for name in judges
        )
        raise ReviewError(
            f"'{audit}' has too few blind decisions by people to compute weights. A judge needs decisions on at "
            f"least {MIN_SIDES} answers that it judged; now: {sides or 'no judge'}.",
            f"Decide more of its conflicts: auditor review {audit}",
        )
    if not any(known_weights):
        raise ReviewError(
            f"no judge of '{audit}' agrees with people more often than chance, so no vote should count.",
            "Choose other judges; `auditor review` shows each one's agreement with people.",
        )


def _make_judge_weight(name: str, calibration: JudgeCalibration | None, weights: Mapping[str, float]) -> JudgeWeight:
    """Return the weight of one judge; 1, not estimated, for a judge without a calibration or with too few sides."""
    weight = weights.get(name, 1.0)
    if calibration is None:
        return JudgeWeight(name, weight, ShareEstimate(None, 0, reason="nothing to count"), 0, False)
    is_estimated = calibration.weight is not None
    return JudgeWeight(name, weight, calibration.raw_agreement, calibration.n_tied, is_estimated)


def _format_weight_basis(judge_weight: JudgeWeight) -> str:
    """Return the reason for a weight: the judge's agreement with people, or that it has too few sides."""
    if not judge_weight.is_estimated:
        return f"too few sides ({judge_weight.raw_agreement.n} of at least {MIN_SIDES}): weighs as much as the average"
    agreement = judge_weight.raw_agreement
    interval = "" if agreement.ci_low is None else f" [{agreement.ci_low:.0%}, {agreement.ci_high:.0%}]"
    return f"agrees with people on {agreement.value:.0%}{interval} of {agreement.n} sides"


def _format_rater_count(panel_weights: PanelWeights) -> str:
    """Return the number of raters as text, such as `1 person` or `3 people`."""
    return pluralize(len(panel_weights.raters), "person", "people")


def _format_toml_key(name: str) -> str:
    """Format a name as a TOML key; JSON's escapes are valid in TOML, but JSON does not escape DEL, as TOML requires."""
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
