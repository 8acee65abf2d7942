"""The effective number of judges: how many judges that err independently are worth as much as a panel's equal votes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics._unit_counts import Labels
from auditor.metrics.error_correlation import N_SUMS, judge_pairs, pooled_phi, sum_pairs
from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife_interval import LOG, estimate_from_replicates
from auditor.metrics.judge_copying import MIN_ERRORS, MIN_LABELS
from auditor.metrics.unit_replicates import replicate_over_units


class EffectiveJudges(NamedTuple):
    """The effective number of judges.

    Attributes:
        number: from 1 to the number of counted judges; n counts labelled traces.
        counted: positions of the judges that it is about: those with at least 10 errors and 10 right verdicts.
    """

    number: Estimate
    counted: list[int]


def effective_number(correlations: ArrayLike) -> Floats:
    """n² / 1ᵀR1: the precision of the mean of n correlated votes, in judges that err independently.

    It is the variance of one judge divided by that of the mean with equal weights, as votes are counted (Kish's
    effective sample size; Survey Sampling, 1965, section 8.1). The number of judges if they are uncorrelated; 1 if all
    are copies; seven copies and two other judges are worth 1.6.

    Args:
        correlations: shape (..., judges, judges).

    Returns:
        Shape (...), from 1 to n², above n where correlations are negative; nan where a correlation is nan.
    """
    matrices = np.asarray(correlations, dtype=np.float64)
    numbers: Floats = matrices.shape[-1] ** 2 / np.maximum(matrices.sum(axis=(-2, -1)), 1.0)
    return numbers


def effective_judges(verdicts: ArrayLike, truth: ArrayLike, units: Labels) -> EffectiveJudges:
    """Estimate the effective number of judges from their errors on labelled traces.

    Errors are compared within the truth (VALID or INVALID), over all topics: topics that are hard for all judges make
    them count for less. The interval is over countries and topics, or items, on the logarithmic scale.

    Args:
        verdicts, truth, units: as for `judge_copying.compare_errors`.
    """
    table, labels = np.asarray(verdicts, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    is_labelled = ~np.isnan(labels) & (~np.isnan(table)).any(axis=0)
    errors = np.where(np.isnan(table[:, is_labelled]), np.nan, table[:, is_labelled] != labels[is_labelled])
    n, n_errors = (~np.isnan(errors)).sum(axis=1), np.nansum(errors, axis=1)
    counted = [int(i) for i in np.flatnonzero(np.minimum(n_errors, n - n_errors) >= MIN_ERRORS)]
    n_traces = int(is_labelled.sum())
    reason = _undefined_reason(n_traces, len(counted))
    if reason is not None:
        return EffectiveJudges(Estimate(None, n_traces, reason=reason), counted)
    return EffectiveJudges(_estimate_number(errors[counted], labels[is_labelled], units, is_labelled), counted)


def _estimate_number(errors: Floats, labels: Floats, units: Labels, is_labelled: NDArray[np.bool_]) -> Estimate:
    """Estimate the number from the errors on the labelled traces, shape (judges, traces)."""
    unit_labels = {unit: np.asarray(values)[is_labelled] for unit, values in units.items()}
    codes = np.stack([np.unique(values, return_inverse=True)[1].ravel() for values in unit_labels.values()])
    cell_codes, cell = np.unique(codes, axis=1, return_inverse=True)
    stratum = np.unique(labels, return_inverse=True)[1].ravel()
    sums = sum_pairs(errors, cell.ravel(), stratum)
    n_judges, n_strata, n_pairs = len(errors), int(stratum.max()) + 1, len(judge_pairs(len(errors)))
    moments = np.zeros((len(sums.sums), n_strata, n_pairs, N_SUMS))
    moments[np.arange(len(moments)), sums.stratum] = sums.sums
    flat = moments.reshape(len(moments), -1)

    def number(flat_sums: Floats) -> Floats:
        """The effective number from sums, shape (replicates, strata * pairs * 4)."""
        phi = pooled_phi(flat_sums.reshape(-1, n_strata, n_pairs, N_SUMS))
        return effective_number(_to_matrices(phi, judge_pairs(n_judges), n_judges))

    group_units = {unit: cell_codes[row][sums.cell] for row, unit in enumerate(unit_labels)}
    replicates = replicate_over_units(flat, number, group_units)
    [value] = number(flat.sum(axis=0)[None])
    if np.isnan(value):
        return Estimate(None, errors.shape[1], reason="two judges have no labelled trace in common")
    return _limit(
        estimate_from_replicates(
            float(value), errors.shape[1], replicates.units, LOG, (1.0, n_judges), replicates.cells
        ),
        n_judges,
    )


def _to_matrices(values: Floats, pairs: Sequence[tuple[int, int]], n_judges: int) -> Floats:
    """Arrange values of pairs, shape (..., pairs), in symmetric matrices with ones on the diagonal."""
    matrices = np.broadcast_to(np.eye(n_judges), (*values.shape[:-1], n_judges, n_judges)).copy()
    for k, (i, j) in enumerate(pairs):
        matrices[..., i, j] = matrices[..., j, i] = values[..., k]
    return matrices


def _limit(estimate: Estimate, n_judges: int) -> Estimate:
    """Limit the value to the number of judges: errors that are negatively correlated by chance add no judge."""
    if estimate.value is None or estimate.value <= n_judges:
        return estimate
    return Estimate(float(n_judges), estimate.n, estimate.ci_low, estimate.ci_high, estimate.reason, estimate.resampled)


def _undefined_reason(n_traces: int, n_counted: int) -> str | None:
    """Why the number is not estimated; None where it is."""
    if n_traces < MIN_LABELS:
        return f"{MIN_LABELS} labelled traces are needed, but there are {n_traces}"
    if n_counted < 2:
        return f"two judges with at least {MIN_ERRORS} errors and {MIN_ERRORS} right verdicts are needed"
    return None
