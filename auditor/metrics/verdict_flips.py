"""Paired verdicts of two sides on the same traces: difference in leniency and agreement, with intervals over units.

Several judges rule on one trace, and traces of one country or topic are alike. Their verdicts are correlated, so
intervals and tests are over units such as countries and topics.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._agreement_interval import estimate_two_category_agreement
from auditor.metrics._complete_cases import Floats
from auditor.metrics._unit_counts import Labels
from auditor.metrics.estimate import Estimate, Tested
from auditor.metrics.paired_shares import PairedTable, paired_difference_over_units
from auditor.metrics.unit_replicates import replicate_over_units

VERDICTS_BY_OUTCOME = np.array([[2, 0], [1, 1], [1, 1], [0, 2]])
"""Numbers of VALID and of INVALID verdicts in a pair, by the column of counts."""


@dataclass(frozen=True, slots=True)
class VerdictFlips:
    """Differences between two sides' verdicts on the same traces; `n` of the estimates counts pairs of verdicts.

    Attributes:
        change: share of VALID on the second side minus that on the first.
        kappa: agreement beyond chance (Scott's pi, which is Fleiss' kappa of two).
    """

    change: Tested
    kappa: Estimate


def compare_verdicts_over_units(counts: ArrayLike, units: Labels) -> VerdictFlips:
    """Compare paired verdicts, with intervals over other units.

    Args:
        counts: shape (n, 4), of each row, such as a cell: verdicts that are VALID in both, VALID in the second only,
            VALID in the first only, INVALID in both.
        units: for each kind of unit, such as `country`, the unit of each row, shape (n,).

    Raises:
        ValueError: not such a table, a number is negative, or another number of labels than of rows.
    """
    table = np.asarray(counts, dtype=np.float64).reshape(-1, 4)
    if np.isnan(table).any() or (table < 0).any():
        raise ValueError("counts must be numbers of verdicts, at least 0")
    totals = table.sum(axis=1)
    n_verdicts = int(totals.sum())
    if not n_verdicts:
        reason = "no verdict on both sides"
        return VerdictFlips(Tested(None, 0, reason=reason), Estimate(None, 0, reason=reason))
    change = paired_difference_over_units(PairedTable(table[:, 1], table[:, 2], totals, units))
    pi = float(_scotts_pi(table.sum(axis=0)[None])[0])
    if np.isnan(pi):
        return VerdictFlips(change, Estimate(None, n_verdicts, reason="all verdicts are the same"))
    has_verdicts = totals > 0
    used_units = {unit: np.asarray(labels)[has_verdicts] for unit, labels in units.items()}
    replicates = replicate_over_units(table[has_verdicts], _scotts_pi, used_units)
    by_verdict = table[has_verdicts] @ VERDICTS_BY_OUTCOME
    rarer = by_verdict[:, by_verdict.sum(axis=0).argmin()]
    kappa = estimate_two_category_agreement(pi, n_verdicts, replicates, rarer, 2.0 * n_verdicts, used_units)
    return VerdictFlips(change, kappa)


def _scotts_pi(counts: Floats) -> Floats:
    """Scott's pi (Public Opinion Quarterly 19, 1955, 321-325) of counts (..., 4); nan if all verdicts are the same."""
    n_verdicts = counts.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        agreement = (counts[..., 0] + counts[..., 3]) / n_verdicts
        valid_share = (2 * counts[..., 0] + counts[..., 1] + counts[..., 2]) / (2 * n_verdicts)
        chance = valid_share**2 + (1 - valid_share) ** 2
        pi: Floats = np.where(chance < 1, (agreement - chance) / (1 - chance), np.nan)
    return pi
