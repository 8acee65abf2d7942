"""Verdicts of two sides: intervals and tests over cells, since a cell's verdicts stand or fall together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from auditor.metrics.agreement import fleiss_kappa
from auditor.metrics.verdict_flips import flips_by_cell


def test_one_verdict_a_cell_is_mcnemars_exact_test() -> None:
    one_each = np.repeat(np.eye(4), [5, 3, 9, 6], axis=0)
    flips = flips_by_cell(one_each)
    assert flips.p_value == pytest.approx(binomtest(3, 12).pvalue)
    assert flips.change.value == pytest.approx(-6 / 23)
    assert flips.change.n == 23
    counts = np.repeat([[2, 0], [1, 1], [0, 2]], [5, 12, 6], axis=0)
    assert flips.kappa.value == pytest.approx(fleiss_kappa(counts).value)


def test_many_judges_of_one_trace_are_no_more_cells() -> None:
    rng = np.random.default_rng(1)
    once = rng.multinomial(1, [0.4, 0.25, 0.1, 0.25], 40)
    one, ten = flips_by_cell(once), flips_by_cell(10 * once)
    assert (one.change.n, ten.change.n) == (40, 400)
    assert (one.change.ci_low, one.change.ci_high) == (ten.change.ci_low, ten.change.ci_high)
    assert (one.kappa.ci_low, one.p_value) == (ten.kappa.ci_low, ten.p_value)


def test_the_test_holds_its_level_where_cells_flip_as_one() -> None:
    rng = np.random.default_rng(2)
    rejected = 0
    for seed in range(200):
        flip_kinds = rng.choice(4, 30, p=[0.3, 0.2, 0.2, 0.3])  # all five judges of a cell do the same
        rejected += (flips_by_cell(5 * np.eye(4)[flip_kinds], seed).p_value or 1.0) < 0.05
    assert rejected / 200 < 0.09


def test_want_has_a_name() -> None:
    assert flips_by_cell(np.zeros((0, 4))).change.reason == "no verdict on both sides"
    same = flips_by_cell([[3, 0, 0, 0]] * 6)
    assert (same.change.value, same.p_value, same.kappa.value) == (0.0, None, None)
    assert same.kappa.reason == "all verdicts are the same"
    few = flips_by_cell([[3, 1, 0, 2]] * 4)
    assert (few.change.ci_low, few.change.reason) == (None, "fewer than 5 cells: no interval")
    with pytest.raises(ValueError, match="at least 0"):
        flips_by_cell([[1, -1, 0, 0]])
