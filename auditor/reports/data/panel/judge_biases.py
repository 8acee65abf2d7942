"""Differences between judges that may be biases: padding, leniency, length, own family, order, and own traces.

Each says what kind of evidence it is (`JudgeDifference.evidence`). Labels of traces come from the truth of a task only,
which is known for all its answers. What people decide on conflicts is no label of a trace: it compares two sides, and
the queue puts first what the judges disagree on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.domain import HarmlessAlteration, Outcome, Ruling
from auditor.metrics.judge_bias import exposure_effects, later_half, leniency
from auditor.metrics.judge_difference import (
    JudgeDifference,
    length_association,
    missing_difference,
)
from auditor.metrics.label_difference import length_bias_against_labels, leniency_against_labels
from auditor.metrics.multiple_testing import adjust_tests
from auditor.metrics.paired_shares import pair_verdicts, paired_differences_over_units
from auditor.reports.data.panel.trace_labels import load_task_truth
from auditor.reports.data.panel.verdict_matrix import VerdictMatrix
from auditor.reports.data.report_source import FloatArray, ReportSource

NO_PADDING_REASON = "no trace was padded: run `auditor experiment bias`"
NO_TRUTH_REASON = "no trace has a known truth: human decisions cover only conflicts, which are no random sample"


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
        "order": exposure_effects(verdicts, later_half(matrix.recorded_at, verdicts), units, relative_to_median=True),
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
