"""Replays of less than everything: against counts by hand, over random subsets, and when to stop asking."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from auditor.metrics.intervals.correlation import pearson
from auditor.metrics.judges.votes import settle
from auditor.metrics.people import savings
from auditor.metrics.people.savings import (
    FIRST_INTERIM_LOOK,
    CompleteAudit,
    SamplingPlan,
    draw_subset_means,
    estimate_over_subsets,
    is_narrow,
    is_settled,
    next_interim_look,
    peer_agreement_rates,
    replay_audit,
    stratified_order,
    subset_standard_error,
)
from tests.support.known import known

MODELS, CELLS, K = 4, 30, 5
MAY = ~np.eye(MODELS, dtype=np.bool_)
NAN = float("nan")


@pytest.fixture
def data() -> CompleteAudit:
    rng = np.random.default_rng(2)
    truth = rng.uniform(-1, 1, CELLS)
    samples = truth[None, :, None] + rng.normal(0, 0.3, (MODELS, CELLS, 1)) + rng.normal(0, 0.1, (MODELS, CELLS, K))
    samples[0, 3, :4] = np.nan
    simulated_verdicts = (rng.random((MODELS, MODELS, CELLS, K)) < 0.7).astype(np.float32)
    simulated_verdicts[
        ~np.broadcast_to(MAY.T[:, :, None, None], simulated_verdicts.shape) | np.isnan(samples)[None]
    ] = np.nan
    return CompleteAudit(samples, simulated_verdicts, MAY, truth, [(i % 3, i % 5) for i in range(CELLS)])


def test_everything_is_everything(data: CompleteAudit) -> None:
    full = replay_audit(data, SamplingPlan("everything"), 0.38, seed=1)
    assert (full.direct, full.review) == (MODELS * CELLS * K, 3 * (MODELS * CELLS * K - 4))
    assert full.scores == pytest.approx(np.nanmean(data.samples, axis=2), nan_ok=True)
    assert full.variances[1] == pytest.approx(data.samples[1].var(axis=1, ddof=1))
    assert peer_agreement_rates(full.counted_verdicts) == pytest.approx(
        [np.nanmean(data.verdicts[:, i]) for i in range(MODELS)]
    )


def test_winners_are_those_of_the_panel(data: CompleteAudit) -> None:
    full = replay_audit(data, SamplingPlan("everything"), 0.38, seed=1)
    scores, winners = np.nanmean(data.samples, axis=2), []
    for i in range(MODELS):
        for j in range(i + 1, MODELS):
            for cell in np.nonzero(np.abs(scores[i] - scores[j]) >= 0.38)[0]:
                judges = [judge for judge in range(MODELS) if judge not in (i, j)]
                rates = [[np.nanmean(data.verdicts[judge, side, cell]) for side in (i, j)] for judge in judges]
                won = settle(sum(a > b + 1e-9 for a, b in rates), sum(a < b - 1e-9 for a, b in rates), len(judges))
                winners.append({"left": 1, "right": -1, None: 0}[won])
    assert full.winners.tolist() == winners
    assert set(winners) == {1, 0, -1}


def test_fewer_judges_have_equal_shares_and_leave_scores_alone(data: CompleteAudit) -> None:
    full, part = (replay_audit(data, SamplingPlan("", judges_per_trace=m), 0.38, seed=1) for m in (None, 1))
    assert (part.direct, part.review) == (full.direct, MODELS * CELLS * K - 4)
    assert part.scores == pytest.approx(full.scores, nan_ok=True)
    n_verdicts = (~np.isnan(part.counted_verdicts)).sum(axis=(2, 3))
    assert n_verdicts[MAY.T].max() - n_verdicts[MAY.T].min() <= 4  # the four that failed


def test_adaptive_panels_ask_less_and_say_the_same(data: CompleteAudit) -> None:
    full, part = (replay_audit(data, SamplingPlan("", adaptive=a), 0.38, seed=1) for a in (False, True))
    assert part.winners.tolist() == full.winners.tolist()
    always = 2 * (MODELS * CELLS * K - 4)
    assert (~np.isnan(part.counted_verdicts)).sum() == always
    assert always < part.review < full.review
    calm = replay_audit(
        data, SamplingPlan("", adaptive=True), 9.0, seed=1
    )  # no conflicts: only traces that two judges left open
    first = np.where(np.isnan(calm.counted_verdicts), 0, calm.counted_verdicts).sum(axis=0)
    assert calm.review == always + int(((first == 1) & ~np.isnan(data.samples)).sum())


def test_a_cell_is_sampled_until_its_samples_agree(data: CompleteAudit) -> None:
    part = replay_audit(data, SamplingPlan("", tolerance=0.05), 0.38, seed=1)
    taken = 0
    for model in range(MODELS):
        for cell in range(CELLS):
            for n in range(3, K + 1):
                ok = data.samples[model, cell, :n]
                ok = ok[~np.isnan(ok)]
                if n == K or (len(ok) > 1 and ok.std(ddof=1) / len(ok) ** 0.5 <= 0.05):
                    taken += n
                    assert part.scores[model, cell] == pytest.approx(ok.mean(), nan_ok=True)
                    break
    assert part.direct == taken
    assert np.isnan(part.counted_verdicts[..., 3:]).all()


def test_cells_are_asked_until_intervals_are_narrow(data: CompleteAudit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.metrics.people.savings.FIRST_INTERIM_LOOK", 10)
    few, all_ = (replay_audit(data, SamplingPlan("", target_width=w), 0.38, seed=1) for w in (0.9, 0.001))
    reached = ~np.isnan(few.scores[1])
    assert 10 <= reached.sum() < CELLS
    assert few.direct == MODELS * K * reached.sum()
    assert all_.direct == MODELS * K * CELLS


def test_a_mean_of_all_samples_is_the_score_and_failures_stay_out() -> None:
    rng = np.random.default_rng(0)
    values = np.array([[0.1, 0.3, np.nan], [np.nan, np.nan, np.nan]])
    [subset_means] = draw_subset_means(values, 3, 1, rng)
    assert subset_means[0] == pytest.approx(0.2)
    assert np.isnan(subset_means[1])
    ones = draw_subset_means(values, 1, 600, rng)[:, 0]
    assert set(np.round(ones[~np.isnan(ones)], 6)) == {0.1, 0.3}
    assert np.isnan(ones).mean() == pytest.approx(1 / 3, abs=0.07)  # a failed sample may be the one that is drawn


def test_many_subsets_at_once_are_the_subsets_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).normal(size=(30, 5))
    values[::4, 2], values[3] = np.nan, np.nan
    expected = []
    rng = np.random.default_rng(2)
    for _ in range(20):
        drawn = np.take_along_axis(values, rng.random(values.shape).argsort(axis=1)[:, :3], axis=1)
        n_usable = (~np.isnan(drawn)).sum(axis=1)
        expected.append(np.where(n_usable > 0, np.nansum(drawn, axis=1) / np.maximum(n_usable, 1), np.nan))
    for max_values in (10, 1000, 1_000_000):
        monkeypatch.setattr(savings, "MAX_DRAWN_VALUES", max_values)
        np.testing.assert_array_equal(draw_subset_means(values, 3, 20, np.random.default_rng(2)), expected)


def test_a_missing_figure_or_range_has_a_reason() -> None:
    assert "too few cells" in str(estimate_over_subsets([np.nan, np.nan], 9, 0.5, (-1.0, 1.0)).reason)
    single = estimate_over_subsets([0.4], 9, 0.0, (-1.0, 1.0))
    assert (single.value, single.n, single.ci_low) == (0.4, 9, None)
    assert single.reason


def test_the_range_is_widened_for_the_samples_left_out_and_stays_in_its_bounds() -> None:
    figures = np.linspace(0.4, 0.6, 101)
    half = estimate_over_subsets(figures, 9, 0.25, (-1.0, 1.0))
    assert (half.ci_low, half.ci_high) == pytest.approx((0.5 - 2 * 0.095, 0.5 + 2 * 0.095))
    assert half.generalizes_to == "other samples of the same cells"
    assert estimate_over_subsets(figures, 9, 0.01, (0.0, 1.0)).ci_low == 0.0


def test_the_standard_error_pools_the_cells_with_two_samples() -> None:
    scores = np.array([[0.0, 0.2, np.nan], [0.5, np.nan, np.nan], [0.1, 0.5, np.nan]])
    assert subset_standard_error(scores, 4) == pytest.approx(np.sqrt((0.02 + 0.08) / 2 / 4))
    assert subset_standard_error(scores[1:2], 4) is None


@pytest.mark.parametrize(
    ("scores", "tolerance", "settled"),
    [
        ([], 1.0, False),
        ([0.5], 1.0, False),
        ([0.5, NAN], 1.0, False),
        ([0.5, 0.5], 0.001, True),
        ([0.0, 0.2], 0.1, True),  # s = 0.1414, s / sqrt(2) = 0.1
        ([0.0, 0.2], 0.099, False),
        ([0.0, 0.2, NAN, 0.1], 0.0578, True),  # 0.1 / sqrt(3)
        ([0.0, 0.2, NAN, 0.1], 0.0577, False),
    ],
)
def test_a_cell_is_settled_by_the_error_of_its_mean(scores: list[float], tolerance: float, settled: bool) -> None:
    assert is_settled(scores, tolerance) is settled


def test_intervals_are_narrow_when_the_widest_is() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=100)
    near, far = truth + 0.3 * rng.normal(size=100), truth + 2 * rng.normal(size=100)
    r = pearson(far, truth)
    width = known(r.ci_high) - known(r.ci_low)
    assert is_narrow([near, far], truth, width)
    assert not is_narrow([near, far], truth, width - 1e-9)
    assert is_narrow([near], truth, width - 1e-9)
    assert not is_narrow([near, np.full(100, NAN)], truth, 2)
    assert not is_narrow([], truth, 2)


def test_looks_are_a_fifth_apart_and_end_at_the_last_cell() -> None:
    looks = [next_interim_look(0, 200)]
    while looks[-1] < 200:
        looks.append(next_interim_look(looks[-1], 200))
    assert looks == [FIRST_INTERIM_LOOK, 77, 93, 112, 135, 162, 195, 200]
    assert next_interim_look(0, 10) == next_interim_look(10, 10) == 10


def test_every_first_part_has_its_share_of_each_stratum() -> None:
    strata = ["a"] * 60 + ["b"] * 30 + ["c"] * 10
    order = stratified_order(strata, seed=4)
    assert sorted(order) == list(range(100))
    for n in range(1, 101):
        counts = Counter(strata[i] for i in order[:n])
        assert all(abs(counts[s] - n * strata.count(s) / 100) <= 2 for s in "abc")
    assert (stratified_order(strata, seed=4) == order).all()
    assert (stratified_order(strata, seed=5) != order).any()
    assert len(stratified_order([], seed=1)) == 0
