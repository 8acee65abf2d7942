"""The figures of the logic section that are computed from single comparisons."""

from __future__ import annotations

import pytest

from auditor.domain import Comparison, ComparisonChoice, Outcome, Relation
from auditor.reports.data.logic.build import first_position_share

A, B, TIE = ComparisonChoice.FIRST, ComparisonChoice.SECOND, ComparisonChoice.TIE


def make_comparison(first_model: str, second_model: str, choice: ComparisonChoice) -> Comparison:
    return Comparison("judge", "set", first_model, second_model, Relation.STANDARD, Outcome.OK, choice)


def test_first_position_share_uses_only_pairs_asked_in_both_orders() -> None:
    better_first = [make_comparison("good", f"poor {i}", A) for i in range(40)]
    first_share = first_position_share(better_first)
    assert (first_share.value, first_share.n, first_share.reason) == (None, 0, "no pair was answered in both orders")

    swapped = [make_comparison(f"poor {i}", "good", choice) for i, choice in enumerate([B] * 6 + [A] * 3 + [TIE])]
    first_share = first_position_share([*better_first, *swapped])
    assert first_share.n == 19
    assert first_share.value == pytest.approx(13 / 19)
