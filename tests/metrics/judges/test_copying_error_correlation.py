from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import StratifiedTable

from auditor.metrics.judges.copying import (
    Indices,
    joint_share,
    judge_pairs,
    median_of_others,
    phi_at_odds_ratio,
    pooled_odds_ratio,
    pooled_phi,
    sum_pairs,
)
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
