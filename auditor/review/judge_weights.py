"""What people taught about the judges, as weights of their votes in the next audit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.config import AuditConfig
from auditor.errors import ReviewError
from auditor.metrics.share import Share, share_of
from auditor.review.judge_calibration import LEAST_SIDES, JudgeLesson, judge_lessons, judge_weights, lessons
from auditor.review.rater_agreement import said_blind
from auditor.storage.audits import Audit
from auditor.storage.database import Database

DIGITS = 4


@dataclass(frozen=True, slots=True)
class LearntWeight:
    """The weight of one judge's vote.

    Attributes:
        weight: at least 0, 1 on average over the judges that are known.
        same: sides on which the judge says what people say.
        known: whether people taught enough about it; one of whom they did not weighs as much as the average.
    """

    judge: str
    weight: float
    same: Share
    known: bool


@dataclass(frozen=True, slots=True)
class LearntWeights:
    """The weights of an audit's judges, and what they rest on.

    Attributes:
        conflicts: decided blind.
        raters: who decided them.
    """

    audit: str
    conflicts: int
    raters: tuple[str, ...]
    judges: tuple[LearntWeight, ...]


def learnt_weights(db: Database, audit: Audit) -> LearntWeights:
    """The weights that blind decisions about an audit teach, for every judge of it.

    Raises:
        ReviewError: people have decided too little, or no judge is right more often than chance.
    """
    said = said_blind(db, audit.id)
    found = {lesson.judge: lesson for lesson in judge_lessons(lessons(db, audit.id, said))}
    configured = AuditConfig.model_validate_json(audit.config).judge_models if audit.config else []
    names = [*(j.name for j in configured), *found]
    _refuse(audit.name, list(dict.fromkeys(names)), found)
    weights = judge_weights(found.values())
    judges = [_weight(name, found.get(name), weights) for name in dict.fromkeys(names)]
    raters = tuple(sorted({rater for decisions in said.values() for rater in decisions}))
    return LearntWeights(audit.name, len(said), raters, tuple(judges))


def weights_toml(learnt: LearntWeights) -> str:
    """The weights as a part of a configuration, ready to paste at its end."""
    ground = f"{learnt.conflicts} conflicts that {_raters(learnt)} decided blind"
    head = f"# Learnt in audit {_key(learnt.audit)} from {ground}."
    rows = [f"{_key(j.judge)} = {round(j.weight, DIGITS)}  # {_ground(j)}" for j in learnt.judges]
    return "\n".join([head, "[panel]", 'vote = "weighted"', "", "[panel.weights]", *rows]) + "\n"


def weights_json(learnt: LearntWeights) -> dict[str, Any]:
    """The weights and what they rest on; `panel` is what goes into a configuration."""
    return {
        "audit": learnt.audit,
        "conflicts": learnt.conflicts,
        "raters": list(learnt.raters),
        "panel": {"vote": "weighted", "weights": {j.judge: round(j.weight, DIGITS) for j in learnt.judges}},
        "judges": [
            {
                "judge": j.judge, "weight": j.weight, "known": j.known, "agreement": j.same.value, "n": j.same.n,
                "ci_low": j.same.ci_low, "ci_high": j.same.ci_high, "ties": j.same.lost,
            }
            for j in learnt.judges
        ],
    }  # fmt: skip


def _refuse(audit: str, judges: Sequence[str], found: Mapping[str, JudgeLesson]) -> None:
    known = [lesson.weight for lesson in found.values() if lesson.weight is not None]
    if not known:
        sides = ", ".join(f"{name} {found[name].same.n if name in found else 0}" for name in judges)
        raise ReviewError(
            f"'{audit}' has too few blind decisions for weights: a judge needs {LEAST_SIDES} judged sides that people "
            f"decided ({sides or 'it has no judge'}).",
            f"Decide more of its conflicts: auditor review {audit}",
        )
    if not any(known):
        raise ReviewError(
            f"no judge of '{audit}' says what people say more often than chance, so that no vote should count.",
            "Choose other judges; `auditor review` shows each one's agreement with people.",
        )


def _weight(name: str, lesson: JudgeLesson | None, weights: Mapping[str, float]) -> LearntWeight:
    same = lesson.same if lesson else share_of(0, 0)
    return LearntWeight(name, weights.get(name, 1.0), same, lesson is not None and lesson.weight is not None)


def _ground(judge: LearntWeight) -> str:
    if not judge.known:
        return f"too few sides ({judge.same.n} of at least {LEAST_SIDES}): weighs as much as the average"
    same = judge.same
    return f"says what people say on {same.value:.0%} [{same.ci_low:.0%}, {same.ci_high:.0%}] of {same.n} sides"


def _raters(learnt: LearntWeights) -> str:
    return "1 person" if len(learnt.raters) == 1 else f"{len(learnt.raters)} people"


def _key(name: str) -> str:
    """A name as a TOML key; JSON's escapes are TOML's, but for DEL, which JSON leaves as it is."""
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
