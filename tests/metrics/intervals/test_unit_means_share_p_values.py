"""P-values of shares: exact ones by Clopper & Pearson, in agreement with the intervals, and rarely small by chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from auditor.metrics.intervals.unit_means import ShareTable, share_p_values, shares_over_units


def make_table(rng: np.random.Generator, share: float, n_countries: int, n_topics: int, spread: float) -> ShareTable:
    """Counts in a table of cells, with countries that differ in their share."""
    country, topic = (index.ravel() for index in np.indices((n_countries, n_topics)))
    totals = rng.integers(0, 4, len(country)) if share < 0.5 else np.full(len(country), 2)
    shares = np.clip(share + spread * rng.normal(size=n_countries)[country], 0, 1)
    return ShareTable(rng.binomial(totals, shares), totals, {"country": country, "topic": topic})


def test_a_share_of_independent_cases_has_clopper_and_pearsons_test() -> None:
    for hits, n, reference in ((10, 10, 0.5), (0, 12, 0.25), (12, 12, 0.9)):
        [p_value] = share_p_values([ShareTable([hits > i for i in range(n)], [1] * n, {"item": range(n)})], reference)
        tails = [binomtest(hits, n, reference, side).pvalue for side in ("greater", "less")]
        assert p_value == pytest.approx(min(1.0, 2 * min(tails)))


@pytest.mark.parametrize("seed", range(40))
def test_a_p_value_is_below_five_percent_where_the_interval_excludes_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_countries, n_topics = int(rng.integers(4, 15)), int(rng.integers(5, 12))
    tables = [
        make_table(rng, share, n_countries, n_topics, 0.1 if 0 < share < 1 else 0.0)
        for share in rng.choice([0.0, 0.02, 0.3, 0.5, 0.6, 0.95, 1.0], 8)
    ]
    references = rng.choice([0.1, 0.25, 0.5], 8)
    p_values = share_p_values(tables, references)
    for share, p_value, reference in zip(shares_over_units(tables), p_values, references, strict=True):
        if share.ci_low is None or share.ci_high is None:
            assert p_value is None
        else:
            assert p_value is not None
            assert 0 <= p_value <= 1
            assert (p_value < 0.05) is not (share.ci_low <= reference <= share.ci_high)


def test_p_values_of_equal_shares_are_no_smaller_than_chance_allows() -> None:
    """Far below 0.05 too, as a correction for many tests needs; with few countries that differ in their shares."""
    rng = np.random.default_rng(1)
    p_values = [
        p_value
        for _ in range(60)
        for p_value in share_p_values([make_table(rng, 0.5, 6, 8, spread) for spread in (0.0, 0.1, 0.25) * 2], 0.5)
        if p_value is not None
    ]
    assert len(p_values) > 300
    for level in (0.05, 0.01, 0.0025):
        assert np.mean(np.array(p_values) < level) <= level


def test_impossible_references_and_rows_without_cases() -> None:
    table = ShareTable([1, 0] * 5, [1] * 10, {"item": range(10)})
    assert share_p_values([table], 0.0) == share_p_values([table], 1.0) == [0.0]
    assert share_p_values([ShareTable([0] * 9, [0] * 9, {"item": range(9)})], 0.5) == [None]
    assert share_p_values([], 0.5) == []
    for reference in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="must be from 0 to 1"):
            share_p_values([table], reference)
