"""The margin of transitivity covers other draws of orders and of subsets: simulated, with the truth known."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.metrics.intervals.items import AVERAGINGS, Averaging
from auditor.metrics.logic.transitivity import estimate_transitivity
from tests.metrics.logic.test_transitivity_set_transitivity import answered

N_SEEDS = 100


def biased_answers(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """A judge that mostly prefers the item shown first, so that many answers depend on the order."""
    strength = rng.normal(0, 1, n)
    gap = strength[:, None] - strength[None, :] + 1.0 + rng.normal(0, 1, (n, n))
    return (gap > 0).astype(float)


@pytest.mark.parametrize(
    ("sizes", "max_subsets"), [((8,) * 6, 1000), ((16,) * 6, 1000), ((6, 6, 7, 9, 14, 14), 300), ((8, 8), 100)]
)
def test_the_margin_holds_for_other_draws(sizes: tuple[int, ...], max_subsets: int) -> None:
    rng = np.random.default_rng(1)
    sets = [answered(biased_answers(rng, n), f"set {i}") for i, n in enumerate(sizes)]
    of_sets = [estimate_transitivity([one], 5, max_subsets=200_000).complete["pooled"].value or 0.0 for one in sets]
    n_checked = [min(comb(n, 5), max_subsets) for n in sizes]
    truth: dict[Averaging, float] = {
        "instances": float(np.mean(of_sets)),
        "pooled": float(np.average(of_sets, weights=n_checked)),
    }
    figures = [estimate_transitivity(sets, 5, max_subsets, seed) for seed in range(N_SEEDS)]
    for averaged in AVERAGINGS:
        values = np.array([figure.complete[averaged].value for figure in figures])
        margins = np.array([figure.margin[averaged] for figure in figures])
        assert values.mean() == pytest.approx(truth[averaged], abs=3 * values.std() / np.sqrt(N_SEEDS) + 0.003)
        assert (np.abs(values - values.mean()) <= margins).mean() >= 0.92
        assert margins.mean() / 1.96 == pytest.approx(values.std(), rel=0.3)  # not far too wide either


def test_wordings_of_one_set_have_the_same_draws() -> None:
    rng = np.random.default_rng(2)
    first, second = biased_answers(rng, 8), biased_answers(rng, 8)
    one = estimate_transitivity([answered(first, "a")], 5).margin
    twice = estimate_transitivity([answered(first, "a"), answered(first, "a")], 5).margin
    assert twice == pytest.approx(one)
    two_sets = estimate_transitivity([answered(first, "a"), answered(second, "b")], 5).margin
    two_wordings = estimate_transitivity([answered(first, "a"), answered(second, "a")], 5).margin
    assert two_sets["instances"] < two_wordings["instances"]


def test_there_is_no_margin_where_nothing_is_drawn() -> None:
    consistent = np.triu(np.ones((16, 16)), 1)
    all_checked = estimate_transitivity([answered(consistent)], 3)
    assert all_checked.margin == {"instances": 0.0, "pooled": 0.0}
    sampled = estimate_transitivity([answered(consistent)], 5)  # all alike, but not all subsets were checked
    assert 0 < sampled.margin["pooled"] == sampled.margin["instances"] < 0.005
    assert estimate_transitivity([answered(np.full((5, 5), np.nan))], 3).margin["instances"] == 0.0
