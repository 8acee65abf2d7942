"""The figures of a model that other programs get as metrics: agreement with people, or accuracy on a task."""

from __future__ import annotations

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.task import TaskModelRow

AGREEMENT_FIGURES = ("pearson_r", "spearman_rho", "mae", "rmse", "bias", "concordance")
"""Fields of `AlignmentRow`."""
ACCURACY_FIGURES = ("accuracy", "commonest", "sample_agreement")
"""Fields of `TaskModelRow`."""
SCORE_FIGURES = ("pearson_r", "spearman_rho", "mae", "bias", "spread")
"""Fields of `ScoreAccuracy`, in the units of the task."""


def select_figures(row: AlignmentRow | TaskModelRow) -> dict[str, Estimate]:
    """Select a model's figures by name, with their 95% CIs: over countries and topics, or over the items of a task."""
    if isinstance(row, AlignmentRow):
        return {name: getattr(row, name) for name in AGREEMENT_FIGURES}
    figures: dict[str, Estimate] = {name: getattr(row, name) for name in ACCURACY_FIGURES}
    if row.score is not None:
        figures |= {name: getattr(row.score, name) for name in SCORE_FIGURES}
    return figures
