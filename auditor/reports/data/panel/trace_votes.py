"""Votes of the assigned judges on traces, by weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.reports.data.panel.verdict_matrix import VerdictMatrix
from auditor.reports.data.report_source import FloatArray


def decide_by_weight(matrix: VerdictMatrix, weights: FloatArray) -> FloatArray:
    """Weighted majority of each trace, shape (traces,): 1 VALID, 0 INVALID, nan if neither has over half the weight.

    Args:
        weights: shape (judges, traces), or (judges, 1); those of all assigned judges are in the denominator.
    """
    verdicts = matrix.all_verdicts
    weight_by_side = [(weights * (verdicts == ruling)).sum(axis=0) for ruling in (1, 0)]
    total = (weights * matrix.is_assigned).sum(axis=0)
    # The factor absorbs rounding: half is no majority.
    return np.where(
        weight_by_side[0] > total / 2 * (1 + 1e-12),
        1.0,
        np.where(weight_by_side[1] > total / 2 * (1 + 1e-12), 0.0, np.nan),
    )


def share_weights(matrix: VerdictMatrix, groups: Sequence[Sequence[int]], weights: FloatArray) -> FloatArray:
    """Weights, shape (judges, traces), where the members of a group that are assigned to a trace share one vote.

    Args:
        groups: judges that share one vote; together they have all judges.
        weights: shape (judges,).
    """
    is_assigned = matrix.is_assigned
    shared = np.repeat(weights[:, None], is_assigned.shape[1], axis=1)
    for group in groups:
        members = list(group)
        shared[members] /= np.maximum(is_assigned[members].sum(axis=0), 1)
    return shared
