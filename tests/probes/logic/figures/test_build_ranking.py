"""Rankings from few comparisons are measured on every complete item set."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.probes.logic.comparison_rows import ItemSetAnswers
from auditor.probes.logic.comparisons import Item, ItemSet
from auditor.probes.logic.figures.build import build_ranking_rows

Floats = NDArray[np.float64]


def make_answers(name: str, preferences: Floats) -> ItemSetAnswers:
    """One judge's answers on a set of items, of which people prefer the later ones."""
    n = len(preferences)
    return ItemSetAnswers(
        judge="j", paraphrase=0,
        item_set=ItemSet(name, "", "preference", tuple(Item(f"i{i}", f"i{i}", float(i)) for i in range(n))),
        preferences=preferences, negated=np.full((n, n), np.nan), asked=np.stack([~np.eye(n, dtype=bool)] * 2),
        samples=np.empty((0, 0)), human_preferences=np.tril(np.ones((n, n)), -1), failures={}, n_questions=n * (n - 1),
    )  # fmt: skip


def test_no_complete_set_is_left_out() -> None:
    preferences = np.tril(np.ones((4, 4)), -1)  # the later item is preferred, as people do
    rows = build_ranking_rows("j", [make_answers(f"set {i}", preferences) for i in range(21)], seed=0)
    assert {row.people.n for row in rows if row.method.startswith("PairS")} == {21}
    assert {row.people.value for row in rows if row.method.startswith("PairS")} == {1.0}


def test_sets_that_are_not_ranked_are_counted_by_cause() -> None:
    linear = np.tril(np.ones((4, 4)), -1)
    ranked = [make_answers(f"set {i}", linear) for i in range(3)]
    small = [make_answers(f"small {i}", linear[:3, :3]) for i in range(2)]
    large = make_answers("large", np.tril(np.ones((61, 61)), -1))
    partial = make_answers("partial", linear)
    partial.asked[0][0, 1] = False
    for row in build_ranking_rows("j", [*ranked, *small, large, partial], seed=0):
        for estimate in (row.people, row.all_pairs):
            assert estimate.n == 3 or not row.method.startswith("PairS")
            reason = estimate.reason or ""
            assert "2 of 7 sets left out: fewer than 4 items; 1 of 7 sets left out: more than 60 items" in reason
            assert "1 of 7 sets left out: under 95% of the pairs asked in both orders" in reason
    assert build_ranking_rows("j", [*small, partial], seed=0) == []


def test_a_mean_over_fewer_sets_says_which_are_left_out() -> None:
    cyclic = np.array(
        [[0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1], [1, 0, 0, 0, 1], [1, 1, 0, 0, 0]], dtype=float
    )
    linear = np.tril(np.ones((5, 5)), -1)
    rows = build_ranking_rows("j", [make_answers("cycle", cyclic), make_answers("line", linear)], seed=0)
    people = {row.method: row.people for row in rows}
    by_all_pairs, by_pairs = people["all pairs, both orders, Bradley–Terry"], people["PairS, greedy"]
    assert (by_all_pairs.n, by_pairs.n) == (1, 2)  # all strengths are equal in the cycle
    assert "1 of 2 sets left out" in (by_all_pairs.reason or "")
    assert "left out" not in (by_pairs.reason or "")


def test_the_ranking_that_others_are_compared_with_has_no_interval() -> None:
    rng = np.random.default_rng(2)
    answers = [make_answers(f"set {i}", (rng.random((5, 5)) < 0.5).astype(float)) for i in range(7)]
    rows = {row.method: row.all_pairs for row in build_ranking_rows("j", answers, seed=0)}
    reference = rows["all pairs, both orders, Bradley–Terry"]
    assert reference.value == pytest.approx(1.0)
    assert reference.ci_low is None
    assert (reference.reason or "").startswith("the other rankings are compared with this one")
    assert rows["all pairs, one order, Bradley–Terry"].ci_low is not None
