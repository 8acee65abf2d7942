"""What judges' own comparisons say of them: one figure of consistency each, and the weight of their vote by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from auditor.config import AuditConfig, LogicProbe
from auditor.metrics.logic import (
    Answered,
    commutativity_over,
    negation_over,
    self_agreement_over,
    transitivity_over,
)
from auditor.storage import comparisons
from auditor.storage.comparisons import SetAnswers
from auditor.storage.database import Database


class JudgeConsistency(NamedTuple):
    """How consistent one judge is, in [0, 1] each; None where it was not measured.

    Attributes:
        value: mean of the figures that were measured.
        weight: of its vote: the value, or 0 where it is below the bench, or where nothing could be measured.
    """

    judge: str
    transitivity: float | None
    commutativity: float | None
    negation: float | None
    self_agreement: float | None
    value: float | None
    weight: float
    benched: bool


def judge_consistencies(db: Database, audit_id: int, config: AuditConfig) -> list[JudgeConsistency]:
    """Every judge of the audit by its own comparisons in it."""
    probe = config.probes.logic or LogicProbe()
    answers = comparisons.answers(comparisons.sets(db, audit_id), comparisons.comparisons(db, audit_id))
    return [
        _consistency(judge.name, [a for a in answers if a.judge == judge.name], probe, config)
        for judge in config.judge_models
    ]


def _consistency(name: str, mine: Sequence[SetAnswers], probe: LogicProbe, config: AuditConfig) -> JudgeConsistency:
    sets = [Answered(a.preferences, a.negated, a.asked, a.samples, a.people) for a in mine]
    figures = (
        transitivity_over(sets, min(probe.k), probe.max_subsets, config.seed).value,
        commutativity_over(sets, config.seed).value,
        negation_over(sets, config.seed).value,
        self_agreement_over(sets, config.seed).value,
    )
    known = [value for value in figures if value is not None]
    value = sum(known) / len(known) if known else None
    benched = value is None or value < config.panel.bench_below
    return JudgeConsistency(name, *figures, value, 0.0 if benched else value or 0.0, benched)


def with_weights(db: Database, audit_id: int, config: AuditConfig) -> AuditConfig:
    """The config with the weights that its panel takes from the judges' comparisons; itself where it takes none."""
    if config.panel.weights_from != "logic":
        return config
    weights = {found.judge: found.weight for found in judge_consistencies(db, audit_id, config)}
    return config.model_copy(update={"panel": config.panel.model_copy(update={"weights": weights})})
