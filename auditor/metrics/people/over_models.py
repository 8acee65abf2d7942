"""Figures over models: their summary, their correlation with another figure, and their trend over size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.correlation import pearson, spearman
from auditor.metrics.intervals.estimate import (
    CONFIDENCE_LEVEL,
    PLURAL_BY_UNIT,
    Estimate,
    Floats,
    Tested,
    complete_cases,
)
from auditor.metrics.intervals.jackknife_interval import ROUNDING_ERROR
from auditor.metrics.intervals.special_functions import average_ranks, stdtr, stdtrit
from auditor.metrics.intervals.unit_means import mean_over_units


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


def summarize_models(
    figure_by_model: Mapping[str, float | None], bounds: tuple[float, float] = (-inf, inf)
) -> SummaryOverModels:
    """Summarize a figure over models.

    Args:
        figure_by_model: the figure of each model; None where it is missing. The first of equal models is named.
        bounds: smallest and largest possible value; the interval ends there.
    """
    figures = {model: value for model, value in figure_by_model.items() if value is not None}
    values = np.array(list(figures.values()), dtype=np.float64)
    mean = mean_over_units(values, {"model": np.arange(len(values))}, empty_reason="no model has this figure")
    if mean.ci_low is not None and mean.ci_high is not None:
        mean = replace(mean, ci_low=max(mean.ci_low, bounds[0]), ci_high=min(mean.ci_high, bounds[1]))
    if not figures:
        return SummaryOverModels(mean, None, None, None, None, None)
    lowest, highest = min(figures, key=figures.__getitem__), max(figures, key=figures.__getitem__)
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    return SummaryOverModels(mean, deviation, figures[lowest], lowest, figures[highest], highest)


MIN_TEST_UNITS = 5
"""Fewest models for a p-value."""
MIN_INTERVAL_UNITS = 8
"""Fewest models for an interval."""
MAX_EXACT_UNITS = 8
"""Most models of which all orders are compared: 40,320."""
N_PERMUTATIONS = 9_999
"""Random orders of more models."""


@dataclass(frozen=True, slots=True)
class ModelCorrelation(Tested):
    """A correlation over models, with a permutation test; `n` counts models, or families where these are averaged.

    There is no p-value for fewer than 5 models or families.
    """

    models: int = 0
    """Models with both figures."""
    r_over_models: float | None = None
    """The correlation with each model counted once, as papers report it; it differs from `value` only where models of
    one family are averaged."""


def correlate_models(
    x: ArrayLike,
    y: ArrayLike,
    families: Sequence[str | None] | None = None,
    *,
    unit: str = "model",
    ranks: bool = False,
) -> ModelCorrelation:
    """Correlate two figures over models; see the module's docstring.

    Args:
        x, y: shape (n,), one value per model; models with a nan are left out.
        families: of the models; None for a model whose family is not known, which then counts as one of its own.
        unit: what the values belong to, a key of `PLURAL_BY_UNIT`, such as `model` or `judge`.
        ranks: Spearman's rank correlation instead of Pearson's.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (a, b), is_complete = complete_cases(x, y)
    coefficient = spearman if ranks else pearson
    over_models = coefficient(a, b)
    n_models = len(a)
    if families is not None:
        used_families = [families[i] for i in np.nonzero(is_complete)[0].tolist()]
        a, b = (average_families(values, used_families) for values in (a, b))
        unit = "family" if len(a) < n_models else unit
    correlation = coefficient(a, b)
    reason = _explain_missing(correlation, unit)
    low, high = (correlation.ci_low, correlation.ci_high) if reason is None else (None, None)
    return ModelCorrelation(
        correlation.value,
        correlation.n,
        low,
        high,
        reason,
        (unit,) if reason is None else (),
        p_value=_permutation_p_value(a, b, ranks=ranks) if correlation.value is not None else None,
        models=n_models,
        r_over_models=over_models.value,
    )


def average_families(values: Floats, families: Sequence[str | None]) -> Floats:
    """Means of the models of each family, shape (families, ...), in the order in which families first occur.

    Args:
        values: shape (n, ...), one per model.
        families: of the models; a model of an unknown family, None, is averaged with no other.
    """
    numbers: dict[object, int] = {}
    index = [numbers.setdefault((i,) if name is None else name, len(numbers)) for i, name in enumerate(families)]
    sums = np.zeros((len(numbers), *values.shape[1:]))
    np.add.at(sums, index, values)
    means: Floats = (sums.T / np.bincount(index)).T
    return means


def _explain_missing(correlation: Estimate, unit: str) -> str | None:
    """Why there is no value, or no interval; None where there is one."""
    plural = PLURAL_BY_UNIT[unit]
    if correlation.value is None:
        return (correlation.reason or "").replace("pairs", plural)
    if correlation.n < MIN_TEST_UNITS:
        return f"a test needs at least {MIN_TEST_UNITS} {plural}, and an interval {MIN_INTERVAL_UNITS}"
    if correlation.n < MIN_INTERVAL_UNITS:
        return f"too few {plural}: an interval needs at least {MIN_INTERVAL_UNITS}"
    return correlation.reason


def _permutation_p_value(x: Floats, y: Floats, *, ranks: bool) -> float | None:
    """Two-sided p-value of the permutation test of a correlation; None for too few values.

    Args:
        x, y: shape (n,), neither constant.
        ranks: whether the correlation is of ranks.
    """
    n = len(x)
    if n < MIN_TEST_UNITS:
        return None
    if ranks:
        x, y = average_ranks(x), average_ranks(y)
    u, v = ((values - values.mean()) / np.linalg.norm(values - values.mean()) for values in (x, y))
    if n <= MAX_EXACT_UNITS:
        correlations = v[_all_orders(n)] @ u
        return float(np.mean(np.abs(correlations) >= abs(u @ v) - 1e-12))
    rng = np.random.default_rng(0)
    correlations = rng.permuted(np.tile(v, (N_PERMUTATIONS, 1)), axis=1) @ u
    return float((1 + np.sum(np.abs(correlations) >= abs(u @ v) - 1e-12)) / (N_PERMUTATIONS + 1))


@cache
def _all_orders(n: int) -> NDArray[np.intp]:
    """All orders of n values, shape (n!, n), as positions."""
    return np.array(list(permutations(range(n))), dtype=np.intp)


MIN_TREND_MODELS = 6
"""Fewer models give no trend."""


def trend_within_families(figures: ArrayLike, sizes: ArrayLike, families: Sequence[str]) -> Tested:
    """Slope of a figure on the decimal logarithm of the size: the change from a model to one ten times as large.

    Args:
        figures: shape (n,), one per model; models with nan are left out.
        sizes: shape (n,), above 0, such as numbers of parameters.
        families: of the models; a family with a single model says nothing about the slope and is left out.

    Returns:
        The slope, whose `n` counts models. No value, with the reason, for fewer than 6 models or equal sizes; no
        interval for figures that are exactly on a line, such as equal ones.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (y, size), is_complete = complete_cases(figures, sizes)
    names = np.asarray(families, dtype=np.str_)[is_complete]
    members = [names == name for name in dict.fromkeys(names.tolist())]
    members = [member for member in members if member.sum() > 1]
    n = int(sum(member.sum() for member in members))
    if n < MIN_TREND_MODELS:
        models = "model" if n == 1 else "models"
        return Tested(
            None, n, reason=f"a trend needs at least {MIN_TREND_MODELS} models of a family, and there are {n} {models}"
        )
    log_size = np.log10(size)
    x, deviation = (
        np.concatenate([values[member] - values[member].mean() for member in members]) for values in (log_size, y)
    )
    spread = float(x @ x)
    if spread < 1e-12:
        return Tested(None, n, reason="the models of a family have equal sizes")
    slope, df = float(x @ deviation) / spread, n - len(members) - 1
    residuals = deviation - slope * x
    std_error = float(np.sqrt(residuals @ residuals / df / spread))
    if std_error < ROUNDING_ERROR:
        return Tested(slope, n, reason="the figures are exactly on a line, so its uncertainty cannot be estimated")
    half_width = float(stdtrit(df, (1 + CONFIDENCE_LEVEL) / 2)) * std_error
    p_value = 2 * float(stdtr(df, -abs(slope) / std_error))
    return Tested(slope, n, slope - half_width, slope + half_width, None, ("model",), p_value=p_value)
