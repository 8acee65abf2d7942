"""Balanced incomplete panels: each item goes to some of the raters, and every rater rates each author equally often."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def balanced_panels(eligible: ArrayLike, items: int, per_item: int, seed: int) -> NDArray[np.bool_]:
    """Who rates which item of which author, drawn so that rates over raters stay unbiased.

    An incomplete block design (Cochran and Cox, Experimental Designs, 2nd ed. 1957, ch. 9) that is dealt item by item:
    of those who may rate an author, the ones with the fewest items of it so far are taken, ties in an order that is
    drawn for each item and is the same for all authors. So raters of one item differ by one item at most in how many of
    any author they have, after every item; and those who rate one author's item mostly rate the others' items of the
    same number, too, which keeps comparisons between authors within raters.

    Args:
        eligible: shape (authors, raters), whether a rater may rate an author.
        items: items of each author.
        per_item: raters of an item; an author with fewer of them gets all.
        seed: of the order of ties.

    Returns:
        Shape (items, authors, raters). The first items of a longer design are the shorter design.

    Raises:
        ValueError: not a table, a negative number of items, or nobody to rate an item.
    """
    may = np.asarray(eligible, dtype=np.bool_)
    if may.ndim != 2 or items < 0 or per_item < 1:
        raise ValueError(f"panels need a table (authors, raters), {items} items and {per_item} raters an item")
    authors, raters = may.shape
    if per_item >= may.sum(axis=1, initial=0).max(initial=0):
        return np.broadcast_to(may, (items, authors, raters)).copy()
    rng = np.random.default_rng(seed)
    chosen = np.zeros((items, authors, raters), dtype=np.bool_)
    given = np.where(may, 0.0, np.inf)
    row = np.arange(authors)[:, None]
    for item in chosen:
        fewest = np.argpartition(given + rng.random(raters), per_item - 1, axis=1)[:, :per_item]
        item[row, fewest] = True
        item &= may
        given += item
    return chosen
