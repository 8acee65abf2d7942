"""Counts of several audits together, and shares in all that they count."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.metrics.estimate import Estimate

NO_POOLED_INTERVAL = "the audits share models and countries, so that their intervals cannot be combined"


def sum_counts(counts: Sequence[Estimate]) -> Estimate:
    """The sum of the counts of several audits; n is the sum of the cases in which was counted.

    Raises:
        ValueError: there is no count, or one has no value.
    """
    values = [count.value for count in counts if count.value is not None]
    if not values or len(values) < len(counts):
        raise ValueError("every audit must have a count")
    return Estimate(sum(values), sum(count.n for count in counts), reason=NO_POOLED_INTERVAL)


def pool_shares(shares: Sequence[Estimate]) -> Estimate:
    """The share in the cases of several audits together, sum(n p) / sum(n).

    Args:
        shares: of each audit, n being its number of cases; an audit without a case has no value and no weight.

    Raises:
        ValueError: there is no case, or an audit with cases has no share.
    """
    counted = [(share.value, share.n) for share in shares if share.n > 0]
    n = sum(n_cases for _, n_cases in counted)
    if n == 0 or any(value is None for value, _ in counted):
        raise ValueError("there must be a case, and every audit with cases must have a share")
    return Estimate(sum((value or 0.0) * n_cases for value, n_cases in counted) / n, n, reason=NO_POOLED_INTERVAL)
