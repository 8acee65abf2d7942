"""What judges agree on and lean to, how their votes count, and whether peers know what people think."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log

import numpy as np

from auditor.domain import Outcome
from auditor.metrics.agreement import Agreement, fleiss_kappa, gwet_ac1, krippendorff_alpha, leave_one_rater_out
from auditor.metrics.correlation import pearson
from auditor.metrics.judge_bias import BiasEstimate, leniency, order_effect, self_preference, verbosity_bias
from auditor.metrics.two_way_means import two_way_share
from auditor.metrics.votes import agreement_with_others, dawid_skene
from auditor.reports.estimate_conversion import clustered_to_estimate, estimate_share, missing_estimate, to_estimate
from auditor.reports.measurement_schema import AlignmentRow, Estimate, PeerAgreementRow
from auditor.reports.panel.schema import JudgeRow, PeerAlignmentRow, VotingRuleRow
from auditor.reports.panel.verdict_matrix import VerdictMatrix, find_family
from auditor.reports.report_source import FloatArray, ReportSource

OK = Outcome.OK.value
NO_SHARED_TRACE_REASON = "no trace has a verdict of this judge and of another"


def agreement_estimate(agreement: Agreement) -> Estimate:
    """A coefficient in the report's words; n counts traces."""
    words = {
        "no item has 2 ratings": "no trace has verdicts of two judges",
        "all ratings are the same": "all verdicts are the same, so there is no chance agreement to compare with",
    }
    reason = None if agreement.reason is None else words.get(agreement.reason, agreement.reason)
    return Estimate(
        value=agreement.value, n=agreement.n_items, ci_low=agreement.ci_low, ci_high=agreement.ci_high, reason=reason
    )


def compute_agreement(matrix: VerdictMatrix, seed: int) -> tuple[Agreement, Agreement, Agreement]:
    """Fleiss' kappa, Krippendorff's alpha and Gwet's AC1 over the verdicts that statistics may rest on."""
    counts = np.stack([np.nansum(matrix.unconditional_verdicts == value, axis=0) for value in (1, 0)], axis=1)
    return (
        fleiss_kappa(counts, seed=seed),
        krippendorff_alpha(matrix.unconditional_verdicts, seed=seed),
        gwet_ac1(matrix.unconditional_verdicts, 2, seed=seed),
    )


def compute_prevalence(matrix: VerdictMatrix, seed: int, n_resamples: int = 2000) -> Estimate:
    """Share of VALID in the verdicts on traces with at least two, by a bootstrap over traces."""
    there = ~np.isnan(matrix.unconditional_verdicts)
    kept = there.sum(axis=0) >= 2
    n, valid = there.sum(axis=0)[kept], np.nansum(matrix.unconditional_verdicts, axis=0)[kept]
    if not len(n):
        return missing_estimate("no trace has verdicts of two judges")
    patterns, times = np.unique(np.stack([valid, n], axis=1), axis=0, return_counts=True)
    draws = np.random.default_rng(seed).multinomial(len(n), times / len(n), n_resamples)
    shares = (draws @ patterns[:, 0]) / (draws @ patterns[:, 1])
    low, high = np.quantile(shares, (0.025, 0.975))
    value = float(valid.sum() / n.sum())
    if high - low < 1e-12:
        return Estimate(value=value, n=len(n), reason="every trace has the same verdicts: no interval")
    return Estimate(value=value, n=len(n), ci_low=float(low), ci_high=float(high))


def build_judge_rows(source: ReportSource, matrix: VerdictMatrix) -> list[JudgeRow]:
    """One row for each judge that was asked."""
    fair, seed = matrix.unconditional_verdicts, source.seed
    without = _alphas_without_each_judge(matrix, seed)
    columns: Sequence[Sequence[Estimate]] = (
        [to_estimate(p) for p in agreement_with_others(fair)],
        [agreement_estimate(a) for a in without],
        _to_bias_estimates(leniency(fair, matrix.cell_index)),
        _to_bias_estimates(verbosity_bias(fair, matrix.is_longer_trace, matrix.cell_index)),
        _estimate_family_bias(matrix),
        _to_bias_estimates(order_effect(fair, matrix.recorded_at, matrix.cell_index)),
        [_clustered_share(matrix, row, "the judge did not say how sure it is") for row in matrix.confidence],
        [_clustered_share(matrix, row, "nothing to count") for row in fair],
    )
    asked = {j.judge for j in source.judge_counts}
    return [
        _build_judge_row(source, name, [column[i] for column in columns])
        for i, name in enumerate(matrix.judges)
        if name in asked
    ]


def _clustered_share(matrix: VerdictMatrix, trace_scores: FloatArray, missing_reason: str) -> Estimate:
    """The mean over traces of what is in [0, 1]; nan where there is none."""
    known, n = ~np.isnan(trace_scores), len(matrix.cell_labels[0])
    sums, counts = (np.bincount(matrix.cell_index[known], w, minlength=n) for w in (trace_scores[known], None))
    return clustered_to_estimate(two_way_share(sums, counts, *matrix.cell_labels), missing_reason)


def _alphas_without_each_judge(matrix: VerdictMatrix, seed: int) -> Sequence[Agreement]:
    def alpha(ratings: FloatArray) -> Agreement:
        return krippendorff_alpha(ratings, seed=seed)

    return leave_one_rater_out(matrix.unconditional_verdicts, alpha)


def _estimate_family_bias(matrix: VerdictMatrix) -> list[Estimate]:
    found = _to_bias_estimates(self_preference(matrix.unconditional_verdicts, matrix.is_same_family, matrix.cell_index))
    known = np.asarray(matrix.is_same_family.any(axis=1) & (~matrix.is_same_family).any(axis=1))
    return [
        e if k else missing_estimate("no other model of its family is judged")
        for e, k in zip(found, known.tolist(), strict=True)
    ]


def _to_bias_estimates(biases: Sequence[BiasEstimate]) -> list[Estimate]:
    return [to_estimate(leaning) for leaning in biases]


def _build_judge_row(source: ReportSource, judge: str, estimates: Sequence[Estimate]) -> JudgeRow:
    mine = [j for j in source.judge_counts if j.judge == judge]
    outcomes = Counter[str]()
    for j in mine:
        outcomes[j.outcome] += j.n
    agreement, without, mild, wordy, kin, order, sure, valid = estimates
    return JudgeRow(
        judge=judge,
        family=find_family(source.config, judge),
        assigned=outcomes.total(),
        given=outcomes[OK],
        losses={o.value: outcomes[o.value] for o in Outcome if o is not Outcome.OK and outcomes[o.value]},
        shortened=sum(j.shortened for j in mine),
        valid=valid,
        confidence=sure,
        agreement=agreement,
        alpha_without=without,
        leniency=mild,
        verbosity=wordy,
        own_family=kin,
        order=order,
    )


# --- votes ------------------------------------------------------------------------------------------------------


def build_vote_rows(source: ReportSource, matrix: VerdictMatrix) -> list[VotingRuleRow]:
    """What each way of counting makes of the traces; the plain majority of the assigned seats first."""
    if not matrix.traces:
        return []
    plain = _decide_by_weight(matrix, np.ones(len(matrix.judges)))
    rows = [_build_vote_row("majority", plain, plain, {})]
    shares = agreement_with_others(matrix.unconditional_verdicts)
    taught = {
        name: _log_odds_weight(round((p.value or 0) * p.n), p.n) for name, p in zip(matrix.judges, shares, strict=True)
    }
    rows.append(_build_weighted_vote_row(matrix, plain, "weighted by agreement with the rest", taught))
    if source.config is not None and source.config.panel.weights:
        rows.append(_build_weighted_vote_row(matrix, plain, "weighted as configured", source.config.panel.weights))
    fitted = dawid_skene(matrix.all_verdicts)
    if fitted.reason is not None:
        return [*rows, _build_vote_row("dawid-skene", None, plain, {}, fitted.reason)]
    accuracy = {name: float(a) for name, a in zip(matrix.judges, fitted.accuracy, strict=True) if not np.isnan(a)}
    return [*rows, _build_vote_row("dawid-skene", fitted.labels(), plain, accuracy)]


def _log_odds_weight(n_agreed: int, n_traces: int) -> float:
    """The best weight of an independent judge (Nitzan and Paroush 1982), never below 0."""
    p = (n_agreed + 1) / (n_traces + 2)
    return max(log(p / (1 - p)), 0.0)


def _build_weighted_vote_row(
    matrix: VerdictMatrix, majority: FloatArray, rule: str, weights: Mapping[str, float]
) -> VotingRuleRow:
    vector = np.array([weights.get(name, 1.0) for name in matrix.judges])
    if not vector.sum() > 0:
        return _build_vote_row(rule, None, majority, {}, "no judge has any weight")
    vector = vector / vector.mean()
    told = dict(zip(matrix.judges, vector.tolist(), strict=True))
    return _build_vote_row(rule, _decide_by_weight(matrix, vector), majority, told)


def _decide_by_weight(matrix: VerdictMatrix, weights: FloatArray) -> FloatArray:
    """1, 0, or nan where no side holds more than half of the weight assigned to a trace, shape (traces,)."""
    said = matrix.all_verdicts
    held = [(weights[:, None] * (said == value)).sum(axis=0) for value in (1, 0)]
    total = _sum_assigned_weights(matrix, weights)
    return np.where(held[0] > total / 2 * (1 + 1e-12), 1.0, np.where(held[1] > total / 2 * (1 + 1e-12), 0.0, np.nan))


def _sum_assigned_weights(matrix: VerdictMatrix, weights: FloatArray) -> FloatArray:
    """The weight of all judges that a trace was assigned to, shape (traces,); of those who ruled, where imported."""
    ruled: FloatArray = (weights[:, None] * ~np.isnan(matrix.all_verdicts)).sum(axis=0)
    if matrix.config is None:
        return ruled
    of = dict(zip(matrix.judges, weights.tolist(), strict=True))
    if matrix.assignments is not None:
        given = [matrix.assignments.get(key) for key in matrix.traces]
        return np.array([o if j is None else sum(of[n] for n in j) for j, o in zip(given, ruled, strict=True)])
    panels = {m.name: sum(of[j.name] for j in matrix.config.judges_of(m.name)) for m in matrix.config.models}
    return np.array([panels.get(key[0], own) for key, own in zip(matrix.traces, ruled, strict=True)])


def _build_vote_row(
    rule: str,
    decisions: FloatArray | None,
    majority: FloatArray,
    weights: Mapping[str, float],
    reason: str | None = None,
) -> VotingRuleRow:
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
    both = ~np.isnan(decisions) & ~np.isnan(majority)
    return VotingRuleRow(
        rule=rule,
        valid=int((decisions == 1).sum()),
        invalid=int((decisions == 0).sum()),
        open=int(np.isnan(decisions).sum()),
        differs=estimate_share(int((both & (decisions != majority)).sum()), int(both.sum())),
        weights=dict(weights),
    )


# --- peers and people -------------------------------------------------------------------------------------------


def compute_peer_alignment(
    peer_rows: Sequence[PeerAgreementRow], alignment_rows: Sequence[AlignmentRow]
) -> list[PeerAlignmentRow]:
    """For each method, the correlation over models of peer agreement with r against people."""
    agreed = {row.model: row.agreement.value for row in peer_rows}
    rows = []
    for method in dict.fromkeys(row.method for row in alignment_rows):
        mine = [row for row in alignment_rows if row.method == method and row.model in agreed]
        x = [np.nan if agreed[row.model] is None else agreed[row.model] for row in mine]
        y = [np.nan if row.pearson_r is None else row.pearson_r for row in mine]
        found = pearson(np.array(x, dtype=float), np.array(y, dtype=float))
        words = {
            "x constant": "peers find all models equally VALID",
            "y constant": "all models agree alike with people",
        }
        reason = None if found.reason is None else words.get(found.reason, found.reason.replace("pairs", "models"))
        r = Estimate(value=found.r, n=found.n, ci_low=found.ci_low, ci_high=found.ci_high, reason=reason)
        rows.append(PeerAlignmentRow(method=method, r=r))
    return rows if peer_rows else []
