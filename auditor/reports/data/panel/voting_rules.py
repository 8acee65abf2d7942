"""Outcomes of the traces under several voting rules."""

from __future__ import annotations

from collections.abc import Mapping
from math import log

import numpy as np

from auditor.metrics.unit_means import share_over_units
from auditor.metrics.votes import agreement_with_others, dawid_skene
from auditor.reports.data.estimate_conversion import missing_estimate
from auditor.reports.data.panel.schema import VotingRuleRow
from auditor.reports.data.panel.verdict_matrix import VerdictMatrix
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.sampling_units import Units


def build_vote_rows(source: ReportSource, matrix: VerdictMatrix) -> list[VotingRuleRow]:
    """Apply each voting rule to the traces, one row per rule; the majority of the assigned judges comes first.

    The others are votes weighted by agreement with the rest, weighted as configured, and Dawid and Skene's model.
    Empty without verdicts.
    """
    if not matrix.traces:
        return []
    majority = _decide_by_weight(matrix, np.ones(len(matrix.judges)))
    rows = [_build_vote_row("majority", majority, majority, {}, matrix.units)]
    agreement_shares = agreement_with_others(matrix.unconditional_verdicts, matrix.units)
    log_odds_weights = {
        name: _log_odds_weight(round((share.value or 0) * share.n), share.n)
        for name, share in zip(matrix.judges, agreement_shares, strict=True)
    }
    rows.append(_build_weighted_vote_row(matrix, majority, "weighted by agreement with the rest", log_odds_weights))
    if source.config is not None and source.config.panel.weights:
        rows.append(_build_weighted_vote_row(matrix, majority, "weighted as configured", source.config.panel.weights))
    latent_model = dawid_skene(matrix.all_verdicts)
    if latent_model.reason is not None:
        return [*rows, _build_vote_row("dawid-skene", None, majority, {}, matrix.units, latent_model.reason)]
    accuracy = {
        name: float(judge_accuracy)
        for name, judge_accuracy in zip(matrix.judges, latent_model.accuracy, strict=True)
        if not np.isnan(judge_accuracy)
    }
    return [*rows, _build_vote_row("dawid-skene", latent_model.labels(), majority, accuracy, matrix.units)]


def _log_odds_weight(n_agreed: int, n_traces: int) -> float:
    """Optimal weight of an independent judge (Nitzan and Paroush 1982), log(p / (1 - p)), never below 0.

    p is the share of traces on which the judge agrees with the others, smoothed by one success and one failure.
    """
    p = (n_agreed + 1) / (n_traces + 2)
    return max(log(p / (1 - p)), 0.0)


def _build_weighted_vote_row(
    matrix: VerdictMatrix, majority: FloatArray, rule: str, weights: Mapping[str, float]
) -> VotingRuleRow:
    """Apply a weighted majority, with weights scaled to a mean of 1; judges without a weight count 1."""
    judge_weights = np.array([weights.get(name, 1.0) for name in matrix.judges])
    if not judge_weights.sum() > 0:
        return _build_vote_row(rule, None, majority, {}, matrix.units, "no judge has any weight")
    judge_weights = judge_weights / judge_weights.mean()
    weights_by_judge = dict(zip(matrix.judges, judge_weights.tolist(), strict=True))
    return _build_vote_row(rule, _decide_by_weight(matrix, judge_weights), majority, weights_by_judge, matrix.units)


def _decide_by_weight(matrix: VerdictMatrix, weights: FloatArray) -> FloatArray:
    """Weighted majority of each trace, shape (traces,): 1 VALID, 0 INVALID, nan if neither has over half the weight."""
    verdicts = matrix.all_verdicts
    weight_by_side = [(weights[:, None] * (verdicts == ruling)).sum(axis=0) for ruling in (1, 0)]
    total = _sum_assigned_weights(matrix, weights)  # the factor below absorbs rounding: half is no majority
    return np.where(
        weight_by_side[0] > total / 2 * (1 + 1e-12),
        1.0,
        np.where(weight_by_side[1] > total / 2 * (1 + 1e-12), 0.0, np.nan),
    )


def _sum_assigned_weights(matrix: VerdictMatrix, weights: FloatArray) -> FloatArray:
    """Total weight of the judges assigned to each trace, shape (traces,); for imports, of the judges with a verdict."""
    voting_weight: FloatArray = (weights[:, None] * ~np.isnan(matrix.all_verdicts)).sum(axis=0)
    if matrix.config is None:
        return voting_weight
    weight_by_judge = dict(zip(matrix.judges, weights.tolist(), strict=True))
    if matrix.assignments is not None:
        assigned_judges = [matrix.assignments.get(key) for key in matrix.traces]
        return np.array(
            [
                recorded_weight if judges is None else sum(weight_by_judge[judge] for judge in judges)
                for judges, recorded_weight in zip(assigned_judges, voting_weight, strict=True)
            ]
        )
    weight_by_author = {
        model.name: sum(weight_by_judge[judge.name] for judge in matrix.config.judges_of(model.name))
        for model in matrix.config.models
    }
    return np.array(
        [
            # The first item of a key is the author.
            weight_by_author.get(key[0], recorded_weight)
            for key, recorded_weight in zip(matrix.traces, voting_weight, strict=True)
        ]
    )


def _build_vote_row(
    rule: str,
    decisions: FloatArray | None,
    majority: FloatArray,
    weights: Mapping[str, float],
    units: Units,
    reason: str | None = None,
) -> VotingRuleRow:
    """Summarise one voting rule.

    Args:
        decisions: 1 VALID, 0 INVALID, nan open, shape (traces,); None where the rule cannot be applied.
        majority: decisions of the plain majority.
        units: of the traces.
        reason: why `decisions` is None.
    """
    if decisions is None:
        return VotingRuleRow(
            rule=rule,
            valid=0,
            invalid=0,
            open=len(majority),
            differs=missing_estimate(reason or ""),
            weights={},
            reason=reason,
        )
    both_decide = ~np.isnan(decisions) & ~np.isnan(majority)
    return VotingRuleRow(
        rule=rule,
        valid=int((decisions == 1).sum()),
        invalid=int((decisions == 0).sum()),
        open=int(np.isnan(decisions).sum()),
        differs=share_over_units(both_decide & (decisions != majority), both_decide, units),
        weights=dict(weights),
    )
