"""Consistency of judges by their comparisons, the weights that follow from it, and flipped verdicts for review."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from auditor.config import AuditConfig
from auditor.domain import Cell, ComparisonChoice, Conflict
from auditor.metrics.judges.consistency import ConsistencyMeasures, VoteWeight, consistency_weights, measure_consistency
from auditor.metrics.logic.consistency import JudgeAnswers
from auditor.probes.logic import comparison_rows
from auditor.probes.logic.comparisons import Comparison, Relation
from auditor.probes.logic.probe import LOGIC_CONFLICT
from auditor.probes.logic.questions import comparison_prompt_fields
from auditor.probes.logic.repair import FlippedComparison
from auditor.probes.logic.settings import LogicProbe
from auditor.storage import audits, results
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


REPAIRED_SUFFIX = "after repair"
"""Suffix of the judge's name for the side of a conflict that holds the repaired answer."""


def send_to_review(db: Database, audit_name: str, flips: Sequence[FlippedComparison]) -> int:
    """Put the flipped verdicts into the queue for human review, in place of those sent before.

    There is one conflict per judge and pair of items, between the judge's answer and the one implied by the ranking.

    Earlier human decisions on a pair are kept, since they belong to the pair and not to one submission.

    Returns:
        The number of conflicts in the queue.
    """
    conflicts: dict[Conflict, tuple[str, str]] = {}  # each with the texts of its left and right side
    for flip in flips:
        conflict, claims = _build_conflict(flip)
        if not any(queued.id == conflict.id for queued in conflicts):
            conflicts[conflict] = claims
    results.replace_claim_conflicts(db, audits.get_audit(db, audit_name).id, conflicts)
    return len(conflicts)


def _build_conflict(flip: FlippedComparison) -> tuple[Conflict, tuple[str, str]]:
    """The conflict between an original (left) and a repaired verdict (right), and the text that each side upholds.

    A verdict has no survey score, so it is written as one: +1 prefers the item with the lower position in the set, -1
    the other item. The context of the set stands for the country, and both item ids for the topic.
    """
    pair = sorted((flip.first, flip.second))
    first_item, second_item = (flip.item_set.items[i] for i in pair)
    prefers_shown_first = flip.original_choice is ComparisonChoice.FIRST
    first_of_pair = prefers_shown_first == (flip.first == pair[0])  # whether the lower position was preferred
    topic = f"{first_item.id} / {second_item.id}"
    score = 1.0 if first_of_pair else -1.0
    conflict = Conflict(
        cell=Cell(flip.item_set.context, topic),
        left=flip.judge,
        right=f"{flip.judge} {REPAIRED_SUFFIX}",
        score_left=score,
        score_right=-score,
        kind=LOGIC_CONFLICT,
    )
    question = comparison_prompt_fields(flip.item_set, Relation.STANDARD)["question"]
    texts = [
        f"{question}\n\n{item.text}"
        for item in ((first_item, second_item) if first_of_pair else (second_item, first_item))
    ]
    return conflict, (texts[0], texts[1])
