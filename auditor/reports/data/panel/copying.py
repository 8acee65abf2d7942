"""Judges that depend on each other: what labelled traces show, who counts as a copy, and what copies settle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from auditor.config import AuditConfig, ModelSection
from auditor.domain import Cell, Conflict, ConflictState
from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.metrics.judges.agreement import krippendorff_alpha
from auditor.metrics.judges.copying import (
    PairErrors,
    are_copies,
    compare_errors,
    group_judges,
    judge_pairs,
    pair_agreement,
)
from auditor.metrics.judges.panels import effective_judges
from auditor.metrics.judges.votes import judge_vote, weighted_majority
from auditor.reports.data.panel.judge_statistics import agreement_estimate
from auditor.reports.data.panel.schema import CopyingReport, JudgePairRow, PairVerdict
from auditor.reports.data.panel.verdict_matrix import (
    VerdictMatrix,
    decide_by_weight,
    load_labelled_verdicts,
    share_weights,
)
from auditor.reports.data.report_source import ReportSource
from auditor.storage.votes import SampleKey, make_verdict_filter

Groups = Sequence[Sequence[int]]
ConflictSide = tuple[str, str, str]
"""Model, country and topic."""


def count_copied_majorities(matrix: VerdictMatrix, groups: Groups) -> int:
    """Count the traces whose majority is gone, or is the other one, where each group has one vote.

    Judges that an adaptive panel did not ask are taken to agree with the majority; those that failed are not.
    """
    if not matrix.traces or len(groups) == len(matrix.judges):
        return 0
    ones = np.ones(len(matrix.judges))
    majority = decide_by_weight(matrix, ones[:, None])
    weights = share_weights(matrix, groups, ones) * matrix.is_assigned
    agrees = matrix.all_verdicts == majority
    if matrix.is_adaptive:
        agrees |= np.isnan(matrix.all_verdicts) & ~matrix.has_failed
    is_kept = (weights * agrees).sum(axis=0) > weights.sum(axis=0) / 2 * (1 + 1e-12)
    return int((~np.isnan(majority) & ~is_kept).sum())


def count_copied_conflicts(source: ReportSource, matrix: VerdictMatrix, groups: Groups) -> int | None:
    """Count the settled conflicts that have another outcome where each group has one vote.

    Returns:
        None if the conflicts were settled by Dawid and Skene's model, or by an adaptive panel, which did not ask all.
    """
    if source.config is None or len(groups) == len(matrix.judges):
        return 0
    if source.config.panel.vote == "dawid_skene" or matrix.is_adaptive:
        return None
    counts_for_side = make_verdict_filter(source.survey.task, lambda: source.scores, lambda: source.task_answers)
    counts = _count_rulings(matrix, counts_for_side)
    assigned = _assigned_judges(matrix, counts_for_side)
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


def _count_rulings(
    matrix: VerdictMatrix, counts_for_side: Callable[[SampleKey], bool]
) -> dict[tuple[str, ConflictSide], tuple[int, int]]:
    """By judge and side, the number of its VALID rulings, and of all its rulings."""
    counts: dict[tuple[str, ConflictSide], tuple[int, int]] = {}
    for vote in matrix.votes:
        if not counts_for_side((vote.model, Cell(vote.country, vote.topic), vote.sample)):
            continue
        key = vote.judge, (vote.model, vote.country, vote.topic)
        valid, total = counts.get(key, (0, 0))
        counts[key] = valid + vote.valid, total + 1
    return counts


def _assigned_judges(
    matrix: VerdictMatrix, counts_for_side: Callable[[SampleKey], bool]
) -> dict[ConflictSide, set[str]] | None:
    """The judges assigned to at least one trace of each side; None where all eligible judges are."""
    if matrix.assignments is None:
        return None
    assigned: dict[ConflictSide, set[str]] = {}
    for (model, country, topic, sample), judges in matrix.assignments.items():
        if counts_for_side((model, Cell(country, topic), sample)):
            assigned.setdefault((model, country, topic), set()).update(judges)
    return assigned


NO_LABELS_REASON = "no labelled traces (run `auditor experiment planted`)"
NO_TRUTH_REASON = "no labelled traces: no answer to the task has a known truth"


def build_copying_report(source: ReportSource, matrix: VerdictMatrix) -> CopyingReport:
    """Compare each pair of judges, and count what groups of copies settle alone."""
    labelled = load_labelled_verdicts(source, matrix)
    agreements = pair_agreement(matrix.unconditional_verdicts, matrix.units)
    errors = compare_errors(labelled.verdicts, labelled.truth, labelled.units, labelled.kinds)
    number, counted = effective_judges(labelled.verdicts, labelled.truth, labelled.units)
    no_labels_reason = NO_LABELS_REASON if source.survey.task is None else NO_TRUTH_REASON
    pairs = []
    for agreement, pair in zip(agreements, errors, strict=True):
        names = matrix.judges[pair.first], matrix.judges[pair.second]
        verdict: PairVerdict = (
            "copies"
            if are_copies(agreement)
            else "errors more alike"
            if pair.is_more_alike
            else "cannot be told from verdicts"
            if pair.excess.ci_low is None
            else "independent as far as shown"
        )
        excess = Estimate(None, 0, reason=no_labels_reason) if labelled.source is None else pair.excess
        pairs.append(_build_pair_row(source.config, names, agreement, pair, excess, verdict))
    groups = find_groups(matrix.judges, pairs)
    alike = find_groups(matrix.judges, pairs, ("copies", "errors more alike"))
    return CopyingReport(
        label_source=labelled.source,
        labels=labelled.n_labels,
        pairs=pairs,
        groups=_name_groups(matrix.judges, groups),
        alike=_name_groups(matrix.judges, alike),
        alpha_without_alike=_estimate_alpha_without(matrix, alike),
        effective_judges=Estimate(None, 0, reason=no_labels_reason) if labelled.source is None else number,
        effective_of=[matrix.judges[judge] for judge in counted] if labelled.source else [],
        traces_settled_by_copies=count_copied_majorities(matrix, groups),
        conflicts_settled_by_copies=count_copied_conflicts(source, matrix, groups),
    )


def find_groups(
    judges: Sequence[str], pairs: Sequence[JudgePairRow], connecting: Sequence[PairVerdict] = ("copies",)
) -> list[list[int]]:
    """Groups of judges that are connected by pairs, as positions; a judge of its own is a group of one.

    Args:
        connecting: findings on pairs that connect; by default those that make judges share one vote.
    """
    connected = [
        (i, j) for (i, j), pair in zip(judge_pairs(len(judges)), pairs, strict=True) if pair.verdict in connecting
    ]
    return group_judges(len(judges), connected)


def _name_groups(judges: Sequence[str], groups: Sequence[Sequence[int]]) -> list[list[str]]:
    """Names of the judges of each group of at least two."""
    return [[judges[judge] for judge in group] for group in groups if len(group) > 1]


def _estimate_alpha_without(matrix: VerdictMatrix, groups: Sequence[Sequence[int]]) -> Estimate | None:
    """Krippendorff's alpha with the first judge of each group; None where each judge is a group of its own."""
    if len(groups) == len(matrix.judges):
        return None
    verdicts = matrix.unconditional_verdicts[[group[0] for group in groups]]
    return agreement_estimate(krippendorff_alpha(verdicts, units=matrix.units))


def _build_pair_row(
    config: AuditConfig | None,
    names: tuple[str, str],
    agreement: ShareEstimate,
    pair: PairErrors,
    excess: Estimate,
    verdict: PairVerdict,
) -> JudgePairRow:
    """Build the row of one pair, with what the configuration says of both judges."""
    judges = {} if config is None else {judge.name: judge for judge in config.judge_models}
    first, second = (judges.get(name) for name in names)
    are_known = first is not None and second is not None
    return JudgePairRow(
        first=names[0],
        second=names[1],
        agreement=agreement,
        error_correlation=pair.correlation,
        excess=excess,
        verdict=verdict,
        same_model=_base_model(first) == _base_model(second) if are_known else None,
        same_family=first.resolved_family == second.resolved_family if first and second else None,
        same_prompt=(first.review_prompt, first.system) == (second.review_prompt, second.system)
        if first and second
        else None,
    )


def _base_model(judge: ModelSection | None) -> str | None:
    """Name of the model behind a judge, without the provider: `gpt-4o` of `openai/gpt-4o`."""
    return None if judge is None else (judge.base_model or judge.model).rsplit("/", 1)[-1]
