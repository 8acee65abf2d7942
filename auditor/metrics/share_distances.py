"""Distances of shares of answers without an order, and for comparison with papers that report them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats
from auditor.metrics._shares import read_shares


def total_variation(p: ArrayLike, q: ArrayLike) -> Floats:
    """Total variation distance: half the sum of absolute differences.

    Args:
        p, q: shape (..., K), shares or counts.

    Returns:
        Shape (...), in [0, 1]; nan for a row with a nan.

    Raises:
        ValueError: invalid shares, or shapes that do not match.
    """
    distances: Floats = np.abs(read_shares(p) - read_shares(q)).sum(axis=-1) / 2
    return distances


def jensen_shannon(p: ArrayLike, q: ArrayLike) -> Floats:
    """Jensen-Shannon distance in bits: the root of the divergence with logarithms of base 2.

    Figures in nats, scipy's default, are smaller by the factor sqrt(ln 2) = 0.83.

    Args:
        p, q: shape (..., K), shares or counts.

    Returns:
        Shape (...), in [0, 1]; nan for a row with a nan.

    Raises:
        ValueError: invalid shares, or shapes that do not match.
    """
    first, second = read_shares(p), read_shares(q)
    middle = (first + second) / 2
    divergence = (_relative_entropy(first, middle) + _relative_entropy(second, middle)) / 2
    distances: Floats = np.sqrt(np.clip(divergence, 0.0, 1.0))
    return distances


def _relative_entropy(p: Floats, q: Floats) -> Floats:
    """Kullback-Leibler divergence in bits, where q is above 0 wherever p is."""
    is_positive = p > 0
    ratios = np.divide(p, q, out=np.ones_like(p), where=is_positive)
    summands: Floats = (p * np.log2(ratios)).sum(axis=-1)
    return summands
