"""Outcomes of the traces under several voting rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log

import numpy as np

from auditor.metrics.estimate import ShareEstimate
from auditor.metrics.judge_copying import split_weights
from auditor.metrics.rater_model import dawid_skene
from auditor.metrics.unit_means import share_over_units
from auditor.metrics.votes import agreement_with_others
from auditor.reports.data.panel.schema import VotingRuleRow
from auditor.reports.data.panel.trace_votes import decide_by_weight, share_weights
from auditor.reports.data.panel.verdict_matrix import VerdictMatrix
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.sampling_units import Units

Groups = Sequence[Sequence[int]]
REFERENCE_REASON = "it is the reference for the other rules"


def build_vote_rows(source: ReportSource, matrix: VerdictMatrix, groups: Groups) -> list[VotingRuleRow]:
    """Apply each voting rule to the traces, one row per rule; the majority of the assigned judges comes first.

    The others are the majority where each group has one vote (only if there are groups), votes weighted by agreement
    with the rest, weighted as configured, and Dawid and Skene's model. Empty without verdicts.

    Args:
        groups: positions of judges that share one vote; together they have all judges.
    """
    if not matrix.traces:
        return []
    ones = np.ones(len(matrix.judges))
    majority = decide_by_weight(matrix, ones[:, None])
    majority_row = _build_vote_row("majority", majority, majority, {}, matrix.units)
    rows = [majority_row.model_copy(update={"differs": ShareEstimate(None, 0, reason=REFERENCE_REASON)})]
    if len(groups) < len(matrix.judges):
        split = decide_by_weight(matrix, share_weights(matrix, groups, ones))
        weights = dict(zip(matrix.judges, split_weights(groups).tolist(), strict=True))
        rows.append(_build_vote_row("copies split", split, majority, weights, matrix.units))
    rows.append(_build_agreement_row(matrix, majority, groups))
    if source.config is not None and source.config.panel.weights:
        configured = np.array([source.config.panel.weights.get(name, 1.0) for name in matrix.judges])
        rows.append(_build_weighted_vote_row(matrix, majority, "weighted as configured", configured))
    return [*rows, _build_latent_model_row(matrix, majority, groups)]


def _build_agreement_row(matrix: VerdictMatrix, majority: FloatArray, groups: Groups) -> VotingRuleRow:
    """Weight votes by agreement with the judges outside the own group; the members of a group share its weight."""
    agreement_shares = agreement_with_others(matrix.unconditional_verdicts, matrix.units, groups)
    log_odds_weights = [_log_odds_weight(round((share.value or 0) * share.n), share.n) for share in agreement_shares]
    weights = np.array(log_odds_weights) * split_weights(groups)
    return _build_weighted_vote_row(matrix, majority, "weighted by agreement with the rest", weights)


def _build_latent_model_row(matrix: VerdictMatrix, majority: FloatArray, groups: Groups) -> VotingRuleRow:
    """Apply Dawid and Skene's model, in which a group is one witness."""
    latent_model = dawid_skene(matrix.all_verdicts, groups=groups)
    if latent_model.reason is not None:
        return _build_vote_row("dawid-skene", None, majority, {}, matrix.units, latent_model.reason)
    accuracy = {
        name: float(judge_accuracy)
        for name, judge_accuracy in zip(matrix.judges, latent_model.accuracy, strict=True)
        if not np.isnan(judge_accuracy)
    }
    return _build_vote_row("dawid-skene", latent_model.labels(), majority, accuracy, matrix.units)


def _log_odds_weight(n_agreed: int, n_traces: int) -> float:
    """Optimal weight of an independent judge (Nitzan and Paroush 1982), log(p / (1 - p)), never below 0.

    p is the share of traces on which the judge agrees with the others, smoothed by one success and one failure.
    """
    p = (n_agreed + 1) / (n_traces + 2)
    return max(log(p / (1 - p)), 0.0)


def _build_weighted_vote_row(
    matrix: VerdictMatrix, majority: FloatArray, rule: str, weights: FloatArray
) -> VotingRuleRow:
    """Apply a weighted majority, with weights, shape (judges,), scaled to a mean of 1."""
    if not weights.sum() > 0:
        return _build_vote_row(rule, None, majority, {}, matrix.units, "no judge has any weight")
    scaled = weights / weights.mean()
    weights_by_judge = dict(zip(matrix.judges, scaled.tolist(), strict=True))
    return _build_vote_row(rule, decide_by_weight(matrix, scaled[:, None]), majority, weights_by_judge, matrix.units)


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
            differs=ShareEstimate(None, 0, reason=reason or "not available"),
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
