"""Rows of agreement with people, made up for tests."""

from __future__ import annotations

from typing import Any

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.metrics.people.survey_error import CorrectedCorrelation
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.coverage.lost_samples import LostSamples

NO_CLUSTERS = "fewer than 5 countries or topics: no interval"


def make_correlation(
    r: float | None, low: float | None = None, high: float | None = None, reason: str = NO_CLUSTERS, **more: Any
) -> Tested:
    """A correlation over 40 cells."""
    resampled = () if low is None else ("country", "topic")
    values = {"p_value": None if low is None else 0.01, "adjusted_p_value": None if low is None else 0.01} | more
    return Tested(r, 40, low, high, reason if low is None else None, resampled, **values)


def make_concordance(value: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    """Both fields of Lin's concordance, with one interval."""
    resampled = () if low is None else ("country", "topic")
    estimate = Estimate(value, 40, low, high, NO_CLUSTERS if low is None else None, resampled)
    return {"concordance": estimate, "concordance_simultaneous": estimate}


def make_alignment_row(
    r: float | None = 0.5, low: float | None = 0.3, high: float | None = 0.7, reason: str = NO_CLUSTERS, **more: Any
) -> AlignmentRow:
    """A row of 40 cells."""
    correlation = make_correlation(r, low, high, reason)
    values: dict[str, Any] = {
        "model": "m", "survey": "s", "method": "direct", "countries": 8, "topics": 10, "n": 40,
        "pearson_r": correlation, "spearman_rho": correlation, "mae": Estimate(0.2, 40, 0.1, 0.3),
        "rmse": Estimate(0.3, 40, 0.2, 0.4), "bias": Estimate(0.0, 40, -0.1, 0.1),
        "bias_of_these_countries": Estimate(0.0, 40, -0.08, 0.08),
        "corrected_r": CorrectedCorrelation(None, 40, reason="no cell has two samples"),
        "n_dropped": 0, "n_without_survey": 0, "lost_samples": LostSamples(planned=200, lost=4, share=0.02),
        "fisher_ci_low": 0.35, "fisher_ci_high": 0.65,
        **make_concordance(0.8, 0.6, 0.85),
    }  # fmt: skip
    return AlignmentRow(**(values | more))
