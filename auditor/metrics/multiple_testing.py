"""P-values adjusted for the number of tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics.estimate import Tested

AnyTested = TypeVar("AnyTested", bound=Tested)


def holm(p_values: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """P-values adjusted for multiple testing (Holm, Scandinavian J. of Statistics 6, 1979).

    The adjustment controls the probability of any false finding, however the tests depend on each other.

    Args:
        p_values: shape (m,), in [0, 1]; nan where there was no test, which is not counted.
        weights: shape (m,), above 0, fixed whatever the p-values are: tests with a larger one need a smaller effect
            (section 4 of the paper). Equal ones without it.

    Returns:
        Shape (m,), each at least as large as before; nan stays nan.

    Raises:
        ValueError: not one-dimensional, or a value outside [0, 1]; a weight that is not above 0, or too few weights.
    """
    p, order = _sort_tests(p_values)
    shares = np.ones_like(p) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != p.shape or not np.all(shares > 0):
        raise ValueError("weights must be above 0, one for each p-value")
    order = order[np.argsort(p[order] / shares[order], kind="stable")]
    adjusted = np.full_like(p, np.nan)
    remaining = np.cumsum(shares[order][::-1])[::-1]
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] / shares[order] * remaining), 1.0)
    return adjusted


def intersection_union(p_values: ArrayLike) -> float:
    """P-value of a claim that several comparisons must all support (Berger, Technometrics 24, 1982, 295-300).

    The claim is at the 5% level if each comparison is: the largest p-value needs no adjustment for their number.

    Args:
        p_values: shape (m,), in [0, 1], each of one comparison.

    Returns:
        The largest p-value; nan where one is nan, or there is none.

    Raises:
        ValueError: not one-dimensional, or a value outside [0, 1].
    """
    p, _ = _sort_tests(p_values)
    return float(p.max()) if len(p) and not np.isnan(p).any() else float("nan")


def adjust_tests(tests: Iterable[AnyTested], family: str, weights: Sequence[float] | None = None) -> list[AnyTested]:
    """Copy the tests with p-values adjusted for all of them (Holm): any false finding has a probability of 5%.

    Estimates without a p-value are not counted, and have no adjusted one. The weights are those of `holm`.
    """
    members = list(tests)
    adjusted = holm([np.nan if test.p_value is None else test.p_value for test in members], weights)
    return [
        replace(test, adjusted_p_value=None if np.isnan(p_value) else float(p_value), test_family=family)
        for test, p_value in zip(members, adjusted, strict=True)
    ]


def benjamini_yekutieli(p_values: ArrayLike) -> Floats:
    """P-values adjusted for multiple testing (Benjamini & Yekutieli, Annals of Statistics 29, 2001, theorem 1.3).

    The adjustment controls the expected share of false findings among all, however the tests depend on each other.

    Args, Returns, Raises: as for `holm`.
    """
    p, order = _sort_tests(p_values)
    adjusted = np.full_like(p, np.nan)
    ranks = np.arange(1, len(order) + 1)
    scaled = p[order] * len(order) * (1 / ranks).sum() / ranks
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return adjusted


def _sort_tests(p_values: ArrayLike) -> tuple[Floats, NDArray[np.intp]]:
    """Check p-values; return them, and the positions of those that are not nan, from the smallest to the largest."""
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or np.any((p < 0) | (p > 1)):
        raise ValueError("p-values must be one-dimensional and in [0, 1]")
    tested = np.nonzero(~np.isnan(p))[0]
    return p, tested[np.argsort(p[tested], kind="stable")]
