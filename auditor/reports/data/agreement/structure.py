"""Correlations among topics over countries, of each model against people's."""

from __future__ import annotations

import numpy as np

from auditor.metrics.confidence import SIGNIFICANCE_LEVEL
from auditor.metrics.multiple_testing import holm, intersection_union
from auditor.metrics.structure import compare_structure
from auditor.reports.data.measurement_schema import StructureRow
from auditor.reports.data.report_source import ReportSource

TEST_FAMILY = "models that relate topics as people do"


def compute_structure(source: ReportSource) -> list[StructureRow]:
    """Compare each series' correlations among topics with people's. A claim needs both forms (intersection-union)."""
    if not source.columns:  # a task
        return []
    structures = [
        compare_structure(scores, source.survey_scores, source.country_index, source.topic_index, source.seed)
        for scores in source.score_matrix
    ]
    p_values = [
        intersection_union(
            [np.nan if form.p_value is None else form.p_value for form in (each.raw, each.without_country_means)]
        )
        for each in structures
    ]
    return [
        StructureRow(
            model=model,
            method=method,
            structure=structure,
            p_value=None if np.isnan(p_value) else p_value,
            adjusted_p_value=None if np.isnan(adjusted) else float(adjusted),
            test_family=None if np.isnan(adjusted) else TEST_FAMILY,
            is_found=bool(adjusted <= SIGNIFICANCE_LEVEL),
        )
        for (method, model), structure, p_value, adjusted in zip(
            source.columns, structures, p_values, holm(p_values), strict=True
        )
    ]
