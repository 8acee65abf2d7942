"""Recommended models follow the tiers, over all countries and in each region."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from auditor.domain import CellScore
from auditor.reports.data.agreement.tiers import ALL_COUNTRIES, TierRanking, build_tier_rankings
from auditor.reports.data.report_source import load_source
from auditor.reports.sections.agreement import describe_preference
from auditor.storage.database import Database
from auditor.storage.records import load_records, replace_records
from tests.reports.conftest import save_scores
from tests.support.synthetic_audit import COUNTRIES, TOPICS

CELLS = [(c, t) for c in COUNTRIES[:24] for t in TOPICS[:8]]
WEST = ("Australia", "Germany", "Netherlands", "United States", "Canada", "France")


def rank_two_models(db: Database, worse_in: tuple[str, ...], share: float = 1.0) -> list[TierRanking]:
    """The tiers of two models over 24 countries by 8 topics.

    The error of `fair` has SD 0.25 everywhere; that of `local` has SD 0.7 in `worse_in` and 0.05 elsewhere. Only the
    first `share` of the cells have a score of `local`.
    """
    rng = np.random.default_rng(0)
    truth = {cell: float(rng.uniform(-0.6, 0.6)) for cell in CELLS}
    scores: dict[tuple[str, str, str], float | None] = {}
    for i, (cell, people) in enumerate(truth.items()):
        wide = 0.7 if cell[0] in worse_in else 0.05
        scores["fair", *cell] = float(np.clip(people + rng.normal(0, 0.25), -1, 1))
        is_scored = i < share * len(CELLS)
        scores["local", *cell] = float(np.clip(people + rng.normal(0, wide), -1, 1)) if is_scored else None
    return build_tier_rankings(save_scores(db, dict(truth), scores))


def test_regions_may_prefer_different_models(db: Database) -> None:
    parts = {(p.scope, p.by): p for p in rank_two_models(db, WEST)}
    assert set(parts) == {(ALL_COUNTRIES, "r"), (ALL_COUNTRIES, "MAE"), ("Western", "MAE"), ("Non-Western", "MAE")}
    assert "For Western countries, prefer fair" in describe_preference(parts["Western", "MAE"])
    assert "For Non-Western countries, prefer local" in describe_preference(parts["Non-Western", "MAE"])
    assert parts["Western", "MAE"].rows[0].model == "fair"
    assert [row.tier for row in parts["Western", "MAE"].rows] == [1, 2]


def test_indistinguishable_models_get_no_preference(db: Database) -> None:
    truth = {cell: float(np.random.default_rng(3).uniform(-0.6, 0.6)) for cell in CELLS}
    rng = np.random.default_rng(4)
    scores: dict[tuple[str, str, str], float | None] = {
        (model, *cell): float(np.clip(people + rng.normal(0, 0.2), -1, 1))
        for model in ("one", "other")
        for cell, people in truth.items()
    }
    tiers = build_tier_rankings(save_scores(db, dict(truth), scores))
    preference = describe_preference(next(p for p in tiers if p.scope == ALL_COUNTRIES and p.by == "MAE"))
    assert "may be the best as well" in preference
    assert "prefer" not in preference


def test_a_model_with_few_scores_is_not_ranked(db: Database) -> None:
    part = next(p for p in rank_two_models(db, WEST, share=0.5) if p.scope == ALL_COUNTRIES and p.by == "MAE")
    assert list(part.left_out) == ["local"]
    assert [row.model for row in part.rows] == ["fair"]


def rank_with_losses(db: Database, n_lost: int, lossy: str = "bad") -> TierRanking:
    """The ranking of a model near people and one with large errors, one of which lost samples in every cell."""
    rng = np.random.default_rng(5)
    truth = {cell: float(rng.uniform(-0.6, 0.6)) for cell in CELLS}
    scores: dict[tuple[str, str, str], float | None] = {}
    for (cell, people), (model, spread) in itertools.product(truth.items(), (("good", 0.05), ("bad", 0.4))):
        scores[model, *cell] = float(np.clip(people + rng.normal(0, spread), -1, 1))
    source = save_scores(db, dict(truth), scores)
    rows = [
        replace(row, n_ok=4, n_planned=4 + (n_lost if row.model == lossy else 0))
        for row in load_records(db, source.audit.id, CellScore)
    ]
    db.write(lambda connection: replace_records(connection, source.audit.id, CellScore, rows))
    rankings = build_tier_rankings(load_source(db, source.audit.name))
    return next(p for p in rankings if p.scope == ALL_COUNTRIES and p.by == "MAE")


@pytest.mark.parametrize(("lossy", "n_lost", "expected"), [("bad", 0, []), ("bad", 4, ["bad"]), ("good", 4, ["bad"])])
def test_a_model_that_lost_samples_could_show_to_be_closer_is_named(
    db: Database, lossy: str, n_lost: int, expected: list[str]
) -> None:
    ranking = rank_with_losses(db, n_lost, lossy)
    assert [row.may_be_best for row in ranking.rows] == [True, False]
    assert ranking.open_by_losses == expected
    assert ("prefer good" in describe_preference(ranking)) is (not expected)
