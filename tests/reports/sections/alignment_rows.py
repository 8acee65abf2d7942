"""Rows of agreement with people, made up for tests."""

from __future__ import annotations

from typing import Any

from auditor.metrics.estimate import Estimate
from auditor.reports.data.agreement.alignment import AlignmentRow, TwoWayEstimates
from auditor.reports.data.coverage.lost_samples import LostSamples

NO_CLUSTERS = "fewer than 5 countries or topics: no interval"


def make_two_way_estimates(
    r: float | None = None,
    low: float | None = None,
    high: float | None = None,
    countries: int = 8,
    reason: str = NO_CLUSTERS,
) -> TwoWayEstimates:
    """Pearson's r and Spearman's rho with a two-way interval, and no other figure."""
    missing = Estimate(value=None, n=40, reason=NO_CLUSTERS)
    resampled = () if low is None else ("country", "topic")
    correlation = Estimate(r, 40, low, high, reason if low is None else None, resampled)
    return TwoWayEstimates(
        countries=countries,
        topics=10,
        pearson_r=correlation,
        spearman_rho=correlation,
        corrected_r=missing,
        mae=missing,
        rmse=missing,
        bias=missing,
    )


def make_alignment_row(
    r: float | None = 0.5, low: float | None = 0.3, high: float | None = 0.7, **more: Any
) -> AlignmentRow:
    """A row of 40 cells."""
    values: dict[str, Any] = {
        "model": "m", "survey": "s", "method": "direct", "n": 40, "pearson_r": r, "p_value": 0.01, "ci_low": low,
        "ci_high": high, "spearman_rho": r, "spearman_ci_low": low, "spearman_ci_high": high, "mae": 0.2,
        "mae_ci_low": 0.1, "mae_ci_high": 0.3, "rmse": 0.3, "rmse_ci_low": 0.2, "rmse_ci_high": 0.4, "n_dropped": 0,
        "corrected_r": Estimate(value=None, n=40, reason="no cell has two samples"), "reliability": None,
        "n_without_survey": 0, "bias": Estimate(value=0.0, n=40, ci_low=-0.1, ci_high=0.1),
        "lost_samples": LostSamples(planned=200, lost=4, share=0.02),
        "fisher_ci_low": 0.35, "fisher_ci_high": 0.65,
        "crossed": make_two_way_estimates(r, low, high),
    }  # fmt: skip
    return AlignmentRow(**(values | more))
