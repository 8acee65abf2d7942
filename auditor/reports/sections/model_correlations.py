"""Correlations over models in tables and findings."""

from __future__ import annotations

from auditor.metrics.confidence import SIGNIFICANCE_LEVEL
from auditor.metrics.model_correlation import ModelCorrelation
from auditor.reports.document import Status

CORRELATION_REMARK = (
    "95% CIs (from 8 models) and p (a permutation test, from 5) are for other models. Models of one family are "
    "averaged first, so that n counts families; “r over single models” is without this averaging, as in most papers."
)


def compare_correlation(correlation: ModelCorrelation) -> Status:
    """Whether a correlation is positive, negative or unclear by its p-value; neutral without one."""
    if correlation.p_value is None or correlation.value is None:
        return "neutral"
    if correlation.p_value >= SIGNIFICANCE_LEVEL:
        return "unclear"
    return "positive" if correlation.value > 0 else "negative"
