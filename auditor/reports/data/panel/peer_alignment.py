"""Correlation, over models, of agreement with people with peer agreement, self-consistency and sample variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from auditor.config import AuditConfig
from auditor.metrics.model_correlation import ModelCorrelation, correlate_models
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.coverage.missing_scores import replace_reason
from auditor.reports.data.measurement_schema import ConsistencyAlignmentRow, ConsistencyRow, PeerAgreementRow
from auditor.reports.data.panel.schema import PeerAlignmentRow
from auditor.reports.data.panel.verdict_matrix import find_family

MIN_MODELS = 3
"""Fewest models for a row on self-consistency: a correlation needs as many."""
EQUAL_ALIGNMENT_REASON = "all models agree equally with people"


def compute_peer_alignment(
    config: AuditConfig | None, peer_rows: Sequence[PeerAgreementRow], alignment_rows: Sequence[AlignmentRow]
) -> list[PeerAlignmentRow]:
    """Correlate peer agreement with r against people over models, for each method."""
    agreement_by_model = {row.model: row.agreement.value for row in peer_rows}
    return [
        PeerAlignmentRow(
            method=method,
            r=_correlate_with_alignment(
                config, agreement_by_model, method, alignment_rows, "judges find all models equally VALID"
            ),
        )
        for method in dict.fromkeys(row.method for row in alignment_rows)
        if peer_rows
    ]


def compute_consistency_alignment(
    config: AuditConfig | None,
    consistency_rows: Sequence[ConsistencyRow],
    alignment_rows: Sequence[AlignmentRow],
) -> list[ConsistencyAlignmentRow]:
    """Correlate self-consistency, and the variance of the samples, with r against people over models, by method.

    Empty for fewer than three models with both.
    """
    rows = []
    for method in dict.fromkeys(row.method for row in consistency_rows):
        method_rows = [row for row in consistency_rows if row.method == method]
        for figure, values in (
            ("cosine", {row.model: row.cosine.value for row in method_rows}),
            ("variance", {row.model: row.variance.value for row in method_rows}),
        ):
            r = _correlate_with_alignment(
                config, values, method, alignment_rows, "all models are equally consistent with themselves"
            )
            if r.models >= MIN_MODELS:
                rows.append(ConsistencyAlignmentRow(method=method, figure=figure, r=r))
    return rows


def _correlate_with_alignment(
    config: AuditConfig | None,
    figure_by_model: Mapping[str, float | None],
    method: str,
    alignment_rows: Sequence[AlignmentRow],
    constant_reason: str,
) -> ModelCorrelation:
    """Correlate a figure with r against people, by one method, over models that have both.

    Args:
        constant_reason: why there is no correlation where the figure is the same for all models.
    """
    method_rows = [row for row in alignment_rows if row.method == method and row.model in figure_by_model]
    figures, r_with_people = (
        np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        for values in (
            [figure_by_model[row.model] for row in method_rows],
            [row.pearson_r.value for row in method_rows],
        )
    )
    families = [find_family(config, row.model) for row in method_rows]
    correlation = correlate_models(figures, r_with_people, families)
    return replace_reason(correlation, {"x constant": constant_reason, "y constant": EQUAL_ALIGNMENT_REASON})
