"""Trend of a figure over the size of models, within families, with models as the unit.

Each family has an intercept of its own, since its models share data and methods of training, and all families have one
slope: least squares of the figure on the logarithm of the size. The interval and the p-value are Student's, with as
many degrees of freedom as models less families and the slope; they are exact for independent Gaussian deviations of
models, and are statements about other models of these families.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import complete_cases
from auditor.metrics._special import stdtr, stdtrit
from auditor.metrics.confidence import CONFIDENCE_LEVEL
from auditor.metrics.estimate import Tested

MIN_TREND_MODELS = 6
"""Fewer models give no trend."""


def trend_within_families(figures: ArrayLike, sizes: ArrayLike, families: Sequence[str]) -> Tested:
    """Slope of a figure on the decimal logarithm of the size: the change from a model to one ten times as large.

    Args:
        figures: shape (n,), one per model; models with nan are left out.
        sizes: shape (n,), above 0, such as numbers of parameters.
        families: of the models; a family with a single model says nothing about the slope and is left out.

    Returns:
        The slope, whose `n` counts models. No value, with the reason, for fewer than 6 models or equal sizes.

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
    half_width = float(stdtrit(df, (1 + CONFIDENCE_LEVEL) / 2)) * std_error
    p_value = 2 * float(stdtr(df, -abs(slope) / std_error)) if std_error > 0 else float(slope == 0)
    return Tested(slope, n, slope - half_width, slope + half_width, None, ("model",), p_value=p_value)
