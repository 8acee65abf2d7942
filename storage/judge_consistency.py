"""What judges' own comparisons say of them, and the weight of their vote by it.

The figures are those of `auditor.metrics.judge_consistency`.
"""

from __future__ import annotations

from typing import NamedTuple

from auditor.config import AuditConfig, LogicProbe
from auditor.metrics.judge_consistency import ConsistencyMeasures, VoteWeight, consistency_weights, measure_consistency
from auditor.metrics.logic import JudgeAnswers
from auditor.storage import comparisons
from auditor.storage.database import Database


class JudgeConsistency(NamedTuple):
    """How consistent one judge of a panel is, and what its vote would weigh by that."""

    judge: str
    consistency: ConsistencyMeasures
    weight: VoteWeight


def measure_judge_consistency(db: Database, audit_id: int, config: AuditConfig) -> list[JudgeConsistency]:
    """Every judge of the audit by its own comparisons in it."""
    probe = config.probes.logic or LogicProbe()
    answers = comparisons.build_set_answers(
        comparisons.load_item_sets(db, audit_id), comparisons.load_comparisons(db, audit_id)
    )
    sets: dict[str, list[JudgeAnswers]] = {judge.name: [] for judge in config.judge_models}
    for a in answers:
        if a.judge in sets:
            sets[a.judge].append(JudgeAnswers(a.preferences, a.negated, a.asked, a.samples, a.human_preferences))
    found = {
        name: measure_consistency(mine, min(probe.k), probe.max_subsets, config.seed) for name, mine in sets.items()
    }
    weighed = consistency_weights(found, config.panel.bench_below)
    return [JudgeConsistency(name, measured, weighed[name]) for name, measured in found.items()]


def apply_consistency_weights(db: Database, audit_id: int, config: AuditConfig) -> AuditConfig:
    """The config with the weights that its panel takes from the judges' comparisons; itself where it takes none."""
    if config.panel.weights_from != "logic":
        return config
    learnt = {found.judge: found.weight.weight for found in measure_judge_consistency(db, audit_id, config)}
    return config.model_copy(update={"panel": config.panel.model_copy(update={"weights": learnt})})
