from __future__ import annotations

import math

import krippendorff
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats import inter_rater

from auditor.metrics.intervals.jackknife_interval import CONSTANT_REASON, UNDEFINED_REASON
from auditor.metrics.judges.agreement import (
    MeasurementLevel,
    count_ratings,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    leave_one_rater_out,
)
from tests.support.hand_jackknife import jackknife_variance, two_way_variance
from tests.support.known import known

Floats = NDArray[np.float64]
NAN = float("nan")

# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), part C: 4 observers, 12 units, published
# alphas .743 (nominal), .815 (ordinal), .849 (interval). The last unit has one rating.
PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]


def _panel(seed: int, raters: int = 5, items: int = 60, categories: int = 4, missing: float = 0.0) -> Floats:
    rng = np.random.default_rng(seed)
    truth = rng.integers(categories, size=items)
    ratings = np.where(rng.random((raters, items)) < 0.6, truth, rng.integers(categories, size=(raters, items)))
    table: Floats = np.where(rng.random((raters, items)) < missing, np.nan, ratings.astype(float))
    return table


def alpha_of(ratings: Floats, level: MeasurementLevel = "nominal") -> float:
    """Krippendorff's alpha by the package of that name."""
    return float(krippendorff.alpha(reliability_data=ratings, level_of_measurement=level))


@pytest.mark.parametrize("seed", range(4))
def test_kappa_is_statsmodels(seed: int) -> None:
    counts = count_ratings(_panel(seed))
    assert fleiss_kappa(counts).value == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-12)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_alpha_is_the_packages(level: MeasurementLevel, missing: float) -> None:
    for seed in range(3):
        ratings = _panel(seed, missing=missing) ** 1.5 - 2
        assert krippendorff_alpha(ratings, level).value == pytest.approx(alpha_of(ratings, level), abs=1e-10)


@pytest.mark.parametrize(("level", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_published(level: MeasurementLevel, value: float) -> None:
    alpha = krippendorff_alpha(PUBLISHED, level)
    assert alpha.value == pytest.approx(value, abs=5e-4)
    assert (alpha.n, alpha.n_ratings, alpha.n_dropped) == (11, 40, 1)
    assert known(alpha.ci_low) < value < known(alpha.ci_high) <= 1


def test_kappa_and_ac1_by_hand_on_ragged_panels() -> None:
    # Counts (A, B): (3, 0), (1, 1), (0, 4), (2, 1), and (1, 0) which drops out.
    # Agreeing pairs: 1, 0, 1, 1/3, mean 7/12. Share of A: 1, 1/2, 0, 2/3, mean 13/24.
    # Kappa: chance (13² + 11²) / 24² = 145/288; (7/12 - 145/288) / (143/288) = 23/143.
    # AC1: chance 2 * 13 * 11 / 24² = 143/288; (168 - 143) / (288 - 143) = 25/145.
    counts = [[3, 0], [1, 1], [0, 4], [2, 1], [1, 0]]
    kappa = fleiss_kappa(counts)
    assert kappa.value == pytest.approx(23 / 143, abs=1e-14)
    assert (kappa.n, kappa.n_ratings, kappa.n_dropped) == (4, 12, 1)
    assert kappa.prevalence == pytest.approx((6 / 12, 6 / 12))
    ratings: list[list[float]] = [[0, 0, 1, 0, 0], [0, 1, 1, 0, NAN], [0, NAN, 1, 1, NAN], [NAN, NAN, 1, NAN, NAN]]
    assert count_ratings(ratings).tolist() == counts
    assert gwet_ac1(ratings).value == pytest.approx(25 / 145, abs=1e-14)


def test_ac1_with_unused_categories() -> None:
    # One in four pairs of two raters disagrees; share of A 5/8: chance 2 * 15/64 / 2 = 15/64 with three categories.
    ratings = [[0, 0, 1, 0], [0, 0, 1, 1]]
    assert gwet_ac1(ratings, categories=3).value == pytest.approx((3 / 4 - 15 / 64) / (1 - 15 / 64), abs=1e-14)
    with pytest.raises(ValueError, match="2 categories occur"):
        gwet_ac1(ratings, categories=1)


def test_the_prevalence_paradox_is_seen() -> None:
    ratings = np.zeros((2, 100))
    ratings[0, 0] = ratings[1, 1] = 1  # 98% raw agreement, and each rater says 1 once
    kappa, ac1 = fleiss_kappa(count_ratings(ratings)).value, gwet_ac1(ratings).value
    assert known(kappa) < 0 < 0.97 < known(ac1)


def test_all_the_same_is_not_perfect_agreement() -> None:
    same = np.ones((3, 20))
    coefficients = (fleiss_kappa(count_ratings(same)), krippendorff_alpha(same), gwet_ac1(same))
    for coefficient in (*coefficients, gwet_ac1(same, categories=2)):
        assert (coefficient.ci_low, coefficient.ci_high) == (None, None)
        assert coefficient.reason == "all ratings are the same"
        assert (coefficient.n, coefficient.prevalence) == (20, (1.0,))
    assert [coefficient.value for coefficient in coefficients] == [None, None, None]


def test_ac1_of_one_of_two_categories_is_1() -> None:
    """Agreement by chance is 2 * 1 * 0 / 1 = 0 in Gwet's equation 7, so that (1 - 0) / (1 - 0) = 1."""
    assert gwet_ac1(np.zeros((3, 20)), categories=2).value == 1.0
    assert gwet_ac1(np.full((3, 2), NAN), categories=2).value is None


def test_perfect_agreement_has_no_false_certainty() -> None:
    alpha = krippendorff_alpha(np.tile([0.0, 1.0] * 10, (3, 1)))
    # Each of the 10 items with the rarer rating counts as one case, of which Student's quantile needs more.
    n_effective = 10 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 19)) ** 2
    specific = 0.025 ** (1 / n_effective)
    assert (alpha.value, alpha.ci_low, alpha.ci_high) == pytest.approx((1, 1 - (1 - specific) / 0.5, 1))
    scores = krippendorff_alpha(np.tile([0.0, 1.0] * 10, (3, 1)), "interval")
    assert scores.value == pytest.approx(1)
    assert (scores.ci_low, scores.reason) == (None, CONSTANT_REASON)


@pytest.mark.parametrize("ratings", [np.full((3, 4), NAN), np.ones((1, 5)), np.ones((3, 0)), np.ones((0, 3))])
def test_nothing_to_compare(ratings: Floats) -> None:
    for coefficient in (
        fleiss_kappa(count_ratings(ratings)),
        krippendorff_alpha(ratings, "ordinal"),
        gwet_ac1(ratings),
    ):
        assert (coefficient.value, coefficient.n, coefficient.reason) == (None, 0, "no item has 2 ratings")
        assert coefficient.n_dropped == ratings.shape[1]


@pytest.mark.parametrize(("n_items", "has_interval"), [(1, False), (4, False), (5, True)])
def test_a_rating_in_few_items_gives_no_interval(n_items: int, has_interval: bool) -> None:
    ratings = np.ones((3, 50))
    ratings[0, :n_items] = 0
    ratings[1, 0] = 0
    for coefficient in (krippendorff_alpha(ratings), fleiss_kappa(count_ratings(ratings))):
        assert coefficient.value is not None
        assert (coefficient.ci_low is not None) == has_interval
        if not has_interval:
            assert coefficient.reason == (
                "the rarer of the two ratings occurs in fewer than 5 items, too few for an interval for other items"
            )
    for rater in leave_one_rater_out(ratings):
        assert rater.difference.value is not None
        assert (rater.difference.ci_low is not None) == (rater.agreement.ci_low is not None and has_interval)
        assert (rater.difference.p_value is None) == (rater.difference.ci_low is None)


def test_a_rating_in_few_topics_gives_no_interval_for_other_countries_and_topics() -> None:
    countries, topics = np.repeat(np.arange(8), 6), np.tile(np.arange(6), 8)
    ratings = np.ones((3, 48))
    ratings[:2, topics < 4] = 0
    ratings = 1 - ratings
    kappa = fleiss_kappa(count_ratings(ratings[:, topics < 5]), units={"topic": topics[topics < 5]})
    assert kappa.ci_low is not None  # the rarer rating is in all of the 5 topics
    ratings[:, topics > 1] = 0
    alpha = krippendorff_alpha(ratings, units={"country": countries, "topic": topics})
    assert (alpha.ci_low, alpha.ci_high) == (None, None)
    assert alpha.reason == (
        "the rarer of the two ratings occurs in fewer than 5 topics, too few for an interval for other countries and "
        "topics"
    )


def test_leaving_out_the_only_unit_with_a_rating_leaves_no_value() -> None:
    # Unit 0 has all ratings of the more frequent category, so without it all ratings are the same.
    ratings, units = np.zeros((2, 46)), {"item": np.r_[np.zeros(40, dtype=int), np.arange(1, 7)]}
    ratings[:, 40:] = 1
    assert krippendorff_alpha(ratings, units=units).reason == UNDEFINED_REASON


def test_ratings_that_never_agree_have_the_interval_of_no_hit_in_as_many_units() -> None:
    ratings = np.ones((2, 40))
    ratings[0, :8] = 0
    kappa = fleiss_kappa(count_ratings(ratings))
    n_effective = 8 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 39)) ** 2
    largest_specific = 1 - 0.025 ** (1 / n_effective)
    assert kappa.value == pytest.approx(1 - 1 / 0.9)
    assert (kappa.ci_low, kappa.ci_high) == pytest.approx((1 - 1 / 0.9, 1 - (1 - largest_specific) / 0.9))


def test_the_interval_of_two_categories_is_that_of_the_specific_agreement_by_hand() -> None:
    countries, topics = np.repeat(np.arange(9), 7), np.tile(np.arange(7), 9)
    rng = np.random.default_rng(8)
    quality = rng.normal(size=9)[countries] + rng.normal(size=7)[topics] + rng.normal(size=63)
    ratings = (quality + 0.8 * rng.normal(size=(4, 63)) > -1).astype(float)
    ratings[rng.random(ratings.shape) < 0.1] = NAN
    is_pairable = (~np.isnan(ratings)).sum(axis=0) >= 2
    ratings, countries, topics = ratings[:, is_pairable], countries[is_pairable], topics[is_pairable]
    alpha = krippendorff_alpha(ratings, units={"country": countries, "topic": topics})
    total = two_way_variance(lambda keep: alpha_of(ratings[:, keep]), countries, topics)
    rarer = ratings == 0
    share = rarer.sum() / (~np.isnan(ratings)).sum()
    assert share < 0.5
    specific = 1 - (1 - known(alpha.value)) * (1 - share)
    n_effective = specific * (1 - specific) / (total * (1 - share) ** 2)
    assert n_effective < rarer.sum()
    n_effective *= (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 6)) ** 2
    hits = specific * n_effective
    ends = stats.beta.ppf([0.025, 0.975], [hits, hits + 1], [n_effective - hits + 1, n_effective - hits])
    assert (alpha.ci_low, alpha.ci_high) == pytest.approx(tuple(1 - (1 - ends) / (1 - share)))
    assert alpha.resampled == ("country", "topic")


def test_a_category_that_does_not_occur_changes_nothing() -> None:
    counts = count_ratings(_panel(6, items=30) % 2)
    assert fleiss_kappa(np.column_stack([counts, np.zeros(30)])).ci_low == fleiss_kappa(counts).ci_low is not None


def test_without_units_items_are_left_out_as_a_hand_jackknife_does() -> None:
    ratings = _panel(1, items=12, missing=0.2)
    alpha = krippendorff_alpha(ratings, "interval")
    has_two = (~np.isnan(ratings)).sum(axis=0) >= 2
    pairable = ratings[:, has_two]
    n = pairable.shape[1]
    left_out = np.array([alpha_of(np.delete(pairable, i, axis=1), "interval") for i in range(n)])
    value = alpha_of(ratings, "interval")
    centre = n * value - (n - 1) * left_out.mean()
    half_width = stats.t.ppf(0.975, n - 1) * np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    assert (alpha.ci_low, alpha.ci_high) == pytest.approx((centre - half_width, min(1, centre + half_width)), abs=1e-9)
    assert (alpha.n, alpha.resampled) == (n, ("item",))


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_countries_and_topics_are_left_out_as_by_hand(level: MeasurementLevel) -> None:
    countries, topics = np.repeat(np.arange(7), 6), np.tile(np.arange(6), 7)
    ratings = _panel(3, items=42, missing=0.3)
    alpha = krippendorff_alpha(ratings, level, units={"country": countries, "topic": topics})
    centre, variance = (value := alpha_of(ratings, level)), 0.0
    for labels in (countries, topics):
        left_out = np.array([alpha_of(ratings[:, labels != unit], level) for unit in np.unique(labels)])
        centre -= (len(left_out) - 1) * (left_out.mean() - value)
        variance += (len(left_out) - 1) * left_out.var()
    half_width = stats.t.ppf(0.975, 5) * variance**0.5
    assert (alpha.ci_low, alpha.ci_high) == pytest.approx((centre - half_width, centre + half_width), abs=1e-9)
    assert alpha.resampled == ("country", "topic")
    assert alpha.generalizes_to == "other countries and topics like these"


def test_ac1_is_left_out_on_fishers_z_with_half_the_variance_of_cells_subtracted() -> None:
    countries, topics = np.repeat(np.arange(7), 6), np.tile(np.arange(6), 7)
    ratings = _panel(3, items=42)
    ac1 = gwet_ac1(ratings, units={"country": countries, "topic": topics})
    total = two_way_variance(
        lambda keep: math.atanh(known(gwet_ac1(ratings[:, keep], categories=4).value)), countries, topics
    )
    z, half_width = np.arctanh(known(ac1.value)), stats.t.ppf(0.975, 5) * total**0.5
    assert (ac1.ci_low, ac1.ci_high) == pytest.approx((np.tanh(z - half_width), np.tanh(z + half_width)), abs=1e-9)


def test_too_few_countries_or_topics_give_no_interval_and_say_so() -> None:
    ratings, countries = _panel(3, items=40), np.repeat(np.arange(4), 10)
    units = {"country": countries, "topic": np.tile(np.arange(10), 4)}
    for coefficient in (
        fleiss_kappa(count_ratings(ratings), units=units),
        krippendorff_alpha(ratings, units=units),
        gwet_ac1(ratings, units=units),
    ):
        assert coefficient.value is not None
        assert (coefficient.ci_low, coefficient.resampled) == (None, ())
        assert "at least 5 countries and 5 topics, but there are 4 countries" in str(coefficient.reason)
    with pytest.raises(ValueError, match="one country for each of 40 items"):
        krippendorff_alpha(ratings, units={"country": countries[1:]})


def test_one_rater_left_out_names_the_odd_one() -> None:
    ratings = _panel(4, items=200)
    ratings[2] = np.random.default_rng(0).integers(4, size=200)
    left_out = leave_one_rater_out(ratings)
    panel = krippendorff_alpha(ratings)
    for i, rater in enumerate(left_out):
        others = np.delete(ratings, i, axis=0)
        assert rater.agreement == krippendorff_alpha(others)
        assert rater.difference.value == pytest.approx(known(rater.agreement.value) - known(panel.value))
        assert (known(rater.difference.ci_low) > 0) == (i == 2)
    assert leave_one_rater_out(ratings[:2])[0].agreement.reason == "no item has 2 ratings"
    assert leave_one_rater_out(ratings[:2])[0].difference.reason == "no item has 2 ratings"


def test_the_difference_without_a_rater_is_a_jackknife_of_both_alphas() -> None:
    ratings, countries = _panel(5, items=36, missing=0.4), np.repeat(np.arange(6), 6)
    topics = np.tile(np.arange(6), 6)
    rater = leave_one_rater_out(ratings, units={"country": countries, "topic": topics})[1]

    def difference(table: Floats) -> float:
        return alpha_of(np.delete(table, 1, axis=0)) - alpha_of(table)

    value = difference(ratings)
    total = two_way_variance(lambda keep: difference(ratings[:, keep]), countries, topics)
    half_width = stats.t.ppf(0.975, 5) * total**0.5
    assert rater.difference.value == pytest.approx(value, abs=1e-9)
    ends = (rater.difference.ci_low, rater.difference.ci_high)
    assert ends == pytest.approx((value - half_width, value + half_width), abs=1e-9)
    assert rater.difference.p_value == pytest.approx(2 * stats.t.sf(abs(value) / total**0.5, 5))


def test_the_difference_without_a_rater_has_as_many_degrees_of_freedom_as_items_with_the_rarer_rating() -> None:
    rng = np.random.default_rng(3)
    ratings = np.ones((4, 60))
    ratings[:, :9] = rng.random((4, 9)) < 0.3
    ratings[1:, 9:] = 1
    ratings[0, 9:15] = 0  # only the rater that is left out gives them
    rater = leave_one_rater_out(ratings)[0]
    items = np.arange(60)
    variance = jackknife_variance(lambda keep: alpha_of(ratings[1:, keep]) - alpha_of(ratings[:, keep]), items)
    std_error = variance**0.5
    assert (ratings[1:] == 0).any(axis=0).sum() == 9
    ends = (rater.difference.ci_low, rater.difference.ci_high)
    assert rater.difference.value is not None
    half_width = stats.t.ppf(0.975, 8) * std_error
    assert ends == pytest.approx((rater.difference.value - half_width, rater.difference.value + half_width))
    assert rater.difference.p_value == pytest.approx(2 * stats.t.sf(abs(rater.difference.value) / std_error, 8))


def test_malformed_input_raises() -> None:
    for bad in ([[1.5, 1]], [[-1, 3]], [1, 2], [[NAN, 2]]):
        with pytest.raises(ValueError, match="whole numbers"):
            fleiss_kappa(bad)
    with pytest.raises(ValueError, match="level must be"):
        krippendorff_alpha([[1, 2], [1, 2]], "ratio")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="table"):
        gwet_ac1([1, 2, 3])
