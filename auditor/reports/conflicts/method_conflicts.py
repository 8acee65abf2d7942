"""Where two methods of measuring one model contradict each other, and the thresholds that say so."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from auditor.domain import Method
from auditor.metrics.conflict import ZERO_TOLERANCE, auto_threshold, have_opposite_signs, third_quartile
from auditor.reports.estimate_conversion import estimate_mean, estimate_share, to_estimate
from auditor.reports.measurement_schema import Estimate
from auditor.reports.report_schema import MethodConflictRow
from auditor.reports.report_source import ReportSource

MAX_LISTED_CELLS = 5


def compute_third_quartile(source: ReportSource) -> Estimate:
    """The third quartile of all differences between two models' direct scores on a cell, as `auto` takes it."""
    rows = [i for i, (method, _) in enumerate(source.columns) if method == Method.DIRECT]
    pairs = [np.abs(source.score_matrix[i] - source.score_matrix[j]) for i, j in combinations(rows, 2)]
    return to_estimate(third_quartile(np.concatenate(pairs) if pairs else []))


def effective_threshold(source: ReportSource, third_quartile_estimate: Estimate) -> float | None:
    """The least difference that is a conflict, as configured or by `auto_threshold`; None where there is no config."""
    if source.config is None:
        return None
    chosen = source.config.conflicts.threshold
    return auto_threshold(third_quartile_estimate.value) if chosen == "auto" else chosen


def find_method_conflicts(source: ReportSource, threshold: float | None) -> list[MethodConflictRow]:
    """A row for each model and each two methods that it has scores by."""
    if threshold is None:
        return []
    column = {key: i for i, key in enumerate(source.columns)}
    methods = list(dict.fromkeys(method for method, _ in source.columns))
    return [
        _build_method_conflict_row(
            source, model, (first, second), (column[first, model], column[second, model]), threshold
        )
        for model in source.models
        for first, second in combinations(methods, 2)
        if {(first, model), (second, model)} <= column.keys()
    ]


def _build_method_conflict_row(
    source: ReportSource, model: str, methods: tuple[str, str], column_indices: tuple[int, int], threshold: float
) -> MethodConflictRow:
    first, second = (source.score_matrix[i] for i in column_indices)
    difference = first - second
    known = ~np.isnan(difference)
    apart = known & (np.abs(difference) >= threshold - ZERO_TOLERANCE)
    order = sorted(np.nonzero(apart)[0].tolist(), key=lambda i: (-abs(difference[i]), i))
    return MethodConflictRow(
        model=model,
        first=methods[0],
        second=methods[1],
        conflicts=estimate_share(int(apart.sum()), int(known.sum())),
        opposite=int((apart & have_opposite_signs(first, second)).sum()),
        difference=estimate_mean(difference, "no cell has scores by both methods"),
        largest=[(*source.cells[i], float(first[i]), float(second[i])) for i in order[:MAX_LISTED_CELLS]],
    )
