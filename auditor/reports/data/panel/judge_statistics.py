"""Statistics of judges: agreement and biases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from auditor.domain import Outcome
from auditor.metrics.agreement import Agreement, fleiss_kappa, gwet_ac1, krippendorff_alpha, leave_one_rater_out
from auditor.metrics.estimate import Estimate
from auditor.metrics.judge_difference import JudgeDifference
from auditor.metrics.two_way_means import two_way_share
from auditor.metrics.votes import agreement_with_others
from auditor.reports.data.estimate_conversion import (
    clustered_to_estimate,
    missing_estimate,
    to_estimate,
)
from auditor.reports.data.panel.judge_biases import estimate_judge_biases
from auditor.reports.data.panel.schema import JudgeRow
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
    biases = estimate_judge_biases(source, matrix)
    # One estimate per judge in each column: agreement with the others, alpha without the judge, mean confidence, and
    # share of VALID.
    estimate_columns: Sequence[Sequence[Estimate]] = (
        [to_estimate(share) for share in agreement_with_others(verdicts)],
        [agreement_estimate(alpha) for alpha in alphas_without],
        [
            _clustered_share(matrix, trace_scores, "the judge stated no confidence")
            for trace_scores in matrix.confidence  # stated confidence on each trace
        ],
        # Here the scores are verdicts: 1 for VALID, 0 for INVALID.
        [_clustered_share(matrix, trace_scores, "no verdict is usable") for trace_scores in verdicts],
    )
    asked_judges = {count.judge for count in source.judge_counts}
    return [
        _build_judge_row(
            source,
            name,
            [estimates[i] for estimates in estimate_columns],
            {field: differences[i] for field, differences in biases.items()},
        )
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


def _build_judge_row(
    source: ReportSource, judge: str, estimates: Sequence[Estimate], biases: Mapping[str, JudgeDifference]
) -> JudgeRow:
    """Build one judge's row; `estimates` are in the order of `build_judge_rows`, `biases` by field name."""
    judge_counts = [count for count in source.judge_counts if count.judge == judge]
    outcomes = Counter[str]()
    for count in judge_counts:
        outcomes[count.outcome] += count.n
    agreement, alpha_without, confidence, valid_share = estimates
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
        **biases,
    )
