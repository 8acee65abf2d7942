"""Correlations among topics over countries, of each model against people's."""

from __future__ import annotations

import numpy as np

from auditor.metrics.confidence import SIGNIFICANCE_LEVEL
from auditor.metrics.multiple_testing import holm
from auditor.metrics.structure import compare_structure
from auditor.reports.data.measurement_schema import StructureRow
from auditor.reports.data.report_source import ReportSource


def compute_structure(source: ReportSource) -> list[StructureRow]:
    """Compare each series' correlations among topics with people's. A claim needs both forms (intersection-union)."""
    if not source.columns:  # a task
        return []
    structures = [
        compare_structure(scores, source.survey_scores, source.country_index, source.topic_index, source.seed)
        for scores in source.score_matrix
    ]
    forms = [(structure.raw.p_value, structure.without_country_means.p_value) for structure in structures]
    adjusted = holm([np.nan if None in pair else max(p or 0.0 for p in pair) for pair in forms])
    return [
        StructureRow(
            model=model,
            method=method,
            structure=structure,
            adjusted_p_value=None if np.isnan(p_value) else float(p_value),
            is_found=bool(p_value <= SIGNIFICANCE_LEVEL),
        )
        for (method, model), structure, p_value in zip(source.columns, structures, adjusted, strict=True)
    ]
