"""Errors against people by topic and country."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.reports.data.agreement.alignment import compute_errors
from auditor.reports.data.coverage.missing_scores import missing_score_reason
from auditor.reports.data.measurement_schema import (
    GroupErrorRow,
)
from auditor.reports.data.report_source import FloatArray, ReportSource


def compute_topic_errors(source: ReportSource) -> list[GroupErrorRow]:
    """Compute MAE and bias of each model on each topic."""
    return _build_place_rows(source, source.topics, source.topic_index)


def compute_country_errors(source: ReportSource) -> list[GroupErrorRow]:
    """Compute MAE and bias of each model in each country."""
    return _build_place_rows(source, source.countries, source.country_index)


def _build_place_rows(
    source: ReportSource, place_names: Sequence[str], place_index: NDArray[np.intp]
) -> list[GroupErrorRow]:
    """Build one row per place and series.

    Places are countries or topics; `place_index` holds the position in `place_names` of each cell, shape (cells,).
    """
    missing_reasons = [missing_score_reason(source, i) for i in range(len(source.columns))]
    return [
        _build_place_row(
            name,
            source.columns[i],
            source.score_matrix[i, place_index == place],
            source.survey_scores[place_index == place],
            missing_reasons[i],
        )
        for place, name in enumerate(place_names)
        for i in range(len(source.columns))
    ]


def _build_place_row(
    name: str, series: tuple[str, str], scores: FloatArray, truth: FloatArray, missing_reason: str | None
) -> GroupErrorRow:
    """Compute MAE and bias of one series over the cells of one country or topic; `series` is (method, model)."""
    method, model = series
    # The estimate that is not used is RMSE.
    mae_estimate, _, bias_estimate = compute_errors(method, scores, truth, missing_reason)
    return GroupErrorRow(
        name=name,
        model=model,
        method=method,
        n=mae_estimate.n,
        n_dropped=len(scores) - mae_estimate.n,
        mae=mae_estimate,
        bias=bias_estimate,
    )
