"""Statistics of judges: agreement, biases, voting rules, and correlation of peer agreement with people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log

import numpy as np

from auditor.domain import Outcome
from auditor.metrics.agreement import Agreement, fleiss_kappa, gwet_ac1, krippendorff_alpha, leave_one_rater_out
from auditor.metrics.correlation import pearson
from auditor.metrics.estimate import Estimate
from auditor.metrics.judge_bias import BiasEstimate, leniency, order_effect, self_preference, verbosity_bias
from auditor.metrics.two_way_means import two_way_share
from auditor.metrics.votes import agreement_with_others, dawid_skene
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.estimate_conversion import (
    clustered_to_estimate,
    estimate_share,
    missing_estimate,
    to_estimate,
)
from auditor.reports.data.measurement_schema import PeerAgreementRow
from auditor.reports.data.panel.schema import JudgeRow, PeerAlignmentRow, VotingRuleRow
from auditor.reports.data.panel.verdict_matrix import VerdictMatrix, find_family
from auditor.reports.data.report_source import FloatArray, ReportSource

OK = Outcome.OK.value


def agreement_estimate(agreement: Agreement) -> Estimate:
    """Convert an agreement coefficient to an estimate; n counts traces."""
    reason_labels = {
        "no item has 2 ratings": "no trace has verdicts of two judges",
        "all ratings are the same": "all verdicts are the same, so there is no chance agreement to compare with",
    }
    reason = None if agreement.reason is None else reason_labels.get(agreement.reason, agreement.reason)
    return Estimate(
        value=agreement.value, n=agreement.n_items, ci_low=agreement.ci_low, ci_high=agreement.ci_high, reason=reason
    )


def compute_agreement(matrix: VerdictMatrix, seed: int) -> tuple[Agreement, Agreement, Agreement]:
    """Compute Fleiss' kappa, Krippendorff's alpha and Gwet's AC1, in this order, over the unconditional verdicts.

    Unconditional verdicts were asked for whatever other judges said. Those that an adaptive panel asked for because
    others disagreed would bias them and are left out.
    """
    # Shape (traces, 2): VALID and INVALID verdicts on each trace.
    counts = np.stack([np.nansum(matrix.unconditional_verdicts == ruling, axis=0) for ruling in (1, 0)], axis=1)
    return (
        fleiss_kappa(counts, seed=seed),
        krippendorff_alpha(matrix.unconditional_verdicts, seed=seed),
        gwet_ac1(matrix.unconditional_verdicts, 2, seed=seed),  # two categories: VALID and INVALID
    )


def compute_prevalence(matrix: VerdictMatrix, seed: int, n_resamples: int = 2000) -> Estimate:
    """Share of VALID among the verdicts on traces with at least two, with a 95% CI by bootstrap over traces."""
    has_verdict = ~np.isnan(matrix.unconditional_verdicts)
    has_two = has_verdict.sum(axis=0) >= 2
    n_verdicts, n_valid = has_verdict.sum(axis=0)[has_two], np.nansum(matrix.unconditional_verdicts, axis=0)[has_two]
    if not len(n_verdicts):
        return missing_estimate("no trace has verdicts of two judges")
    # Traces with the same counts are drawn together: one row per pair of (VALID verdicts, verdicts).
    patterns, frequencies = np.unique(np.stack([n_valid, n_verdicts], axis=1), axis=0, return_counts=True)
    draws = np.random.default_rng(seed).multinomial(len(n_verdicts), frequencies / len(n_verdicts), n_resamples)
    shares = (draws @ patterns[:, 0]) / (draws @ patterns[:, 1])
    low, high = np.quantile(shares, (0.025, 0.975))
    valid_share = float(n_valid.sum() / n_verdicts.sum())
    if high - low < 1e-12:
        return Estimate(value=valid_share, n=len(n_verdicts), reason="every trace has the same verdicts: no interval")
    return Estimate(value=valid_share, n=len(n_verdicts), ci_low=float(low), ci_high=float(high))


def build_judge_rows(source: ReportSource, matrix: VerdictMatrix) -> list[JudgeRow]:
    """Build one row per judge that was asked, from verdicts asked for whatever other judges said."""
    verdicts, seed = matrix.unconditional_verdicts, source.seed
    alphas_without = _alphas_without_each_judge(matrix, seed)
    # One estimate per judge in each column: agreement with the others, alpha without the judge, leniency, bias to
    # longer traces, bias to its own family, order effect, mean confidence, and share of VALID.
    estimate_columns: Sequence[Sequence[Estimate]] = (
        [to_estimate(share) for share in agreement_with_others(verdicts)],
        [agreement_estimate(alpha) for alpha in alphas_without],
        _to_bias_estimates(leniency(verdicts, matrix.cell_index)),
        _to_bias_estimates(verbosity_bias(verdicts, matrix.is_longer_trace, matrix.cell_index)),
        _estimate_family_bias(matrix),
        _to_bias_estimates(order_effect(verdicts, matrix.recorded_at, matrix.cell_index)),
        [
            _clustered_share(matrix, trace_scores, "the judge stated no confidence")
            for trace_scores in matrix.confidence  # stated confidence on each trace
        ],
        # Here the scores are verdicts: 1 for VALID, 0 for INVALID.
        [_clustered_share(matrix, trace_scores, "no verdict is usable") for trace_scores in verdicts],
    )
    asked_judges = {count.judge for count in source.judge_counts}
    return [
        _build_judge_row(source, name, [estimates[i] for estimates in estimate_columns])
        for i, name in enumerate(matrix.judges)
        if name in asked_judges
    ]


def _clustered_share(matrix: VerdictMatrix, trace_scores: FloatArray, missing_reason: str) -> Estimate:
    """Mean over traces of values in [0, 1], ignoring nan, with an interval over countries and topics.

    Args:
        trace_scores: shape (traces,).
    """
    # `cell_labels` holds the country of each cell, then the topic of each cell.
    known, n_cells = ~np.isnan(trace_scores), len(matrix.cell_labels[0])
    sums, counts = (
        np.bincount(matrix.cell_index[known], weights, minlength=n_cells) for weights in (trace_scores[known], None)
    )
    # Sums of the values and numbers of traces, both by cell.
    return clustered_to_estimate(two_way_share(sums, counts, *matrix.cell_labels), missing_reason)


def _alphas_without_each_judge(matrix: VerdictMatrix, seed: int) -> Sequence[Agreement]:
    """Krippendorff's alpha with each judge left out in turn."""

    def alpha(ratings: FloatArray) -> Agreement:
        return krippendorff_alpha(ratings, seed=seed)

    return leave_one_rater_out(matrix.unconditional_verdicts, alpha)


def _estimate_family_bias(matrix: VerdictMatrix) -> list[Estimate]:
    """Bias of each judge towards its own family; missing unless models of its family and of others are judged."""
    estimates = _to_bias_estimates(
        self_preference(matrix.unconditional_verdicts, matrix.is_same_family, matrix.cell_index)
    )
    has_both_kinds = np.asarray(matrix.is_same_family.any(axis=1) & (~matrix.is_same_family).any(axis=1))
    return [
        estimate if is_known else missing_estimate("no other model of its family is judged")
        for estimate, is_known in zip(estimates, has_both_kinds.tolist(), strict=True)
    ]


def _to_bias_estimates(biases: Sequence[BiasEstimate]) -> list[Estimate]:
    """Convert one bias per judge to estimates."""
    return [to_estimate(bias) for bias in biases]


def _build_judge_row(source: ReportSource, judge: str, estimates: Sequence[Estimate]) -> JudgeRow:
    """Build one judge's row; `estimates` are in the order of `build_judge_rows`."""
    judge_counts = [count for count in source.judge_counts if count.judge == judge]
    outcomes = Counter[str]()
    for count in judge_counts:
        outcomes[count.outcome] += count.n
    agreement, alpha_without, leniency_bias, length_bias, family_bias, order_bias, confidence, valid_share = estimates
    return JudgeRow(
        judge=judge,
        family=find_family(source.config, judge),
        assigned=outcomes.total(),
        given=outcomes[OK],  # valid verdicts
        losses={
            outcome.value: outcomes[outcome.value]
            for outcome in Outcome
            if outcome is not Outcome.OK and outcomes[outcome.value]
        },
        shortened=sum(count.shortened for count in judge_counts),
        valid=valid_share,
        confidence=confidence,
        agreement=agreement,
        alpha_without=alpha_without,
        leniency=leniency_bias,
        verbosity=length_bias,
        own_family=family_bias,
        order=order_bias,
    )


# --- votes ------------------------------------------------------------------------------------------------------


def build_vote_rows(source: ReportSource, matrix: VerdictMatrix) -> list[VotingRuleRow]:
    """Apply each voting rule to the traces, one row per rule; the majority of the assigned judges comes first.

    The others are votes weighted by agreement with the rest, weighted as configured, and Dawid and Skene's model.
    Empty without verdicts.
    """
    if not matrix.traces:
        return []
    majority = _decide_by_weight(matrix, np.ones(len(matrix.judges)))
    rows = [_build_vote_row("majority", majority, majority, {})]
    agreement_shares = agreement_with_others(matrix.unconditional_verdicts)
    log_odds_weights = {
        name: _log_odds_weight(round((share.value or 0) * share.n), share.n)
        for name, share in zip(matrix.judges, agreement_shares, strict=True)
    }
    rows.append(_build_weighted_vote_row(matrix, majority, "weighted by agreement with the rest", log_odds_weights))
    if source.config is not None and source.config.panel.weights:
        rows.append(_build_weighted_vote_row(matrix, majority, "weighted as configured", source.config.panel.weights))
    latent_model = dawid_skene(matrix.all_verdicts)
    if latent_model.reason is not None:
        return [*rows, _build_vote_row("dawid-skene", None, majority, {}, latent_model.reason)]
    accuracy = {
        name: float(judge_accuracy)
        for name, judge_accuracy in zip(matrix.judges, latent_model.accuracy, strict=True)
        if not np.isnan(judge_accuracy)
    }
    return [*rows, _build_vote_row("dawid-skene", latent_model.labels(), majority, accuracy)]


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
        return _build_vote_row(rule, None, majority, {}, "no judge has any weight")
    judge_weights = judge_weights / judge_weights.mean()
    weights_by_judge = dict(zip(matrix.judges, judge_weights.tolist(), strict=True))
    return _build_vote_row(rule, _decide_by_weight(matrix, judge_weights), majority, weights_by_judge)


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
    reason: str | None = None,
) -> VotingRuleRow:
    """Summarise one voting rule.

    Args:
        decisions: 1 VALID, 0 INVALID, nan open, shape (traces,); None where the rule cannot be applied.
        majority: decisions of the plain majority.
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
        differs=estimate_share(int((both_decide & (decisions != majority)).sum()), int(both_decide.sum())),
        weights=dict(weights),
    )


# --- peer agreement and people ----------------------------------------------------------------------------------


def compute_peer_alignment(
    peer_rows: Sequence[PeerAgreementRow], alignment_rows: Sequence[AlignmentRow]
) -> list[PeerAlignmentRow]:
    """Correlate peer agreement with r against people over models, for each method."""
    agreement_by_model = {row.model: row.agreement.value for row in peer_rows}
    rows = []
    for method in dict.fromkeys(row.method for row in alignment_rows):
        method_rows = [row for row in alignment_rows if row.method == method and row.model in agreement_by_model]
        peer_shares = [
            np.nan if agreement_by_model[row.model] is None else agreement_by_model[row.model] for row in method_rows
        ]
        r_with_people = [np.nan if row.pearson_r is None else row.pearson_r for row in method_rows]
        correlation = pearson(np.array(peer_shares, dtype=float), np.array(r_with_people, dtype=float))
        reason_labels = {
            "x constant": "peers find all models equally VALID",
            "y constant": "all models agree alike with people",
        }
        reason = (
            None
            if correlation.reason is None
            else reason_labels.get(correlation.reason, correlation.reason.replace("pairs", "models"))
        )
        r = Estimate(
            value=correlation.r, n=correlation.n, ci_low=correlation.ci_low, ci_high=correlation.ci_high, reason=reason
        )
        rows.append(PeerAlignmentRow(method=method, r=r))
    return rows if peer_rows else []
