"""Balanced incomplete panels: each item goes to some raters, and every rater rates each author equally often."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def balanced_panels(eligible: ArrayLike, items: int, per_item: int, seed: int) -> NDArray[np.bool_]:
    """Assign raters to items such that rates over raters stay unbiased.

    An incomplete block design (Cochran and Cox, Experimental Designs, 2nd ed. 1957, ch. 9), assigned item by item: of
    the raters eligible for an author, those with the fewest of its items so far are taken, ties in an order that is
    drawn for each item and is the same for all authors. So after every item, the numbers of an author's items that its
    raters have differ by at most one. Raters of one author's item mostly rate the other authors' items of the same
    number, too, so comparisons between authors are mostly within raters.

    Args:
        eligible: shape (authors, raters), whether a rater may rate an author.
        items: number of items of each author.
        per_item: raters of an item; an author with fewer eligible raters gets all of them.
        seed: of the order of ties.

    Returns:
        Shape (items, authors, raters), whether the rater rates that item of the author. A design with fewer items
        equals the beginning of one with more.

    Raises:
        ValueError: not a table, a negative number of items, or per_item below 1.
    """
    is_eligible = np.asarray(eligible, dtype=np.bool_)
    if is_eligible.ndim != 2 or items < 0 or per_item < 1:
        raise ValueError(f"panels need a table (authors, raters), {items} items and {per_item} raters an item")
    n_authors, n_raters = is_eligible.shape
    if per_item >= is_eligible.sum(axis=1, initial=0).max(initial=0):
        return np.broadcast_to(is_eligible, (items, n_authors, n_raters)).copy()
    rng = np.random.default_rng(seed)
    panels = np.zeros((items, n_authors, n_raters), dtype=np.bool_)
    load = np.where(is_eligible, 0.0, np.inf)  # number of the author's items that each rater has so far
    author_rows = np.arange(n_authors)[:, None]
    for panel in panels:
        least_loaded = np.argpartition(load + rng.random(n_raters), per_item - 1, axis=1)[:, :per_item]
        panel[author_rows, least_loaded] = True
        panel &= is_eligible
        load += panel
    return panels
