"""Stratified random samples that can be extended, drawn with permanent random numbers.

Every unit has one random number. A sample consists of the units with the smallest numbers of each stratum, so a larger
sample contains the smaller one, and a sample of a changed population shares most units with the earlier one (Ohlsson,
"Coordination of samples using permanent random numbers", in Business Survey Methods, Wiley 1995, ch. 9).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

DEFAULT_MIN_PER_STRATUM = 10
"""Fewest sampled units of a stratum, or all of it: an interval needs a variance within each stratum."""
_LOW_BITS = 2.0**20


def allocate_sample(
    stratum_sizes: ArrayLike, n: int, *, min_per_stratum: int = DEFAULT_MIN_PER_STRATUM
) -> NDArray[np.intp]:
    """Divide a sample among strata in proportion to their sizes, with a minimum.

    Every stratum gets the minimum first. The others go one by one to the stratum with the largest N_h / (2 n_h + 1),
    the method of Sainte-Laguë. Unlike rounded quotas, a larger sample never takes a unit from a stratum (Balinski and
    Young, Fair Representation, 2nd ed. 2001, ch. 4).

    Args:
        stratum_sizes: number of units N_h of each stratum, shape (strata,).
        n: size of the sample.
        min_per_stratum: fewest units of a stratum; a smaller stratum is taken in full.

    Returns:
        Sample size n_h of each stratum, shape (strata,). The sum is n, or more if the minimum demands it, or the size
        of the population if that is smaller.

    Raises:
        ValueError: a size, n or the minimum is negative.
    """
    sizes = np.asarray(stratum_sizes, dtype=np.intp)
    if n < 0 or min_per_stratum < 0 or (sizes < 0).any():
        raise ValueError("sizes, n and min_per_stratum must be at least 0")
    allocated = np.minimum(sizes, min_per_stratum)
    if n >= sizes.sum():
        return sizes
    queue = [(-size / (2 * taken + 1), h) for h, (size, taken) in enumerate(zip(sizes, allocated, strict=True))]
    heapq.heapify(queue)
    for _ in range(n - int(allocated.sum())):
        while allocated[queue[0][1]] >= sizes[queue[0][1]]:
            heapq.heappop(queue)
        _, h = queue[0]
        allocated[h] += 1
        heapq.heapreplace(queue, (-sizes[h] / (2 * allocated[h] + 1), h))
    return allocated


def draw_stratified_sample(
    strata: ArrayLike,
    random_numbers: ArrayLike,
    n: int,
    *,
    min_per_stratum: int = DEFAULT_MIN_PER_STRATUM,
    drawn: Sequence[int] = (),
) -> NDArray[np.intp]:
    """Draw units of every stratum, in an order that mixes the strata.

    The first labels of a sample are then spread over the strata like the whole, and each stratum is labelled in random
    order, so that labelling may stop at any time.

    Args:
        strata: number of each unit's stratum, from 0 without gaps, shape (N,).
        random_numbers: a random number of each unit, uniform on [0, 1), shape (N,).
        n: size of the sample.
        min_per_stratum: fewest units of a stratum, as in `allocate_sample`.
        drawn: positions of the units of an earlier, smaller sample of the same units.

    Returns:
        Positions of the units that are drawn in addition to `drawn`, in labelling order.

    Raises:
        ValueError: shapes differ, a random number is outside [0, 1), or `n` is negative.
    """
    stratum, numbers = np.asarray(strata, dtype=np.intp), np.asarray(random_numbers, dtype=np.float64)
    if stratum.shape != numbers.shape or stratum.ndim != 1:
        raise ValueError("strata and random_numbers must have the same shape (N,)")
    if not ((numbers >= 0) & (numbers < 1)).all():
        raise ValueError("random numbers must be in [0, 1)")
    is_drawn = np.zeros(len(stratum), dtype=bool)
    is_drawn[list(drawn)] = True
    n_allocated = allocate_sample(np.bincount(stratum), n, min_per_stratum=min_per_stratum)
    n_new = np.maximum(n_allocated - np.bincount(stratum[is_drawn], minlength=len(n_allocated)), 0)
    candidates = np.lexsort((numbers, stratum))
    candidates = candidates[~is_drawn[candidates]]
    first = np.searchsorted(stratum[candidates], np.arange(len(n_new)))
    rank = np.arange(len(candidates)) - first[stratum[candidates]]
    is_new = rank < n_new[stratum[candidates]]
    new, rank = candidates[is_new], rank[is_new]
    # The low bits are independent of the order within the stratum: without jitter, strata would take turns in a
    # pattern from which a rater could guess the stratum.
    jitter = numbers[new] * _LOW_BITS % 1
    places: NDArray[np.intp] = new[np.argsort((rank + jitter) / n_new[stratum[new]], kind="stable")]
    return places
