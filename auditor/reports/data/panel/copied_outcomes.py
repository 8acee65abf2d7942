"""What groups of copies settle alone: majorities and conflicts with another outcome if each group had one vote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from auditor.config import AuditConfig
from auditor.domain import Conflict, ConflictState
from auditor.metrics.votes import judge_vote, weighted_majority
from auditor.reports.data.panel.trace_votes import decide_by_weight, share_weights
from auditor.reports.data.panel.verdict_matrix import VerdictMatrix
from auditor.reports.data.report_source import ReportSource

Groups = Sequence[Sequence[int]]
ConflictSide = tuple[str, str, str]
"""Model, country and topic."""


def count_copied_majorities(matrix: VerdictMatrix, groups: Groups) -> int:
    """Count the traces whose majority is gone, or is the other one, where each group has one vote."""
    if not matrix.traces or len(groups) == len(matrix.judges):
        return 0
    ones = np.ones(len(matrix.judges))
    majority = decide_by_weight(matrix, ones[:, None])
    split = decide_by_weight(matrix, share_weights(matrix, groups, ones))
    return int((~np.isnan(majority) & (majority != split)).sum())


def count_copied_conflicts(source: ReportSource, matrix: VerdictMatrix, groups: Groups) -> int | None:
    """Count the settled conflicts that have another outcome where each group has one vote.

    Returns:
        None if the conflicts were settled by Dawid and Skene's model.
    """
    if source.config is None or len(groups) == len(matrix.judges):
        return 0
    if source.config.panel.vote == "dawid_skene":
        return None
    counts = _count_rulings(matrix)
    assigned = _assigned_judges(matrix)
    group_by_judge = {matrix.judges[judge]: number for number, group in enumerate(groups) for judge in group}
    settled = [
        conflict for conflict in source.conflicts if conflict.kind.is_voted and conflict.state is ConflictState.MAJORITY
    ]
    return sum(
        _split_winner(source.config, conflict, counts, assigned, group_by_judge) != conflict.winner
        for conflict in settled
    )


def _split_winner(
    config: AuditConfig,
    conflict: Conflict,
    counts: Mapping[tuple[str, ConflictSide], tuple[int, int]],
    assigned: Mapping[ConflictSide, set[str]] | None,
    group_by_judge: Mapping[str, int],
) -> str | None:
    """The winner of a conflict where each group has one vote, by the configured weights; None leaves it open.

    Args:
        counts: by judge and side, its VALID rulings and all its rulings.
        assigned: the judges assigned to each side's traces; None where all eligible judges are.
        group_by_judge: number of each judge's group.
    """
    sides = [(name, conflict.cell.country, conflict.cell.topic) for name in (conflict.left, conflict.right)]
    judges = [
        judge.name
        for judge in config.shared_judges(conflict.left, conflict.right)
        if judge.name in group_by_judge
        and (assigned is None or all(judge.name in assigned.get(side, ()) for side in sides))
    ]
    weights = config.panel.weights if config.panel.vote == "weighted" else dict.fromkeys(judges, 1.0)
    sizes = [sum(group_by_judge[other] == group_by_judge[judge] for other in judges) for judge in judges]
    split = [weights[judge] / size for judge, size in zip(judges, sizes, strict=True)]
    if not any(split):
        return None
    votes = [
        judge_vote(*counts.get((name, sides[0]), (0, 0)), *counts.get((name, sides[1]), (0, 0))) for name in judges
    ]
    codes = {"left": 0.0, "right": 1.0, None: np.nan}
    [winner] = weighted_majority([[codes[vote]] for vote in votes], split)
    return None if np.isnan(winner) else (conflict.left, conflict.right)[int(winner)]


def _count_rulings(matrix: VerdictMatrix) -> dict[tuple[str, ConflictSide], tuple[int, int]]:
    """By judge and side, the number of its VALID rulings, and of all its rulings."""
    counts: dict[tuple[str, ConflictSide], tuple[int, int]] = {}
    for vote in matrix.votes:
        key = vote.judge, (vote.model, vote.country, vote.topic)
        valid, total = counts.get(key, (0, 0))
        counts[key] = valid + vote.valid, total + 1
    return counts


def _assigned_judges(matrix: VerdictMatrix) -> dict[ConflictSide, set[str]] | None:
    """The judges assigned to at least one trace of each side; None where all eligible judges are."""
    if matrix.assignments is None:
        return None
    assigned: dict[ConflictSide, set[str]] = {}
    for (model, country, topic, _), judges in matrix.assignments.items():
        assigned.setdefault((model, country, topic), set()).update(judges)
    return assigned
