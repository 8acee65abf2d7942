from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.intervals.correlation import pearson
from auditor.metrics.people import holdout
from auditor.metrics.people.holdout import cross_validate_peer_agreement
from auditor.metrics.people.over_models import average_families
from tests.support.known import known


def made_up(rng: np.random.Generator, models: int, effect: float, cells: int = 100):  # type: ignore[no-untyped-def]
    """Models whose noise decides on their r; peers see it as far as `effect` says."""
    truth = rng.normal(0, 0.5, cells)
    noise = rng.uniform(0.1, 1.5, models)
    scores = truth + rng.normal(0, 1, (models, cells)) * noise[:, None]
    worse = (noise - 0.8) / 0.7
    chance = np.clip(0.6 - 0.3 * effect * worse - 0.3 * (1 - effect) * rng.uniform(-1, 1, models), 0.05, 0.95)
    peer_scores = np.full((models, cells), 6.0)
    return (
        rng.binomial(6, np.broadcast_to(chance[:, None], peer_scores.shape)).astype(float), peer_scores, scores,
        truth,
    )  # fmt: skip


def test_peers_who_know_are_found_to_and_peers_who_do_not_are_not() -> None:
    rng = np.random.default_rng(1)
    result = cross_validate_peer_agreement(*made_up(rng, 30, 1.0), n_splits=100)
    assert result.models == 30
    assert known(result.unseen_cells.ci_low) > 0
    assert known(result.gain.ci_low) > 0
    misled = 0
    for _ in range(40):
        nothing = cross_validate_peer_agreement(*made_up(rng, 15, 0.0), n_splits=30).unseen_cells
        misled += not known(nothing.ci_low) <= 0 <= known(nothing.ci_high)
    assert misled <= 5


def test_it_is_the_same_every_time_and_follows_the_seed() -> None:
    data = made_up(np.random.default_rng(2), 8, 1.0)
    assert cross_validate_peer_agreement(*data, n_splits=20, seed=3) == cross_validate_peer_agreement(
        *data, n_splits=20, seed=3
    )
    assert cross_validate_peer_agreement(*data, n_splits=20, seed=3) != cross_validate_peer_agreement(
        *data, n_splits=20, seed=4
    )


@pytest.mark.parametrize("families", [None, ["a"] * 3 + ["b"] * 2 + [None] * 4])
def test_all_splits_at_once_are_the_splits_one_by_one(
    families: list[str | None] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdout, "MAX_BLOCK_VALUES", 100)
    valid, totals, scores, truth = made_up(np.random.default_rng(5), 9, 1.0)
    scores[2, ::3], totals[1, :5], valid[1, :5], scores[4, 7:] = np.nan, 0, 0, 0.25
    rng, correlations = np.random.default_rng(11), []
    for _ in range(60):
        held_out = np.zeros(len(truth), dtype=bool)
        held_out[rng.choice(len(truth), max(3, round(0.2 * len(truth))), replace=False)] = True
        rates = valid[:, ~held_out].sum(axis=1) / totals[:, ~held_out].sum(axis=1)
        people = [pearson(model_scores[held_out], truth[held_out]).value for model_scores in scores]
        means = [average_families(np.array(v, dtype=float), families or [None] * 9) for v in (rates, people)]
        if (r := pearson(*means).value) is not None:
            correlations.append(r)
    result = cross_validate_peer_agreement(valid, totals, scores, truth, families=families, n_splits=60, seed=11)
    assert result.splits == len(correlations) > 50
    assert result.unseen_cells.value == pytest.approx(np.mean(correlations), abs=1e-12)


def test_families_are_averaged_and_few_models_have_no_interval() -> None:
    data = made_up(np.random.default_rng(2), 12, 1.0)
    families = ["a"] * 4 + ["b"] * 3 + [None] * 5
    by_family, by_model = (cross_validate_peer_agreement(*data, families=f, n_splits=50) for f in (families, None))
    assert (by_family.models, by_family.unseen_cells.n, by_family.error.n) == (12, 7, 7)
    assert by_family.unseen_cells.reason == "too few model families: an interval needs at least 8"
    assert by_family.error.generalizes_to == "other model families like these"
    assert by_model.unseen_cells.generalizes_to == "other models like these"
    assert by_model == cross_validate_peer_agreement(*data, families=[str(i) for i in range(12)], n_splits=50)


def test_too_little_says_why() -> None:
    data = made_up(np.random.default_rng(2), 3, 1.0)
    assert "fewer than 4 models" in str(cross_validate_peer_agreement(*data).unseen_cells.reason)
    few = cross_validate_peer_agreement(*made_up(np.random.default_rng(2), 8, 1.0, cells=3))
    assert few.unseen_cells.value is None
    assert "too few splits" in str(few.unseen_cells.reason)
    with pytest.raises(ValueError, match="alike"):
        cross_validate_peer_agreement(np.ones((2, 2)), np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2))
