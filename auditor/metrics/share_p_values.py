"""P-values of shares against reference shares, such as chance, that agree with the intervals of `shares_over_units`.

Clopper & Pearson's test (Biometrika 26, 1934) at the number of independent cases of Korn & Graubard's interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._special import betainc
from auditor.metrics._unit_counts import read_counts
from auditor.metrics.estimate import TestedShare
from auditor.metrics.unit_means import ShareTable, pooled_design_effect, shares_over_units


def share_p_values(tables: Sequence[ShareTable], references: ArrayLike) -> list[float | None]:
    """Two-sided p-values of the shares of rows of one figure, such as one per judge, against reference shares.

    Args:
        tables: one per row, as for `auditor.metrics.unit_means.shares_over_units`.
        references: one for all rows, or shape (rows,); in [0, 1].

    Returns:
        One per row: below 0.05 where the 95% interval excludes the reference; None where there is no interval.

    Raises:
        ValueError: a reference is not in [0, 1]; or as `shares_over_units`.
    """
    by_row = np.broadcast_to(np.asarray(references, dtype=np.float64), len(tables))
    if not ((by_row >= 0) & (by_row <= 1)).all():
        raise ValueError("reference shares must be from 0 to 1")
    counts, design_effect = [read_counts(*table) for table in tables], pooled_design_effect(tables)
    p_values: list[float | None] = [None] * len(tables)
    tested = [i for i, row in enumerate(counts) if row.n and row.reason_against_interval() is None]
    for n in {round(counts[i].n) for i in tested}:
        # Among rows with as many cases, both ends of the interval rise with the share: some intervals are widened.
        rows = sorted((i for i in tested if round(counts[i].n) == n), key=lambda i: counts[i].share)
        shares = np.array([counts[i].share for i in rows])
        n_effective = np.array([counts[i].effective_cases(design_effect) for i in rows])
        for position, i in enumerate(rows):
            upper, _ = _tail_probabilities(shares[position:], n_effective[position:], by_row[i])
            _, lower = _tail_probabilities(shares[: position + 1], n_effective[: position + 1], by_row[i])
            p_values[i] = min(1.0, 2 * float(min(upper.max(), lower.max())))
    return p_values


def compare_shares(tables: Sequence[ShareTable], references: ArrayLike) -> list[TestedShare]:
    """Estimate shares and test them against reference shares; see `shares_over_units` and `share_p_values`."""
    columns = zip(shares_over_units(tables), share_p_values(tables, references), strict=True)
    return [TestedShare(**asdict(share), p_value=p_value) for share, p_value in columns]


def _tail_probabilities(
    shares: NDArray[np.float64], n: NDArray[np.float64], reference: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probabilities of at least, and of at most, this share of n cases if the true share is the reference.

    Args:
        shares, n: shape (rows,); hits and cases may be fractions.
    """
    hits, misses = shares * n, (1 - shares) * n
    with np.errstate(invalid="ignore"):  # without hits, or without misses, the first probability is 1
        at_least = np.where(hits == 0, 1.0, betainc(hits, misses + 1, reference))
        at_most = np.where(misses == 0, 1.0, betainc(misses, hits + 1, 1 - reference))
    return at_least, at_most
