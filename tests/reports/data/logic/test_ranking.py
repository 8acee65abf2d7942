"""Rankings from few comparisons are measured on every complete item set."""

from __future__ import annotations

import numpy as np

from auditor.domain import Item, ItemSet
from auditor.reports.data.logic.ranking import build_ranking_rows
from auditor.storage.comparisons import ItemSetAnswers


def test_no_complete_set_is_left_out() -> None:
    items = tuple(Item(name, name, float(i)) for i, name in enumerate("abcd"))
    preferences = np.tril(np.ones((4, 4)), -1)  # the later item is preferred, as people do
    answers = [
        ItemSetAnswers(
            judge="j",
            paraphrase=0,
            item_set=ItemSet(f"set {i}", "", "preference", items),
            preferences=preferences,
            negated=np.full((4, 4), np.nan),
            asked=np.stack([~np.eye(4, dtype=bool)] * 2),
            samples=np.empty((0, 0)),
            human_preferences=preferences,
            failures={},
            n_questions=12,
        )
        for i in range(21)
    ]
    rows = build_ranking_rows("j", answers, seed=0)
    assert {row.people.n for row in rows if row.method.startswith("PairS")} == {21}
    assert {row.people.value for row in rows if row.method.startswith("PairS")} == {1.0}
