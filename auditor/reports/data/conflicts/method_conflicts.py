"""Conflicts between two methods of measuring one model, and the threshold that defines a conflict."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Method
from auditor.metrics.conflict import ZERO_TOLERANCE, auto_threshold, have_opposite_signs, third_quartile
from auditor.metrics.estimate import Estimate, ShareEstimate
from auditor.metrics.unit_means import ShareTable, mean_over_units, shares_over_units
from auditor.reports.data.conflicts.schema import MethodConflictRow
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.sampling_units import cell_units

MAX_LISTED_CELLS = 5
DIFFERENCE_BOUNDS = (-2.0, 2.0)
"""Smallest and largest difference of two scores in [-1, 1]."""
NO_COMMON_CELL_REASON = "no cell has scores by both methods"


def compute_third_quartile(source: ReportSource) -> Estimate:
    """Third quartile of the absolute differences between two models' direct scores on a cell.

    The threshold `auto` is derived from it.
    """
    direct_columns = [i for i, (method, _) in enumerate(source.columns) if method == Method.DIRECT]
    differences = [np.abs(source.score_matrix[i] - source.score_matrix[j]) for i, j in combinations(direct_columns, 2)]
    return third_quartile(differences, cell_units(source.cells)) if differences else third_quartile([])


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
    pairs = [
        (column_by_series[first, model], column_by_series[second, model])
        for model in source.models
        for first, second in combinations(methods, 2)
        if {(first, model), (second, model)} <= column_by_series.keys()
    ]
    units = cell_units(source.cells)
    differences = [source.score_matrix[first] - source.score_matrix[second] for first, second in pairs]
    tables = [
        ShareTable(_is_conflict(difference, threshold), ~np.isnan(difference), units) for difference in differences
    ]
    shares = shares_over_units(tables, empty_reason=NO_COMMON_CELL_REASON)
    return [
        _build_method_conflict_row(source, pair, _is_conflict(difference, threshold), share)
        for pair, difference, share in zip(pairs, differences, shares, strict=True)
    ]


def _is_conflict(difference: FloatArray, threshold: float) -> NDArray[np.bool_]:
    """Whether two scores differ by at least the threshold; False where one is missing."""
    return np.abs(np.nan_to_num(difference)) >= threshold - ZERO_TOLERANCE


def _build_method_conflict_row(
    source: ReportSource, columns: tuple[int, int], is_conflict: NDArray[np.bool_], share: ShareEstimate
) -> MethodConflictRow:
    """Count the conflicts between two methods of one model.

    Args:
        columns: indices in `source.columns` of the first and the second method.
        is_conflict: shape (cells,).
        share: of the cells with both scores that are conflicts.
    """
    first_scores, second_scores = (source.score_matrix[column] for column in columns)
    difference = first_scores - second_scores
    largest_first = sorted(np.nonzero(is_conflict)[0].tolist(), key=lambda i: (-abs(difference[i]), i))
    return MethodConflictRow(
        model=source.columns[columns[0]][1],
        first=source.columns[columns[0]][0],
        second=source.columns[columns[1]][0],
        conflicts=share,
        opposite=int((is_conflict & have_opposite_signs(first_scores, second_scores)).sum()),
        difference=mean_over_units(
            difference, cell_units(source.cells), DIFFERENCE_BOUNDS, empty_reason=NO_COMMON_CELL_REASON
        ),
        largest=[
            (*source.cells[i], float(first_scores[i]), float(second_scores[i]))
            for i in largest_first[:MAX_LISTED_CELLS]
        ],
    )
