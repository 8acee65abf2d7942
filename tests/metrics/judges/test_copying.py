"""Judges that depend on each other: correlations of their errors by hand, and copies that are named."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import StratifiedTable

from auditor.metrics.intervals.estimate import ShareEstimate
from auditor.metrics.judges.copying import (
    Indices,
    are_copies,
    compare_errors,
    group_judges,
    joint_share,
    judge_pairs,
    median_of_others,
    pair_agreement,
    phi_at_odds_ratio,
    pooled_odds_ratio,
    pooled_phi,
    split_weights,
    sum_pairs,
)
from tests.support.known import known
from tests.support.rater_panels import CopyingWorld, Floats

NAN = float("nan")


def draw_errors(seed: int = 0) -> tuple[Floats, Indices, Indices]:
    """Errors of five judges, with missing verdicts, and the cell and stratum of each trace."""
    panel = CopyingWorld().draw(seed)
    errors = np.where(np.random.default_rng(seed).random(panel.verdicts.shape) < 0.1, NAN, panel.verdicts)
    return errors, panel.units["country"] * 8 + panel.units["topic"], panel.units["topic"]


def test_phi_in_one_stratum_is_pearsons_correlation() -> None:
    errors, cell, _ = draw_errors()
    phi = pooled_phi(sum_pairs(errors, cell, np.zeros(len(cell), dtype=np.intp)).totals())
    for value, (i, j) in zip(phi, judge_pairs(5), strict=True):
        shared = ~np.isnan(errors[i]) & ~np.isnan(errors[j])
        assert value == pytest.approx(np.corrcoef(errors[i, shared], errors[j, shared])[0, 1], abs=1e-12)


def test_phi_over_strata_is_the_correlation_of_deviations_from_the_stratum_means() -> None:
    errors, cell, stratum = draw_errors()
    phi = pooled_phi(sum_pairs(errors, cell, stratum).totals())
    for value, (i, j) in zip(phi, judge_pairs(5), strict=True):
        shared = ~np.isnan(errors[i]) & ~np.isnan(errors[j])
        pair = errors[np.ix_([i, j], shared)]
        for s in np.unique(stratum):
            pair[:, stratum[shared] == s] -= pair[:, stratum[shared] == s].mean(axis=1, keepdims=True)
        assert value == pytest.approx(pair[0] @ pair[1] / np.sqrt((pair**2).sum(axis=1).prod()), abs=1e-12)


def test_the_pooled_odds_ratio_is_that_of_statsmodels() -> None:
    errors, cell, stratum = draw_errors()
    ratios = pooled_odds_ratio(sum_pairs(errors, cell, stratum).totals())
    for ratio, (i, j) in zip(ratios, judge_pairs(5), strict=True):
        tables = [
            np.array(
                [[np.sum((errors[i] == a) & (errors[j] == b) & (stratum == s)) for b in (1, 0)] for a in (1, 0)],
                dtype=float,
            )
            for s in np.unique(stratum)
        ]
        assert ratio == pytest.approx(StratifiedTable(tables).oddsratio_pooled, rel=1e-9)


@pytest.mark.parametrize("odds_ratio", [0.2, 1.0, 1.0 + 1e-12, 4.0, 1e6])
def test_the_joint_share_has_its_odds_ratio(odds_ratio: float) -> None:
    p, q = np.array([0.1, 0.3, 0.8]), np.array([0.2, 0.3, 0.6])
    both = joint_share(p, q, np.full(3, odds_ratio))
    assert both * (1 - p - q + both) / ((p - both) * (q - both)) == pytest.approx(np.full(3, odds_ratio), rel=1e-3)
    assert joint_share(p, q, np.full(3, np.inf)) == pytest.approx(np.minimum(p, q))
    assert joint_share(p, q, np.zeros(3))[:2] == pytest.approx([0, 0])


def test_a_pair_with_the_odds_ratio_of_its_own_table_has_its_own_phi() -> None:
    errors, cell, _ = draw_errors()
    totals = sum_pairs(errors, cell, np.zeros(len(cell), dtype=np.intp)).totals()
    assert phi_at_odds_ratio(totals, pooled_odds_ratio(totals)) == pytest.approx(pooled_phi(totals), abs=1e-9)


@pytest.mark.parametrize("n_pairs", [1, 2, 3, 6, 10])
def test_the_median_leaves_out_the_pair_and_what_is_missing(n_pairs: int) -> None:
    values = np.random.default_rng(n_pairs).normal(size=(4, n_pairs)).round(1)
    values[1, 0] = values[2, -1] = NAN
    medians = median_of_others(values)
    for row, row_medians in zip(values, medians, strict=True):
        for pair in range(n_pairs):
            others = np.delete(row, pair)
            others = others[~np.isnan(others)]
            assert row_medians[pair] == pytest.approx(np.median(others) if len(others) else NAN, nan_ok=True)


def test_sums_without_a_cell_are_those_of_the_other_traces() -> None:
    errors, cell, stratum = draw_errors()
    cell = np.unique(cell, return_inverse=True)[1].ravel()
    sums = sum_pairs(errors, cell, stratum)
    blocks = np.concatenate(list(sums.without_each_cell()))
    assert len(blocks) == cell.max() + 1
    for number, left in enumerate(blocks):
        others = cell != number
        np.testing.assert_allclose(left, sum_pairs(errors[:, others], cell[others], stratum[others]).totals())


@pytest.mark.parametrize("copies", [(1, 2), (1, 2, 3), (4, 0)])
@pytest.mark.parametrize(
    "world",
    [
        CopyingWorld(),
        CopyingWorld(two_classes=True, difficulty=1.3),
        CopyingWorld(judge_by_topic=1.2),
        CopyingWorld(planted=False, lenient=(0.0, 1.0, 1.0, 0.0, 0.0)),
    ],
)
def test_exact_copies_are_named_and_nobody_else(world: CopyingWorld, copies: tuple[int, ...]) -> None:
    """In at least 95% of runs; of 20 runs, at least 17 (1% of the binomial distribution)."""
    pairs = {(min(pair), max(pair)) for pair in combinations(copies, 2)}
    compared = [compare_errors(*replace(world, copies=copies).draw(seed)) for seed in range(20)]
    results = [{(pair.first, pair.second) for pair in run if pair.is_more_alike} for run in compared]
    assert sum(pairs <= named for named in results) >= 17
    assert sum(bool(named - pairs) for named in results) <= 3


@pytest.mark.parametrize("n_traces", [240, 1000])
def test_honest_judges_with_shared_errors_are_never_copies(n_traces: int) -> None:
    """Two of five judges share training (phi of their errors 0.3 above the others'); nobody copies."""
    rng = np.random.default_rng(7)
    n_alike = 0
    for _ in range(20):
        common, family = rng.standard_normal((2, n_traces))
        noise = rng.standard_normal((5, n_traces))
        is_family = np.arange(5)[:, None] < 2
        latent = 0.2**0.5 * common + np.where(is_family, 0.45**0.5 * family + 0.35**0.5 * noise, 0.8**0.5 * noise)
        truth = (rng.random(n_traces) < 0.6).astype(float)
        verdicts = np.where(latent > 0.674, 1 - truth, truth)
        units = {"country": np.arange(n_traces) % 12, "topic": np.arange(n_traces) // 12 % 10}
        assert not any(are_copies(share) for share in pair_agreement(verdicts, units))
        n_alike += compare_errors(verdicts, truth, units)[0].is_more_alike
    assert n_alike >= (19 if n_traces == 1000 else 4)


def test_the_excess_is_the_phi_beyond_the_other_pairs() -> None:
    """By hand, in one stratum: with equal shares of errors both baselines are the median phi of the other pairs."""
    rng = np.random.default_rng(3)
    errors = np.stack([rng.permutation(np.arange(1000) < 300) for _ in range(4)]).astype(float)
    errors[1] = np.where(np.arange(1000) < 500, errors[0], errors[1])
    units = {"item": np.arange(1000)}
    pairs = compare_errors(errors, np.zeros(1000), units)
    phi = np.corrcoef(errors)[np.triu_indices(4, 1)]
    assert [pair.correlation for pair in pairs] == pytest.approx(phi.tolist())
    assert pairs[0].excess.value == pytest.approx(phi[0] - np.median(phi[1:]), abs=0.01)
    assert pairs[0].is_more_alike
    assert pairs[0].excess.resampled == ("item",)
    assert not any(pair.is_more_alike for pair in pairs[1:])


def test_labels_of_both_kinds_are_compared_apart() -> None:
    """Two lenient judges err on the same traces, those that are INVALID, without copying."""
    rng = np.random.default_rng(5)
    truth = (rng.random(1000) < 0.5).astype(float)
    chance = np.where(truth == 1, 0.95, [[0.6], [0.6], [0.1], [0.1], [0.1]])
    verdicts = (rng.random((5, 1000)) < chance).astype(float)
    units = {"country": rng.integers(0, 10, 1000), "topic": rng.integers(0, 8, 1000)}
    first = compare_errors(verdicts, truth, units)[0]
    pooled = np.corrcoef(verdicts[0] != truth, verdicts[1] != truth)[0, 1]
    assert pooled > 0.2
    assert first.correlation == pytest.approx(0, abs=0.1)
    assert not first.is_more_alike


def test_planted_faults_are_compared_within_each_kind() -> None:
    rng = np.random.default_rng(6)
    kinds = np.repeat(["sign", "norm"], 300)
    # Two judges miss one kind of fault, and the others miss both at the same rate.
    chance = np.where(kinds == "sign", [[0.6], [0.6], [0.3], [0.3], [0.3]], [[0.1], [0.1], [0.3], [0.3], [0.3]])
    verdicts = (rng.random((5, 600)) < chance).astype(float)
    units = {"country": rng.integers(0, 10, 600), "topic": rng.integers(0, 2, 600)}
    with_kinds, without = (compare_errors(verdicts, np.zeros(600), units, k)[0] for k in (kinds, None))
    assert without.is_more_alike
    assert not with_kinds.is_more_alike


def test_why_a_pair_cannot_be_compared() -> None:
    panel = CopyingWorld(traces=400).draw(0)
    few = panel.truth.copy()
    few[150:] = np.nan
    assert {pair.excess.reason for pair in compare_errors(panel.verdicts, few, panel.units)} == {
        "200 labelled traces are needed, but both judges have verdicts on 150"
    }
    perfect = panel.verdicts.copy()
    perfect[0] = 0
    pairs = compare_errors(perfect, panel.truth, panel.units)
    assert pairs[0].excess.reason == "each judge needs 10 errors and 10 right verdicts, but one has 0"
    assert pairs[0].correlation is None
    assert pairs[-1].excess.ci_low is not None
    [pair] = compare_errors(panel.verdicts[:2], panel.truth, panel.units)
    assert pair.excess.reason == "fewer than two other pairs of judges have enough labels and errors to compare with"
    assert compare_errors(panel.verdicts[:1], panel.truth, panel.units) == []
    with pytest.raises(ValueError, match="judges, traces"):
        compare_errors(panel.verdicts, panel.truth[1:], panel.units)


def test_the_interval_holds_for_all_pairs_together() -> None:
    """With more judges there are more pairs, so the interval of the same pair is wider."""
    panel = CopyingWorld(error_log_odds=(-1.2,) * 8, traces=800).draw(1)
    few, many = (compare_errors(panel.verdicts[:k], panel.truth, panel.units)[0].excess for k in (3, 8))
    assert many.generalizes_to == "other cells like these"
    assert known(many.ci_high) - known(many.ci_low) > known(few.ci_high) - known(few.ci_low)


def test_agreement_is_the_share_of_equal_verdicts() -> None:
    panel = CopyingWorld(copies=(0, 1)).draw(0)
    verdicts = np.where(np.random.default_rng(0).random(panel.verdicts.shape) < 0.2, np.nan, panel.verdicts)
    shares = pair_agreement(verdicts, panel.units)
    for share, (i, j) in zip(shares, judge_pairs(5), strict=True):
        shared = ~np.isnan(verdicts[i] + verdicts[j])
        assert share.n == shared.sum()
        assert share.value == pytest.approx((verdicts[i] == verdicts[j])[shared].mean())
        assert share.resampled == ("country", "topic")
    assert [are_copies(share) for share in shares] == [True] + [False] * 9


@pytest.mark.parametrize(("value", "n", "is_one"), [(0.99, 200, True), (1.0, 199, False), (0.989, 5000, False)])
def test_the_convention(value: float, n: int, is_one: bool) -> None:
    assert are_copies(ShareEstimate(value, n, reason="none")) is is_one


def test_groups_are_connected_judges_with_one_vote_each() -> None:
    groups = group_judges(6, [(0, 2), (2, 5), (3, 4)])
    assert groups == [[0, 2, 5], [1], [3, 4]]
    assert split_weights(groups) == pytest.approx([1 / 3, 1, 1 / 3, 1 / 2, 1 / 2, 1 / 3])
    assert group_judges(3, []) == [[0], [1], [2]]
