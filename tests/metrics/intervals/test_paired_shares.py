"""Differences of paired shares: intervals over countries and topics, by the jackknife or Bonett and Price."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.metrics.intervals.paired import (
    PairedTable,
    pair_verdicts,
    paired_difference_over_units,
    paired_differences_over_units,
)

Floats = NDArray[np.float64]
Units = dict[str, NDArray[np.intp]]
NAN = float("nan")


def _units(n_countries: int, n_topics: int) -> Units:
    return {"country": np.repeat(np.arange(n_countries), n_topics), "topic": np.tile(np.arange(n_topics), n_countries)}


def _verdict_pairs(
    rng: np.random.Generator, n_countries: int, n_topics: int, shift: float, mean: float = 0.5
) -> tuple[Floats, Floats]:
    """Verdicts before and after a change whose effect differs between topics and countries."""
    country, topic, topic_shift, country_shift = (
        rng.normal(size=shape) for shape in ((n_countries, 1), (1, n_topics), (1, n_topics), (n_countries, 1))
    )
    trace, first, second = rng.normal(size=(3, n_countries, n_topics))
    quality = mean + 0.4 * country + 0.6 * topic + trace
    before = quality + first > 0
    after = quality + shift + 0.6 * topic_shift + 0.4 * country_shift + second > 0
    return before.ravel().astype(float), after.ravel().astype(float)


def test_the_interval_is_the_jackknifes_over_countries_and_topics() -> None:
    units = _units(8, 7)
    before, after = _verdict_pairs(np.random.default_rng(1), 8, 7, -0.5)
    result = paired_difference_over_units(pair_verdicts(before, after, units))

    def variance(labels: NDArray[np.intp]) -> float:
        left_out = np.array([(after - before)[labels != unit].mean() for unit in np.unique(labels)])
        k = len(left_out)
        return float((k - 1) / k * ((left_out - left_out.mean()) ** 2).sum())

    by_country, by_topic = variance(units["country"]), variance(units["topic"])
    total = max(by_country + by_topic - variance(np.arange(56)) / 2, by_country, by_topic)
    difference, half_width = (after - before).mean(), stats.t.ppf(0.975, 6) * total**0.5
    assert result.value == pytest.approx(difference)
    ends = (result.ci_low, result.ci_high)
    assert ends == pytest.approx((difference - half_width, difference + half_width), abs=1e-9)
    assert result.p_value == pytest.approx(2 * stats.t.sf(abs(difference) / total**0.5, 6))
    assert (result.n, result.resampled) == (56, ("country", "topic"))


def test_a_difference_of_all_cases_has_bonett_and_prices_interval_with_each_unit_as_one_case() -> None:
    result = paired_difference_over_units(pair_verdicts(np.ones(60), np.zeros(60), _units(10, 6)))
    # 6 cases, one gained and one lost added: (1 - 7) / 8, with variance (8/8 - (6/8)²) / 8.
    half_width = stats.t.ppf(0.975, 5) * ((1 - 0.75**2) / 8) ** 0.5
    assert (result.value, result.ci_low) == (-1.0, -1.0)
    assert result.ci_high == pytest.approx(-0.75 + half_width)


def test_where_no_verdict_changed_the_interval_is_around_0() -> None:
    before, _ = _verdict_pairs(np.random.default_rng(3), 10, 6, 0.0)
    estimate = paired_difference_over_units(pair_verdicts(before, before, _units(10, 6)))
    assert estimate.value == 0
    assert estimate.ci_low is not None
    assert estimate.ci_high is not None
    assert -estimate.ci_low == pytest.approx(estimate.ci_high)
    assert 0.1 < estimate.ci_high < 0.6


def test_other_rows_say_how_many_cases_are_independent() -> None:
    rng, units = np.random.default_rng(4), _units(20, 10)
    tables = [pair_verdicts(*_verdict_pairs(rng, 20, 10, -1.0), units) for _ in range(4)]
    unchanged = pair_verdicts(np.ones(200), np.ones(200), units)
    pooled, single = paired_differences_over_units([*tables, unchanged])[-1], paired_difference_over_units(unchanged)
    assert pooled.ci_high is not None
    assert single.ci_high is not None
    assert pooled.ci_high < single.ci_high / 2


@pytest.mark.parametrize(("mean", "shift"), [(0.5, 0.0), (1.0, -2.5), (2.5, -0.5)])
def test_intervals_cover_other_countries_and_topics(mean: float, shift: float) -> None:
    independent = [_verdict_pairs(np.random.default_rng(10**6 + s), 1, 1, shift, mean) for s in range(20_000)]
    truth = float(np.mean([after - before for before, after in independent]))
    hits, units = 0, _units(20, 10)
    for seed in range(300):
        pair = _verdict_pairs(np.random.default_rng(seed), 20, 10, shift, mean)
        estimate = paired_difference_over_units(pair_verdicts(*pair, units))
        assert estimate.ci_low is not None
        assert estimate.ci_high is not None
        hits += estimate.ci_low <= truth <= estimate.ci_high
    assert hits / 300 > 0.92


def test_without_enough_units_there_is_a_reason() -> None:
    few = paired_difference_over_units(pair_verdicts(np.ones(40), np.zeros(40), _units(10, 4)))
    assert (few.value, few.ci_low, few.p_value) == (-1.0, None, None)
    assert "but there are 4 topics" in str(few.reason)
    none = paired_difference_over_units(pair_verdicts([NAN, 1.0], [1.0, NAN], {"item": [1, 2]}))
    assert (none.value, none.reason) == (None, "nothing to compare")


def test_verdicts_without_a_partner_are_left_out() -> None:
    table = pair_verdicts([1, 0, NAN, 1, 1], [0, 1, 1, NAN, 1], {"item": range(5)})
    assert [np.asarray(column).tolist() for column in table[:3]] == [
        [False, True, False, False, False], [True, False, False, False, False], [True, True, False, False, True],
    ]  # fmt: skip


def test_malformed_input_raises() -> None:
    with pytest.raises(ValueError, match="one shape"):
        paired_difference_over_units(PairedTable([1, 0], [0], [1], {"item": [1]}))
    with pytest.raises(ValueError, match="at most the totals"):
        paired_difference_over_units(PairedTable([1], [1], [1], {"item": [1]}))
