"""Counts of the cases of one item set, such as its pairs: hits, decided cases, ties and failures."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """Counts of the cases of one item set in one wording, such as its pairs, questions or subsets of items.

    Attributes:
        hits: of `n` decided cases; may be a fraction.
        ties: answered cases that are left out, since an answer is a tie.
        lost: cases that were asked about, but not answered completely.
        by_item: shape (items, 2), the hits and the decided cases that each item is part of; None if unknown.
        case_size: number of items in a case.
    """

    hits: float
    n: int
    ties: int = 0
    lost: int = 0
    by_item: Floats | None = field(default=None, repr=False, compare=False)
    case_size: int = 2

    @property
    def value(self) -> float | None:
        """Share of hits; None without a decided case."""
        return self.hits / self.n if self.n else None


def count_by_item(members: NDArray[np.intp], hits: Floats, n_items: int) -> Floats:
    """The hits and the cases that each item is part of, shape (n_items, 2).

    Args:
        members: shape (cases, size), the items of each case.
        hits: shape (cases,).
    """
    size = members.shape[1]
    return np.stack(
        [
            np.bincount(members.ravel(), np.repeat(hits, size), minlength=n_items),
            np.bincount(members.ravel(), minlength=n_items).astype(float),
        ],
        axis=1,
    )
