"""Correlation of two figures over models, such as peer agreement and agreement with people.

There are few models, and models of one family are not independent: they share data and methods of training. So:

- Models of one family are averaged first, and each family counts once. Permuting whole families of equal size instead
  (Winkler et al., NeuroImage 123, 2015, 253-268) leaves almost no permutations where families differ in size. With
  families of equal size both are the same test of the families' means.
- The p-value is that of a permutation test (Pitman, Supplement to the J. of the Royal Statistical Society 4, 1937):
  exact for up to 8 models, else by 9,999 random permutations, with the observed order counted as one of them (Phipson &
  Smyth, Statistical Applications in Genetics and Molecular Biology 9, 2010, article 39). It needs 5 models: with 4, no
  p-value is below 1/24.
- The interval needs 8 models: Fisher's z for Pearson's r, and for Spearman's rank correlation the variance of Bonett &
  Wright (Psychometrika 65, 2000, 23-28).

Both are statements about other models (or families) like these, not about other countries and topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics._ranks import average_ranks
from auditor.metrics.correlation import pearson, spearman
from auditor.metrics.estimate import PLURAL_BY_UNIT, Estimate, Tested

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
