"""A figure summarized over models, as papers report it: mean, standard deviation, lowest and highest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from auditor.metrics.estimate import Estimate
from auditor.metrics.unit_means import mean_over_units


@dataclass(frozen=True, slots=True)
class SummaryOverModels:
    """One figure over models, each of which counts once; models without the figure are left out."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid"}

    mean: Estimate
    """Mean over models; `n` counts them. The interval, from 5 models on, is Student's, over other models like these."""
    standard_deviation: float | None
    """Over models, with n - 1 in the denominator; null for fewer than two."""
    lowest: float | None
    lowest_model: str | None
    highest: float | None
    highest_model: str | None


def summarize_models(figure_by_model: Mapping[str, float | None]) -> SummaryOverModels:
    """Summarize a figure over models.

    Args:
        figure_by_model: the figure of each model; None where it is missing. The first of equal models is named.
    """
    figures = {model: value for model, value in figure_by_model.items() if value is not None}
    values = np.array(list(figures.values()), dtype=np.float64)
    mean = mean_over_units(values, {"model": np.arange(len(values))}, empty_reason="no model has this figure")
    if not figures:
        return SummaryOverModels(mean, None, None, None, None, None)
    lowest, highest = min(figures, key=figures.__getitem__), max(figures, key=figures.__getitem__)
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    return SummaryOverModels(mean, deviation, figures[lowest], lowest, figures[highest], highest)
