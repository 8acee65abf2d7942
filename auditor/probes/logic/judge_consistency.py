"""Consistency of judges by their own pairwise comparisons, and the voting weights that follow from it.

The measures are those of `auditor.metrics.judge_consistency`.
"""

from __future__ import annotations

from typing import NamedTuple

from auditor.config import AuditConfig
from auditor.metrics.judge_consistency import ConsistencyMeasures, VoteWeight, consistency_weights, measure_consistency
from auditor.metrics.logic import JudgeAnswers
from auditor.probes.logic import comparison_rows
from auditor.probes.logic.comparisons import Comparison
from auditor.probes.logic.settings import LogicProbe
from auditor.storage.database import Database
from auditor.storage.records import load_records


class JudgeConsistency(NamedTuple):
    """Consistency of one judge of a panel, and the weight of its vote that follows from it."""

    judge: str
    consistency: ConsistencyMeasures
    weight: VoteWeight


def measure_judge_consistency(db: Database, audit_id: int, config: AuditConfig) -> list[JudgeConsistency]:
    """Measure the consistency of every judge of an audit by its comparisons in the audit."""
    probe = config.probes.find(LogicProbe) or LogicProbe()
    answers = comparison_rows.build_set_answers(
        comparison_rows.load_item_sets(db, audit_id), load_records(db, audit_id, Comparison)
    )
    answers_by_judge: dict[str, list[JudgeAnswers]] = {judge.name: [] for judge in config.judge_models}
    for set_answers in answers:
        if set_answers.judge in answers_by_judge:
            answers_by_judge[set_answers.judge].append(set_answers.metric_input)
    consistency_by_judge = {
        name: measure_consistency(judge_answers, min(probe.k), probe.max_subsets, config.seed)
        for name, judge_answers in answers_by_judge.items()
    }
    weights = consistency_weights(consistency_by_judge, config.panel.bench_below)
    return [JudgeConsistency(name, consistency, weights[name]) for name, consistency in consistency_by_judge.items()]
