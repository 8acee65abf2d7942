"""Cases of one cell count as one."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from auditor.domain import Cell
from auditor.reports.data.conflicts import share_by_cell


def test_conflicts_of_a_cell_count_as_one_case() -> None:
    cells = [Cell(f"c{i % 6}", f"t{i % 5}") for i in range(30)]
    is_hit = [i % 2 == 0 for i in range(30)]
    share = share_by_cell(cells * 10, is_hit * 10)
    exact = binomtest(15, 30).proportion_ci(0.95, "exact")
    assert (share.value, share.n) == (0.5, 300)
    assert (share.cells_ci_low, share.cells_ci_high) == pytest.approx((exact.low, exact.high))


def test_cases_of_a_task_are_over_items() -> None:
    cells = [Cell("", f"item {i}") for i in range(12)]
    assert share_by_cell(cells, [i < 6 for i in range(12)]).resampled == ("item",)
    assert share_by_cell([], []).reason == "nothing to count"
