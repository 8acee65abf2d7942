from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.metrics.intervals.multiple_testing import widest_gap
from auditor.metrics.intervals.two_way import gap_jackknife
from auditor.metrics.people.alignment import MAE, PEARSON

Floats = NDArray[np.float64]


def world(seed: int, groups: int, members: int, topics: int) -> tuple[Floats, Floats, list[str], list[str], list[str]]:
    """Truth, scores, countries, topics and groups; the size of the error is the same in every group."""
    rng, n = np.random.default_rng(seed), groups * members

    def effects() -> Floats:
        row, column, cell = (rng.normal(size=s) for s in ((n, 1), (1, topics), (n, topics)))
        sums: Floats = (0.2 * row + 0.3 * column + 0.2 * cell).ravel()
        return sums

    truth = effects()
    countries = [f"c{i:02}" for i in range(n) for _ in range(topics)]
    subjects = [f"t{j:02}" for _ in range(n) for j in range(topics)]
    return truth, truth + effects(), countries, subjects, [f"g{i // members}" for i in range(n) for _ in range(topics)]


def test_the_widest_gap_is_the_largest_difference_of_the_plain_figures() -> None:
    truth, scores, countries, topics, groups = world(1, 4, 5, 6)
    labels = np.array(groups)
    errors = {g: float(np.abs(scores - truth)[labels == g].mean()) for g in sorted(set(groups))}
    gap = widest_gap(MAE, scores, truth, countries, topics, groups)
    assert (gap.low_group, gap.high_group) == (min(errors, key=errors.__getitem__), max(errors, key=errors.__getitem__))
    assert gap.value == pytest.approx(max(errors.values()) - min(errors.values()), abs=1e-12)
    assert (gap.n, gap.resampled) == (60, ("country", "topic"))
    assert (gap.compared, gap.left_out, gap.reason) == (4, (), None)


def test_without_any_difference_the_interval_holds_zero_though_the_widest_was_picked() -> None:
    together = n_single_covered = 0
    for seed in range(150):
        truth, scores, countries, topics, groups = world(seed, 8, 5, 12)
        gap = widest_gap(MAE, scores, truth, countries, topics, groups)
        assert gap.ci_low is not None
        together += gap.ci_low <= 0
        assert gap.p_value is not None
        assert (gap.p_value < 0.05) is (gap.ci_low > 0)
        of_pair = np.isin(groups, (gap.low_group, gap.high_group))
        x, y, c, t, g = (np.asarray(a)[of_pair] for a in (scores, truth, countries, topics, groups))
        naive = gap_jackknife(MAE, x, y, c, t, g == gap.high_group)
        assert naive.ci_low is not None
        n_single_covered += naive.ci_low <= 0
    assert together / 150 >= 0.94
    # The pair taken by itself holds zero less often than 95 in 100: what the simultaneous interval is for.
    assert n_single_covered < together
    assert n_single_covered / 150 < 0.94


def test_a_real_difference_is_found() -> None:
    n_detected = 0
    for seed in range(40):
        truth, scores, countries, topics, groups = world(seed, 3, 12, 15)
        scores = np.where(np.array(groups) == "g1", truth + 3 * (scores - truth), scores)
        gap = widest_gap(MAE, scores, truth, countries, topics, groups)
        assert gap.ci_low is not None
        n_detected += gap.high_group == "g1" and gap.ci_low > 0
    assert n_detected >= 38


def test_small_groups_are_left_out_or_leave_no_interval() -> None:
    truth, scores, countries, topics, groups = world(2, 3, 6, 6)
    few = [g if c not in ("c00", "c01", "c02", "c03") else "few" for g, c in zip(groups, countries, strict=True)]
    gap = widest_gap(MAE, scores, truth, countries, topics, few)
    assert (gap.compared, gap.left_out) == (2, ("few", "g0"))
    gap = widest_gap(MAE, scores, truth, countries, topics, countries)
    assert gap.value is not None
    assert (gap.ci_low, gap.compared) == (None, 18)
    assert gap.reason == "an interval needs two groups of 5 countries, and as many topics"


def test_degenerate_and_malformed_input() -> None:
    truth, scores, countries, topics, groups = world(3, 3, 5, 6)
    for cells in (np.full_like(scores, np.nan), np.where(np.array(groups) == "g0", scores, np.nan)):
        gap = widest_gap(MAE, cells, truth, countries, topics, groups)
        assert (gap.value, gap.reason) == (None, "fewer than two groups have a value")
    assert widest_gap(PEARSON, scores, truth, countries, topics, groups).p_value is None
    flat = widest_gap(PEARSON, np.zeros_like(scores), truth, countries, topics, groups)
    assert flat.value is None
    with pytest.raises(ValueError, match="groups must have the shape"):
        widest_gap(MAE, scores, truth, countries, topics, groups[:-1])
    with pytest.raises(ValueError, match="one group only"):
        widest_gap(MAE, scores, truth, countries, topics, [f"g{i % 2}" for i in range(len(groups))])


def test_it_is_reproducible_and_blind_to_order() -> None:
    truth, scores, countries, topics, groups = world(4, 3, 5, 6)
    args = (scores, truth, countries, topics, groups)
    order = np.random.default_rng(0).permutation(len(groups))
    one, other = widest_gap(MAE, *args), widest_gap(MAE, *(np.asarray(a)[order] for a in args))
    assert one.ci_low == pytest.approx(other.ci_low, abs=1e-12)
    assert one == widest_gap(MAE, *args)
