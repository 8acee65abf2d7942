"""Judges' verdicts compared with known labels of the same traces, such as whether the answer to a task is right.

The labels must be of all traces, or of traces drawn at random: with labels of disputed traces a judge would be compared
on traces that were chosen by what judges say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats
from auditor.metrics.judge_difference import (
    JudgeDifference,
    Labels,
    as_verdict_table,
    difference_of_means,
    mean_value,
    missing_difference,
)

LABEL_ERROR_RATES = (0.0, 0.05, 0.1)
"""Shares of wrong labels for which the intervals are computed. Published answer keys have errors too: on average at
least 3.3% in ten test sets (Northcutt, Athalye & Mueller, NeurIPS Datasets and Benchmarks 2021)."""


def leniency_against_labels(verdicts: ArrayLike, labels: ArrayLike, units: Labels) -> list[JudgeDifference]:
    """For each judge, its share of VALID minus the share of labels that say so, on the same traces.

    Args:
        verdicts: shape (judges, traces): 1 VALID, 0 INVALID, nan no verdict.
        labels: shape (traces,): 1, 0, or nan where there is none.
        units: the units that are resampled.

    Returns:
        The interval takes the labels as right; `label_error_ci_low` and `label_error_ci_high` allow for up to 10%
        wrong ones. A judge that errs at random has a share between the labels' and one half. So the p-value is the
        largest over the rates of label errors and over a difference from one half.
    """
    truth = np.asarray(labels, dtype=np.float64)
    differences = []
    for row in as_verdict_table(verdicts):
        by_rate = [mean_value(row - _correct(truth, rate), units, "truth") for rate in LABEL_ERROR_RATES]
        differences.append(_combine(by_rate, mean_value(row + 0 * truth - 0.5, units, "truth")))
    return differences


def length_bias_against_labels(
    verdicts: ArrayLike, labels: ArrayLike, is_longer: ArrayLike, units: Labels
) -> list[JudgeDifference]:
    """For each judge, its share of VALID on longer minus shorter traces, minus the same difference of the labels.

    Args:
        is_longer: shape (traces,): 1 for the longer half of an author's traces, 0 for the shorter, nan for neither.
            The others as for `leniency_against_labels`.

    Returns:
        As for `leniency_against_labels`. A judge that errs at random has a difference between the labels' and 0. So
        the p-value is small only where the judge's difference is larger than the labels', or of the opposite sign.
    """
    truth, longer = np.asarray(labels, dtype=np.float64), np.asarray(is_longer, dtype=np.float64)
    differences = []
    for row in as_verdict_table(verdicts):
        by_rate = [
            difference_of_means(row - _correct(truth, rate), longer, units, "truth") for rate in LABEL_ERROR_RATES
        ]
        differences.append(_combine(by_rate, difference_of_means(row + 0 * truth, longer, units, "truth")))
    return differences


def _correct(labels: Floats, error_rate: float) -> Floats:
    """Labels whose mean is the truth's, if a share of them is wrong (Rogan & Gladen, Am. J. of Epidemiology 107, 1978).

    Args:
        labels: shape (traces,), 1 or 0; right and wrong answers are mislabelled equally often.
    """
    return (labels - error_rate) / (1 - 2 * error_rate)


def _combine(by_rate: Sequence[JudgeDifference], random_errors: JudgeDifference) -> JudgeDifference:
    """The figure for labels without errors, with an interval for all rates of errors, and the largest p-value.

    Args:
        by_rate: one for each of `LABEL_ERROR_RATES`.
        random_errors: compared with a judge whose verdicts are independent of the traces.
    """
    as_labelled = by_rate[0]
    if as_labelled.value is None:
        return missing_difference("no trace has a verdict of this judge and a known truth", "truth")
    lows = [difference.ci_low for difference in by_rate if difference.ci_low is not None]
    highs = [difference.ci_high for difference in by_rate if difference.ci_high is not None]
    if len(lows) < len(by_rate):
        return as_labelled
    return replace(
        as_labelled,
        label_error_ci_low=min(lows),
        label_error_ci_high=max(highs),
        p_value=_largest_p_value([*by_rate, random_errors]),
    )


def _largest_p_value(differences: Sequence[JudgeDifference]) -> float:
    """The largest p-value, or 1 if the differences do not all have one sign, or one cannot be tested.

    All null hypotheses are rejected only if each is (intersection-union test: Berger, Technometrics 24, 1982).
    """
    signs = {np.sign(difference.value or 0.0) for difference in differences}
    p_values = [1.0 if difference.p_value is None else difference.p_value for difference in differences]
    return max(p_values) if len(signs) == 1 else 1.0
