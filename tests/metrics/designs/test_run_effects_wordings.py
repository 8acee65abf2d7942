"""Figures of means over wordings: the variance over wordings is added, with Satterthwaite's degrees of freedom."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.designs.run_effects import error_of_one_wording, widen_for_wordings
from auditor.metrics.intervals.two_way import crossed_jackknife
from auditor.metrics.people.alignment import BIAS, MAE
from tests.support.two_way_tables import World


def test_the_variance_over_wordings_is_added_by_hand() -> None:
    w = World(3, 9, 7)
    shifts = np.array([-0.2, 0.0, 0.1, 0.3])
    scores = w.first + shifts[:, None]
    plain = crossed_jackknife(BIAS, scores.mean(axis=0), w.truth, w.countries, w.topics)
    wide = widen_for_wordings(plain, BIAS, scores, w.truth)
    assert plain.interval is not None
    assert plain.interval.std_error is not None
    of_places, of_wordings = plain.interval.std_error**2, shifts.var(ddof=1) / 4
    df = int((of_places + of_wordings) ** 2 / (of_places**2 / 6 + of_wordings**2 / 3))
    half = stats.t.ppf(0.975, df) * (of_places + of_wordings) ** 0.5
    assert wide.value == plain.value
    assert wide.ci_low == pytest.approx(wide.value - half)
    assert wide.ci_high == pytest.approx(wide.value + half)
    assert wide.resampled == ("country", "topic", "wording")
    assert wide.generalizes_to == "other countries and topics and wordings like these"


def test_equal_wordings_add_nothing_and_one_is_not_enough() -> None:
    w = World(5, 8, 6)
    plain = crossed_jackknife(MAE, w.first, w.truth, w.countries, w.topics)
    same = widen_for_wordings(plain, MAE, np.stack([w.first] * 3), w.truth)
    assert (same.ci_low, same.ci_high) == pytest.approx((plain.ci_low, plain.ci_high))
    assert widen_for_wordings(plain, MAE, w.first[None], w.truth) is plain


def test_one_wording_errs_more_than_the_mean_of_several() -> None:
    w = World(6, 10, 8)
    scores = w.first + 0.3 * np.random.default_rng(0).normal(size=(5, len(w.first)))
    scores[0, 3] = np.nan
    one = error_of_one_wording(scores, w.truth, w.countries, w.topics)
    is_complete = ~np.isnan(scores).any(axis=0)
    assert one.value == pytest.approx(np.abs(scores - w.truth)[:, is_complete].mean())
    assert one.value > np.abs(scores.mean(axis=0) - w.truth)[is_complete].mean()
    assert one.n == len(w.first) - 1
    assert one.resampled == ("country", "topic", "wording")
