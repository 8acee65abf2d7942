"""Designs: orthogonality and resolution, balance of cells, and what is confounded, by exact properties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from auditor.metrics.designs.design_matrix import Confounding, assign_cells, list_confounding, plan_levels

DEFAULTS = (5, 2, 3, 3, 2, 2, 2, 2)


@pytest.mark.parametrize("n_factors", [4, 5, 6, 8])
def test_two_level_factors_have_resolution_iv_in_16_runs(n_factors: int) -> None:
    levels = plan_levels([2] * n_factors, seed=3)
    assert levels.shape == (16, n_factors)
    assert not levels[0].any()
    signs = 1 - 2 * levels
    for a, b in itertools.combinations(range(n_factors), 2):
        assert signs[:, a] @ signs[:, b] == 0
        for c in set(range(n_factors)) - {a, b}:
            assert signs[:, a] @ (signs[:, b] * signs[:, c]) == 0
    if n_factors == 5:  # interactions of two are separate from each other, too
        pairs = [signs[:, a] * signs[:, b] for a, b in itertools.combinations(range(5), 2)]
        assert np.allclose(np.array(pairs) @ np.array(pairs).T, 16 * np.eye(10))


@pytest.mark.parametrize("n_levels", [DEFAULTS, (5, 3, 3), (2, 3, 3, 2), (5, 2, 2, 2), (5, 3, 2, 2)])
def test_factors_of_more_levels_are_nearly_balanced_and_leave_resolution_iv(n_levels: tuple[int, ...]) -> None:
    levels = plan_levels(n_levels, seed=7)
    assert len(levels) == 32
    assert not levels[0].any()
    assert len(np.unique(levels, axis=0)) == 32
    for column, count in zip(levels.T, n_levels, strict=True):
        counts = np.bincount(column, minlength=count)
        assert counts.min() >= 32 // count - 2
    two_level = [1 - 2 * levels[:, i] for i, count in enumerate(n_levels) if count == 2]
    for a, b, c in itertools.permutations(two_level, 3):
        assert a @ b == 0
        assert a @ (b * c) == 0
    factors = {f"f{i}": column.tolist() for i, column in enumerate(levels.T)}
    assert all(row.share < 0.3 for row in list_confounding(factors) if len(row.other) == 1)
    assert np.array_equal(plan_levels(n_levels, seed=7), levels)


@pytest.mark.parametrize("n_levels", [DEFAULTS, (2, 2, 2, 2, 2)])
def test_cells_are_balanced_over_runs_and_over_levels(n_levels: tuple[int, ...]) -> None:
    levels = plan_levels(n_levels, seed=1)
    is_asked = assign_cells(levels, 40, seed=1)
    assert (is_asked.sum(axis=0) == 8).all()
    assert np.ptp(is_asked.sum(axis=1)) <= 1
    for cell in range(40):
        for column, count in zip(levels.T, n_levels, strict=True):
            counts = np.bincount(column[is_asked[:, cell]], minlength=count)
            assert np.ptp(counts) <= (2 if count == 2 else 3)
    # Any two runs share cells, directly or by way of others: all can be compared within cells.
    shared = (is_asked.astype(int) @ is_asked.T.astype(int)) > 0
    assert (np.linalg.matrix_power(shared.astype(int), 3) > 0).all()


def test_confounded_effects_are_named() -> None:
    a, b = np.tile([0, 1], 8), np.repeat([0, 1], 8)
    rows = list_confounding({"a": a.tolist(), "b": b.tolist(), "c": (a ^ b).tolist(), "d": a.tolist()})
    assert Confounding("a", ("d",), 1.0) in [Confounding(row.effect, row.other, round(row.share, 9)) for row in rows]
    assert {("c", ("a", "b")), ("b", ("a", "c"))} <= {(row.effect, row.other) for row in rows if row.share > 0.99}


@pytest.mark.parametrize(("n_levels", "n_runs"), [((2,), 2), ((2, 2, 2), 8), ((5,), 5), ((5, 3), 15), ((5, 3, 2), 30)])
def test_few_choices_are_combined_completely(n_levels: tuple[int, ...], n_runs: int) -> None:
    levels = plan_levels(n_levels, seed=2)
    assert levels.shape == (n_runs, len(n_levels))
    assert not levels[0].any()
    assert len(np.unique(levels, axis=0)) == n_runs
    is_asked = assign_cells(levels, 100, seed=2)
    assert (is_asked.sum(axis=0) == min(8, n_runs)).all()
    assert np.ptp(is_asked.sum(axis=1)) <= 1
    assert not list_confounding({f"f{i}": column.tolist() for i, column in enumerate(levels.T)})


@pytest.mark.parametrize("n_levels", [(), (2, 1), (2,) * 9])
def test_a_design_that_cannot_be_made_is_an_error(n_levels: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="factor"):
        plan_levels(n_levels, seed=0)
