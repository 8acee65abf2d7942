"""Incomplete panels: balance after every item, and rates without bias."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.judges.panels import balanced_panels

PEERS = ~np.eye(7, dtype=np.bool_)
KIN = PEERS & ~((np.arange(7)[:, None] < 3) & (np.arange(7) < 3))
"""As `PEERS`, but the first three are of one family."""


@pytest.mark.parametrize(("may", "per_item"), [(PEERS, 2), (PEERS, 4), (PEERS, 5), (KIN, 3), (np.ones((3, 4)), 1)])
def test_every_rater_has_equally_many_items_of_an_author_after_each_item(may: np.ndarray, per_item: int) -> None:
    may = may.astype(np.bool_)
    chosen = balanced_panels(may, 60, per_item, seed=3)
    assert (chosen.sum(axis=2) == per_item).all()
    assert not (chosen & ~may).any()
    so_far = chosen.cumsum(axis=0).astype(float)
    spread = np.nanmax(np.where(may, so_far, np.nan), axis=2) - np.nanmin(np.where(may, so_far, np.nan), axis=2)
    assert spread.max() <= 1
    assert len(set(so_far[-1][0][may[0]])) == (1 if 60 * per_item % may[0].sum() == 0 else 2)


def test_a_longer_design_begins_as_the_shorter_and_another_seed_is_another_design() -> None:
    short, long = (balanced_panels(PEERS, n, 3, seed=1) for n in (10, 25))
    assert (long[:10] == short).all()
    assert (balanced_panels(PEERS, 10, 3, seed=2) != short).any()


def test_those_who_rate_one_authors_item_rate_the_others_too() -> None:
    chosen = balanced_panels(~np.eye(20, dtype=np.bool_), 500, 7, seed=0)
    shared = (chosen[:, 0] & chosen[:, 1]).sum(axis=1).mean()
    assert shared > 2 * 7 * 7 / 19  # what independent panels would share


def test_rates_are_those_of_full_panels_though_raters_differ_much() -> None:
    """Raters call between 5% and 95% of items good, whoever wrote them; an unbalanced draw would show."""
    good = np.linspace(0.05, 0.95, 7)
    chosen = balanced_panels(PEERS, 600, 2, seed=5)
    expected = (PEERS * good).sum(axis=1) / 6
    assert (chosen * good).sum(axis=(0, 2)) / 1200 == pytest.approx(expected, abs=1e-9)


def test_fewer_raters_than_asked_for_are_all_asked() -> None:
    may = np.array([[True, True, True], [True, False, False]])
    chosen = balanced_panels(may, 5, 2, seed=0)
    assert (chosen[:, 1] == may[1]).all()
    assert (balanced_panels(may, 4, 3, seed=0) == may).all()
    assert balanced_panels(may, 0, 2, seed=0).shape == (0, 2, 3)


@pytest.mark.parametrize(("may", "items", "per_item"), [([True], 1, 1), ([[True]], -1, 1), ([[True]], 1, 0)])
def test_what_is_no_design_is_refused(may: list[bool] | list[list[bool]], items: int, per_item: int) -> None:
    with pytest.raises(ValueError, match="panels need a table"):
        balanced_panels(may, items, per_item, seed=0)
