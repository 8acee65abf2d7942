"""Statistics of judges: agreement, and differences that may be biases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from auditor.domain import HarmlessAlteration, Outcome, Ruling
from auditor.metrics.intervals.estimate import Estimate, ShareEstimate, Tested
from auditor.metrics.intervals.multiple_testing import adjust_tests
from auditor.metrics.intervals.paired import pair_verdicts, paired_differences_over_units
from auditor.metrics.intervals.unit_means import ShareTable, mean_over_units, share_over_units, shares_over_units
from auditor.metrics.judges.accuracy import (
    JudgeDifference,
    length_association,
    length_bias_against_labels,
    leniency_against_labels,
    missing_difference,
)
from auditor.metrics.judges.agreement import (
    Agreement,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    leave_one_rater_out,
)
from auditor.metrics.judges.bias import exposure_effects, later_half, leniency
from auditor.metrics.judges.votes import agreement_with_others
from auditor.reports.data.panel.schema import JudgeRow
from auditor.reports.data.panel.verdict_matrix import VerdictMatrix, find_family, load_task_truth
from auditor.reports.data.report_source import FloatArray, ReportSource

NO_PADDING_REASON = "no trace was padded: run `auditor experiment bias`"
NO_TRUTH_REASON = "no trace has a known truth: human decisions cover only conflicts, which are no random sample"
ONE_OTHER_REASON = "without this judge there is only one other"
"""Why a panel of two judges has no alpha without one of them."""
BIASES = [name for name, field in JudgeRow.model_fields.items() if field.annotation is JudgeDifference]
"""Fields of `JudgeRow` that are one family of tests."""


def estimate_judge_biases(source: ReportSource, matrix: VerdictMatrix) -> dict[str, list[JudgeDifference]]:
    """Estimate all differences of `JudgeRow`, one per judge, by field name; p-values are adjusted over all of them."""
    verdicts, units = matrix.unconditional_verdicts, matrix.units
    labels = load_task_truth(source, matrix)
    has_labels = bool((~np.isnan(labels)).any())
    differences = {
        "padding": _estimate_padding_effects(source, matrix),
        "leniency": leniency_against_labels(verdicts, labels, units) if has_labels else leniency(verdicts, units),
        "verbosity": length_association(verdicts, matrix.is_longer_trace, units),
        "verbosity_against_truth": length_bias_against_labels(verdicts, labels, matrix.is_longer_trace, units)
        if has_labels
        else [missing_difference(NO_TRUTH_REASON, "truth") for _ in matrix.judges],
        "own_family": _exposure_effects(
            matrix, verdicts, matrix.is_same_family, "no other model of its family is judged"
        ),
        "order": _estimate_order_effects(matrix, verdicts),
    }
    adjusted = iter(adjust_tests((effect for column in differences.values() for effect in column), "biases of judges"))
    return {name: [next(adjusted) for _ in column] for name, column in differences.items()}


def estimate_self_preferences(
    matrix: VerdictMatrix, verdicts: FloatArray, is_own_trace: NDArray[np.bool_]
) -> list[JudgeDifference]:
    """Leniency of each judge towards its own traces minus that towards others; p-values are adjusted over the judges.

    Args:
        verdicts, is_own_trace: shape (judges, traces), verdicts with those of judges on their own traces.
    """
    effects = _exposure_effects(matrix, verdicts, is_own_trace, "no other judge has a verdict on its traces")
    return adjust_tests(effects, "self-preference of judges")


def _exposure_effects(
    matrix: VerdictMatrix, verdicts: FloatArray, is_exposed: NDArray[np.bool_], missing_reason: str
) -> list[JudgeDifference]:
    """Effects of an exposure, with a reason where a judge has verdicts on one side only."""
    has_verdict = ~np.isnan(verdicts)
    has_exposed, has_other = ((has_verdict & side).any(axis=1) for side in (is_exposed, ~is_exposed))
    effects = exposure_effects(verdicts, is_exposed, matrix.units)
    return [
        effect if has_both else missing_difference(missing_reason)
        for effect, has_both in zip(effects, np.logical_and(has_exposed, has_other).tolist(), strict=True)
    ]


def _estimate_order_effects(matrix: VerdictMatrix, verdicts: FloatArray) -> list[JudgeDifference]:
    """Effects of the later half of each judge's verdicts, compared with those of the median judge."""
    is_late = later_half(matrix.recorded_at, verdicts)
    effects = exposure_effects(verdicts, is_late, matrix.units, relative_to_median=True)
    no_order = missing_difference("the order of its verdicts is not known")
    return [
        effect if np.isnan(verdicts_of_judge).all() or np.isfinite(is_late_of_judge).any() else no_order
        for effect, verdicts_of_judge, is_late_of_judge in zip(effects, verdicts, is_late, strict=True)
    ]


def _estimate_padding_effects(source: ReportSource, matrix: VerdictMatrix) -> list[JudgeDifference]:
    """Verdicts on padded traces minus those on the same traces as written, 1 for VALID and 0 for INVALID."""
    padded = np.full(matrix.unconditional_verdicts.shape, np.nan)
    row_by_judge = {judge: i for i, judge in enumerate(matrix.judges)}
    column_by_trace = {trace: i for i, trace in enumerate(matrix.traces)}
    for test in source.judge_tests:
        trace = (test.model, *test.cell, test.sample)
        if test.judge not in row_by_judge or trace not in column_by_trace:
            continue  # no verdict to compare with
        if test.alteration == HarmlessAlteration.PADDED and test.outcome is Outcome.OK:
            padded[row_by_judge[test.judge], column_by_trace[trace]] = float(test.ruling is Ruling.VALID)
    shifts = paired_differences_over_units(
        [
            pair_verdicts(as_written, row, matrix.units)
            for as_written, row in zip(matrix.unconditional_verdicts, padded, strict=True)
        ]
    )
    return [
        missing_difference(NO_PADDING_REASON, "experiment")
        if shift.value is None
        else JudgeDifference(
            shift.value,
            shift.n,
            shift.ci_low,
            shift.ci_high,
            shift.reason,
            shift.resampled,
            evidence="experiment",
            p_value=shift.p_value,
        )
        for shift in shifts
    ]


OK = Outcome.OK.value


def agreement_estimate(agreement: Agreement) -> Estimate:
    """Convert an agreement coefficient to an estimate; n counts traces."""
    return Estimate(
        agreement.value,
        agreement.n,
        agreement.ci_low,
        agreement.ci_high,
        _describe_missing_agreement(agreement.reason, has_value=agreement.value is not None),
        agreement.resampled,
    )


def _describe_missing_agreement(reason: str | None, *, has_value: bool = False) -> str | None:
    """Why agreement, or only its interval, is missing, in terms of verdicts."""
    missing = "there is no interval" if has_value else "agreement beyond chance is undefined"
    reason_labels = {
        "no item has 2 ratings": "no trace has verdicts of two judges",
        "all ratings are the same": f"all verdicts are the same, so {missing}",
    }
    return None if reason is None else reason_labels.get(reason, reason)


def compute_agreement(matrix: VerdictMatrix) -> tuple[Agreement, Agreement, Agreement]:
    """Compute Fleiss' kappa, Krippendorff's alpha and Gwet's AC1, in this order, over the unconditional verdicts.

    Unconditional verdicts were asked for whatever other judges said. Those that an adaptive panel asked for because
    others disagreed would bias them and are left out.
    """
    # Shape (traces, 2): VALID and INVALID verdicts on each trace.
    counts = np.stack([np.nansum(matrix.unconditional_verdicts == ruling, axis=0) for ruling in (1, 0)], axis=1)
    return (
        fleiss_kappa(counts, units=matrix.units),
        krippendorff_alpha(matrix.unconditional_verdicts, units=matrix.units),
        gwet_ac1(matrix.unconditional_verdicts, 2, units=matrix.units),  # two categories: VALID and INVALID
    )


def compute_prevalence(matrix: VerdictMatrix) -> ShareEstimate:
    """Share of VALID among the verdicts on traces with at least two; n counts these traces."""
    has_verdict = ~np.isnan(matrix.unconditional_verdicts)
    n_verdicts, n_valid = has_verdict.sum(axis=0), np.nansum(matrix.unconditional_verdicts, axis=0)
    has_two = n_verdicts >= 2
    share = share_over_units(
        np.where(has_two, n_valid, 0),
        np.where(has_two, n_verdicts, 0),
        matrix.units,
        independent_cases=has_two,  # verdicts on one trace are correlated, so each trace is one case
        empty_reason="no trace has verdicts of two judges",
    )
    return replace(share, n=int(has_two.sum()))


def build_judge_rows(source: ReportSource, matrix: VerdictMatrix) -> list[JudgeRow]:
    """Build one row per judge that was asked, from verdicts asked for whatever other judges said."""
    verdicts = matrix.unconditional_verdicts
    agreement_shares = agreement_with_others(verdicts, matrix.units)
    valid_shares = shares_over_units(
        [ShareTable(judge_verdicts, ~np.isnan(judge_verdicts), matrix.units) for judge_verdicts in verdicts],
        empty_reason="no verdict is usable",
    )
    left_out = leave_one_rater_out(verdicts, units=matrix.units)
    alpha_changes = adjust_tests((influence.difference for influence in left_out), "changes of alpha")
    biases = estimate_judge_biases(source, matrix)
    confidence = [
        mean_over_units(trace_scores, matrix.units, (0.0, 1.0), empty_reason="the judge stated no confidence")
        for trace_scores in matrix.confidence  # stated confidence on each trace
    ]
    asked_judges, is_pair = {count.judge for count in source.judge_counts}, len(matrix.judges) == 2
    alphas_without = [agreement_estimate(influence.agreement) for influence in left_out]
    return [
        _build_judge_row(
            source,
            name,
            valid_share=valid_shares[i],
            agreement=agreement_shares[i],
            confidence=confidence[i],
            alpha_without=replace(alpha_without, reason=ONE_OTHER_REASON) if is_pair else alpha_without,
            alpha_change=replace(alpha_changes[i], reason=ONE_OTHER_REASON) if is_pair else alpha_changes[i],
            biases={field: differences[i] for field, differences in biases.items()},
        )
        for i, (name, alpha_without) in enumerate(zip(matrix.judges, alphas_without, strict=True))
        if name in asked_judges
    ]


def _build_judge_row(
    source: ReportSource,
    judge: str,
    *,
    valid_share: ShareEstimate,
    agreement: ShareEstimate,
    confidence: Estimate,
    alpha_without: Estimate,
    alpha_change: Tested,
    biases: Mapping[str, JudgeDifference],
) -> JudgeRow:
    """Build one judge's row; `biases` are by field name."""
    judge_counts = [count for count in source.judge_counts if count.judge == judge]
    outcomes = Counter[str]()
    for count in judge_counts:
        outcomes[count.outcome] += count.n
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
        alpha_change=replace(alpha_change, reason=_describe_missing_agreement(alpha_change.reason)),
        **biases,
    )
