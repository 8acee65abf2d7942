"""Standard errors of weighted means by statsmodels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import statsmodels.api as sm


def linearised_error(values: Sequence[float] | Any, weights: Sequence[float] | Any) -> float:
    """Standard error of a weighted mean that does not depend on the weights' scale: HC1 of a regression on 1."""
    fit = sm.WLS(np.asarray(values, float), np.ones(len(values)), weights=np.asarray(weights)).fit(cov_type="HC1")
    return float(fit.bse[0])
