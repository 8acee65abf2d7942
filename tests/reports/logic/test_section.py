"""The section on logic, where it is counted from comparisons themselves."""

from __future__ import annotations

import pytest

from auditor.domain import Comparison, ComparisonChoice, Outcome, Relation
from auditor.reports.logic.section import first_position_share

A, B, TIE = ComparisonChoice.FIRST, ComparisonChoice.SECOND, ComparisonChoice.TIE


def asked(one: str, other: str, said: ComparisonChoice) -> Comparison:
    return Comparison("judge", "set", one, other, Relation.STANDARD, Outcome.OK, said)


def test_a_place_is_leant_to_only_where_both_orders_were_put() -> None:
    better_first = [asked("good", f"poor {i}", A) for i in range(40)]
    found = first_position_share(better_first)
    assert (found.value, found.n, found.reason) == (None, 0, "no pair was answered in both orders")

    swapped = [asked(f"poor {i}", "good", said) for i, said in enumerate([B] * 6 + [A] * 3 + [TIE])]
    found = first_position_share([*better_first, *swapped])
    assert found.n == 19
    assert found.value == pytest.approx(13 / 19)
