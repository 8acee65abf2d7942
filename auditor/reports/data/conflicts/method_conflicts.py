"""Conflicts between two methods of measuring one model, and the threshold that defines a conflict."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from auditor.domain import Method
from auditor.metrics.conflict import ZERO_TOLERANCE, auto_threshold, have_opposite_signs, third_quartile
from auditor.metrics.estimate import Estimate
from auditor.reports.data.estimate_conversion import estimate_mean, estimate_share, to_estimate
from auditor.reports.data.report_schema import MethodConflictRow
from auditor.reports.data.report_source import ReportSource

MAX_LISTED_CELLS = 5


def compute_third_quartile(source: ReportSource) -> Estimate:
    """Third quartile of the absolute differences between two models' direct scores on a cell.

    The threshold `auto` is derived from it.
    """
    direct_columns = [i for i, (method, _) in enumerate(source.columns) if method == Method.DIRECT]
    differences = [np.abs(source.score_matrix[i] - source.score_matrix[j]) for i, j in combinations(direct_columns, 2)]
    return to_estimate(third_quartile(np.concatenate(differences) if differences else []))


def effective_threshold(source: ReportSource, third_quartile_estimate: Estimate) -> float | None:
    """Smallest difference that is a conflict, as configured or by `auto_threshold`; None without a configuration."""
    if source.config is None:
        return None
    configured = source.config.conflicts.threshold
    return auto_threshold(third_quartile_estimate.value) if configured == "auto" else configured


def find_method_conflicts(source: ReportSource, threshold: float | None) -> list[MethodConflictRow]:
    """Count conflicts between each two methods of each model that has scores by both."""
    if threshold is None:
        return []
    column_by_series = {key: i for i, key in enumerate(source.columns)}
    methods = list(dict.fromkeys(method for method, _ in source.columns))
    return [
        _build_method_conflict_row(
            source, model, (first, second), (column_by_series[first, model], column_by_series[second, model]), threshold
        )
        for model in source.models
        for first, second in combinations(methods, 2)
        if {(first, model), (second, model)} <= column_by_series.keys()
    ]


def _build_method_conflict_row(
    source: ReportSource, model: str, methods: tuple[str, str], column_indices: tuple[int, int], threshold: float
) -> MethodConflictRow:
    """Count the cells on which two methods of one model differ by at least the threshold.

    `methods` and `column_indices` hold the first and the second method, and their indices in `source.columns`.
    """
    first_scores, second_scores = (source.score_matrix[i] for i in column_indices)
    difference = first_scores - second_scores
    has_both = ~np.isnan(difference)
    is_conflict = has_both & (np.abs(difference) >= threshold - ZERO_TOLERANCE)
    largest_first = sorted(np.nonzero(is_conflict)[0].tolist(), key=lambda i: (-abs(difference[i]), i))
    return MethodConflictRow(
        model=model,
        first=methods[0],
        second=methods[1],
        conflicts=estimate_share(int(is_conflict.sum()), int(has_both.sum())),
        opposite=int((is_conflict & have_opposite_signs(first_scores, second_scores)).sum()),
        difference=estimate_mean(difference, "no cell has scores by both methods"),
        largest=[
            (*source.cells[i], float(first_scores[i]), float(second_scores[i]))
            for i in largest_first[:MAX_LISTED_CELLS]
        ],
    )
