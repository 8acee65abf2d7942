"""Conflicts that were resolved differently in two audits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from auditor.domain import Cell, Conflict, ConflictKind, ConflictState, Decision, Rating
from auditor.reports.data.differences.compare import compare_targets
from auditor.reports.data.differences.series_pairs import parse_target
from auditor.storage import audits, results
from auditor.storage.database import Database
from tests.reports.data.differences.test_compare import CELLS, save_imported_audit
from tests.support.stored_rows import add_rating

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def _save_conflicts(db: Database, audit: str, models: tuple[str, str], winners: Sequence[str | None]) -> None:
    left, right = models
    rows = [
        Conflict(
            Cell(*cell), left, right, 0.5, -0.5, ConflictKind.BINARY,
            ConflictState.OPEN if winner is None else ConflictState.MAJORITY, winner=winner,
        )
        for cell, winner in zip(CELLS, winners, strict=False)
    ]  # fmt: skip
    results.replace_conflicts(db, audits.get_audit(db, audit).id, rows)


def test_differently_settled_conflicts_are_counted_and_listed_whichever_model_is_on_the_left(db: Database) -> None:
    save_imported_audit(db, "one", {"base": 0.1, "other": 0.1})
    save_imported_audit(db, "two", {"tuned": 0.1, "other": 0.1})
    _save_conflicts(db, "one", ("base", "other"), ["base", "base", "other", None, "base", None])
    _save_conflicts(db, "two", ("other", "tuned"), ["tuned", "other", "other", "other", None, None])
    comparison = compare_targets(db, [parse_target("one"), parse_target("two")], renamed_models={"base": "tuned"})
    assert [(p.first, p.second) for p in comparison.pairs] == [("one:base", "two:tuned"), ("one:other", "two:other")]
    [part] = comparison.settlements
    assert (part.shared, part.n, part.flipped) == (6, 3, 1)
    assert (part.only_first, part.only_second, part.neither) == (1, 1, 1)
    assert part.share.value == pytest.approx(1 / 3)
    assert [(flip.country, flip.topic, flip.first_winner, flip.second_winner) for flip in part.flips] == [
        (*CELLS[1], "base", "other")
    ]
    assert (
        compare_targets(db, [parse_target("one"), parse_target("two")], renamed_models={"base": "tuned"}, max_listed=0)
        .settlements[0]
        .not_listed
        == 1
    )


def test_the_share_of_different_outcomes_has_an_interval_over_countries_and_topics(db: Database) -> None:
    for name in ("one", "two"):
        save_imported_audit(db, name, {"a": 0.1, "b": 0.1})
    _save_conflicts(db, "one", ("a", "b"), ["a"] * 42)
    _save_conflicts(db, "two", ("a", "b"), ["b" if i % 5 == 0 else None if i % 9 == 1 else "a" for i in range(42)])
    [part] = compare_targets(db, [parse_target("one"), parse_target("two")]).settlements
    assert (part.n, part.flipped) == (38, 9)
    assert part.share.value == pytest.approx(9 / 38)
    assert part.share.n == 38
    assert part.share.resampled == ("country", "topic")


def test_a_human_decision_overrides_the_judges_in_a_comparison(db: Database) -> None:
    for name in ("one", "two"):
        save_imported_audit(db, name, {"a": 0.1, "b": 0.1})
        _save_conflicts(db, name, ("a", "b"), ["a"])
    audit, cell = audits.get_audit(db, "two").id, Cell(*CELLS[0])
    add_rating(db, audit, Rating(cell, "a", "b", 0.5, -0.5, "ann", Decision.RIGHT, NOW))
    [part] = compare_targets(db, [parse_target("one"), parse_target("two")]).settlements
    assert [(flip.first_by, flip.second_winner, flip.second_by) for flip in part.flips] == [("majority", "b", "person")]
