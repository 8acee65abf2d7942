from __future__ import annotations

import numpy as np

from auditor.metrics.intervals.items import CaseCounts, count_by_item


def test_an_item_has_the_cases_that_it_is_part_of() -> None:
    triples = np.array([[0, 1, 2], [1, 2, 3]])
    by_item = count_by_item(triples, np.array([1.0, 0.5]), 5)
    assert by_item.tolist() == [[1, 1], [1.5, 2], [1.5, 2], [0.5, 1], [0, 0]]


def test_the_share_is_of_decided_cases() -> None:
    assert CaseCounts(3.0, 4, ties=6, lost=2).value == 0.75
    assert CaseCounts(0.0, 0, ties=6).value is None
