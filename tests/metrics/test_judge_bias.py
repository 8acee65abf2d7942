from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.judge_bias import (
    difference_of_paired_shares,
    difference_of_shares,
    leniency,
    order_effect,
    self_preference,
    verbosity_bias,
    verdict_drift,
)

NAN = float("nan")


def test_newcombes_own_examples() -> None:
    # Newcombe 1998, table II, method 10: contrasts (a) to (d).
    for counts, low, high in (
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((10, 10, 0, 10), 0.6075, 1.0),
        ((5, 56, 0, 29), -0.0381, 0.1926),
    ):
        difference = difference_of_shares(*counts)
        assert difference.ci_low == pytest.approx(low, abs=5e-5)
        assert difference.ci_high == pytest.approx(high, abs=5e-5)


def test_paired_shares_that_are_unrelated_have_the_interval_of_unpaired_ones() -> None:
    paired, unpaired = difference_of_paired_shares(12, 18, 8, 12), difference_of_shares(30, 50, 20, 50)
    assert (paired.value, paired.ci_low, paired.ci_high) == (unpaired.value, unpaired.ci_low, unpaired.ci_high)
    related = difference_of_paired_shares(20, 10, 0, 20)
    assert related.value == pytest.approx(0.2)
    assert related.ci_low is not None
    assert unpaired.ci_low is not None
    assert related.ci_low > unpaired.ci_low


def test_the_paired_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(6)
    held, runs, n = 0, 600, 40
    for _ in range(runs):
        shared = rng.random(n) < 0.4
        first, second = (np.where(shared, rng.random(n) < 0.9, rng.random(n) < p) for p in (0.5, 0.2))
        cases = [
            int((a & b).sum()) for a, b in ((first, second), (first, ~second), (~first, second), (~first, ~second))
        ]
        difference = difference_of_paired_shares(*cases)
        assert difference.ci_low is not None
        assert difference.ci_high is not None
        held += difference.ci_low <= 0.6 * 0.3 <= difference.ci_high
    assert 0.93 <= held / runs <= 0.99


def test_leniency_is_the_paired_difference_from_the_others() -> None:
    rng = np.random.default_rng(1)
    table = (rng.random((3, 40)) < 0.5).astype(float)
    table[0, :5] = NAN
    judge_leniency = leniency(table)[0]
    expected = table[0, 5:] - table[1:, 5:].mean(axis=0)
    t = stats.ttest_1samp(expected, 0).confidence_interval()
    assert judge_leniency.value == pytest.approx(expected.mean())
    assert judge_leniency.ci_low == pytest.approx(t.low)
    assert judge_leniency.ci_high == pytest.approx(t.high)
    assert judge_leniency.n == 35


def test_self_preference_is_welchs_difference_from_judges_of_other_families() -> None:
    rng = np.random.default_rng(2)
    table = (rng.random((3, 60)) < 0.6).astype(float)
    is_own_trace = np.zeros((3, 60), dtype=bool)
    is_own_trace[0, :20] = is_own_trace[1, :20] = True  # the first two judges are of the first author's kind
    preference = self_preference(table, is_own_trace)[0]
    own_differences = table[0, :20] - table[2, :20]
    other_differences = table[0, 20:] - table[1:, 20:].mean(axis=0)
    t = stats.ttest_ind(own_differences, other_differences, equal_var=False).confidence_interval()
    assert preference.value == pytest.approx(own_differences.mean() - other_differences.mean())
    assert preference.ci_low == pytest.approx(t.low)
    assert preference.ci_high == pytest.approx(t.high)


@pytest.mark.parametrize("effect", [0.0, 0.2, -0.3])
def test_intervals_hold_a_planted_effect_about_as_often_as_they_say(effect: float) -> None:
    """A judge that errs on 15%, milder with the exposed half by `effect`, among four honest ones of unlike traces."""
    rng = np.random.default_rng(3)
    held = {"preference": 0, "order": 0, "verbosity": 0}
    runs, traces = 200, 300
    for _ in range(runs):
        quality = rng.uniform(0.35, 0.65, traces)
        exposed = np.arange(traces) % 2 == 0
        chance = np.tile(quality, (5, 1))
        chance[0] += effect * exposed
        table = (rng.random((5, traces)) < chance).astype(float)
        table[1:, :][rng.random((4, traces)) < 0.1] = NAN
        is_own_trace = np.zeros((5, traces), dtype=bool)
        is_own_trace[0] = exposed
        times = np.tile(np.where(exposed, 1.0, 0.0), (5, 1))
        for name, bias in (
            ("preference", self_preference(table, is_own_trace)[0]),
            ("order", order_effect(table, times)[0]),
            ("verbosity", verbosity_bias(table, exposed)[0]),
        ):
            assert bias.ci_low is not None
            assert bias.ci_high is not None
            held[name] += bias.ci_low <= effect <= bias.ci_high
    assert all(0.9 <= n / runs <= 0.99 for n in held.values()), held


def test_drift_is_paired() -> None:
    before = np.array([1, 1, 0, 0, 1, 0, NAN, 1.0])
    after = np.array([1, 0, 0, 1, 1, 1, 1, NAN])
    drift = verdict_drift(before, after)
    assert drift.value == pytest.approx(1 / 6)
    assert drift.n == 6


def test_what_cannot_be_measured_says_why() -> None:
    assert leniency([[1.0, 1.0]])[0].value is None
    assert leniency([[1.0] * 9, [0.0] * 9])[0].reason == "the same on every trace: no interval"
    assert self_preference([[1.0, 0.0], [1.0, 1.0]], np.zeros((2, 2)))[0].value is None
    assert verbosity_bias([[1.0, 0.0]], [1, NAN])[0].reason == "one side has no verdict"
    assert verdict_drift([NAN], [1.0]).value is None
    with pytest.raises(ValueError, match="table"):
        leniency([1.0, 0.0])
    values = [difference_of_shares(k, 10, 5, 10).value for k in range(11)]
    assert all(a is not None and b is not None and a < b for a, b in pairwise(values))


def test_intervals_over_cells_hold_where_traces_of_a_cell_hang_together() -> None:
    """A judge that is harsh or mild on whole cells, as much as it is the other way on others: it leans to nothing."""
    rng, runs, cells, each = np.random.default_rng(5), 150, 40, 12
    names = ("leniency", "preference", "order")
    held, n_excluding_truth = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    cell = np.repeat(np.arange(cells), each)
    for _ in range(runs):
        taste = rng.choice([-0.35, 0.35], cells)
        chance = np.full((4, cells * each), 0.5)
        chance[0] += taste[cell]
        table = (rng.random(chance.shape) < chance).astype(float)
        is_own_trace = np.tile(cell < cells // 2, (4, 1)) & (np.arange(4) == 0)[:, None]
        moments = np.tile(cell.astype(float), (4, 1))
        for counted, of in ((held, cell), (n_excluding_truth, None)):
            biases = (
                leniency(table, of)[0],
                self_preference(table, is_own_trace, of)[0],
                order_effect(table, moments, of)[0],
            )
            for name, bias in zip(names, biases, strict=True):
                assert bias.ci_low is not None
                assert bias.ci_high is not None
                counted[name] += bias.ci_low <= 0 <= bias.ci_high
    assert all(0.9 <= n / runs <= 0.99 for n in held.values()), held
    assert all(n / runs < 0.8 for n in n_excluding_truth.values()), n_excluding_truth


def test_one_trace_a_cell_is_students_interval_and_verbosity_is_over_cells_too() -> None:
    rng = np.random.default_rng(6)
    table = (rng.random((3, 40)) < 0.5).astype(float)
    one, other = leniency(table, np.arange(40))[0], leniency(table)[0]
    assert (one.value, one.ci_low, one.ci_high) == pytest.approx((other.value, other.ci_low, other.ci_high))
    longer = np.tile([1.0, 0.0], 20)
    wordy = verbosity_bias(table, longer, np.arange(40) // 4)[0]
    assert wordy.value == pytest.approx(verbosity_bias(table, longer)[0].value)
    assert wordy.ci_low is not None
    few = verbosity_bias(table, longer, np.arange(40) // 20)[0]
    assert (few.ci_low, few.reason) == (None, "fewer than 5 cells on one side")
    assert leniency([[1.0] * 9, [0.0] * 9], np.arange(9))[0].reason == "the same in every cell: no interval"
