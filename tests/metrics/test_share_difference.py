"""The difference of two shares against Newcombe's published examples."""

from __future__ import annotations

from itertools import pairwise

import pytest

from auditor.metrics.share_difference import difference_of_shares


def test_newcombes_own_examples() -> None:
    # Newcombe 1998, table II, method 10, examples (a) to (d).
    for counts, low, high in (
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((10, 10, 0, 10), 0.6075, 1.0),
        ((5, 56, 0, 29), -0.0381, 0.1926),
    ):
        difference = difference_of_shares(*counts)
        assert difference.ci_low == pytest.approx(low, abs=5e-5)
        assert difference.ci_high == pytest.approx(high, abs=5e-5)


def test_an_empty_side_has_no_difference_and_differences_increase_with_the_share() -> None:
    assert difference_of_shares(0, 0, 5, 10).value is None
    values = [difference_of_shares(k, 10, 5, 10).value for k in range(11)]
    assert all(a is not None and b is not None and a < b for a, b in pairwise(values))
