from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from numpy.typing import NDArray
from statsmodels.stats import inter_rater

from auditor.metrics.agreement import (
    MeasurementLevel,
    count_ratings,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    leave_one_rater_out,
)

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


@pytest.mark.parametrize("seed", range(4))
def test_kappa_is_statsmodels(seed: int) -> None:
    counts = count_ratings(_panel(seed))
    assert fleiss_kappa(counts).value == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-12)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_alpha_is_the_packages(level: MeasurementLevel, missing: float) -> None:
    for seed in range(3):
        ratings = _panel(seed, missing=missing) ** 1.5 - 2
        want = krippendorff.alpha(reliability_data=ratings, level_of_measurement=level)
        assert krippendorff_alpha(ratings, level).value == pytest.approx(want, abs=1e-10)


@pytest.mark.parametrize(("level", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_published(level: MeasurementLevel, value: float) -> None:
    alpha = krippendorff_alpha(PUBLISHED, level)
    assert alpha.value == pytest.approx(value, abs=5e-4)
    assert (alpha.n_items, alpha.n_ratings, alpha.n_dropped) == (11, 40, 1)
    assert alpha.ci_low is not None
    assert alpha.ci_high is not None
    assert alpha.ci_low < value < alpha.ci_high <= 1


def test_kappa_and_ac1_by_hand_on_ragged_panels() -> None:
    # Counts (A, B): (3, 0), (1, 1), (0, 4), (2, 1), and (1, 0) which drops out.
    # Agreeing pairs: 1, 0, 1, 1/3, mean 7/12. Share of A: 1, 1/2, 0, 2/3, mean 13/24.
    # Kappa: chance (13² + 11²) / 24² = 145/288; (7/12 - 145/288) / (143/288) = 23/143.
    # AC1: chance 2 * 13 * 11 / 24² = 143/288; (168 - 143) / (288 - 143) = 25/145.
    counts = [[3, 0], [1, 1], [0, 4], [2, 1], [1, 0]]
    kappa = fleiss_kappa(counts)
    assert kappa.value == pytest.approx(23 / 143, abs=1e-14)
    assert (kappa.n_items, kappa.n_ratings, kappa.n_dropped) == (4, 12, 1)
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
    assert kappa is not None
    assert ac1 is not None
    assert kappa < 0 < 0.97 < ac1


def test_all_the_same_is_not_perfect_agreement() -> None:
    same = np.ones((3, 20))
    for coefficient in (fleiss_kappa(count_ratings(same)), krippendorff_alpha(same), gwet_ac1(same, categories=2)):
        assert (coefficient.value, coefficient.ci_low, coefficient.ci_high) == (None, None, None)
        assert coefficient.reason == "all ratings are the same"
        assert (coefficient.n_items, coefficient.prevalence) == (20, (1.0,))


def test_perfect_agreement_has_no_false_certainty() -> None:
    alpha = krippendorff_alpha(np.tile([0.0, 1.0] * 10, (3, 1)))
    assert alpha.value == pytest.approx(1)
    assert alpha.ci_low is None
    assert alpha.reason == "every resample gives the same value: no interval"


@pytest.mark.parametrize("ratings", [np.full((3, 4), NAN), np.ones((1, 5)), np.ones((3, 0)), np.ones((0, 3))])
def test_nothing_to_compare(ratings: Floats) -> None:
    for coefficient in (
        fleiss_kappa(count_ratings(ratings)),
        krippendorff_alpha(ratings, "ordinal"),
        gwet_ac1(ratings),
    ):
        assert (coefficient.value, coefficient.n_items, coefficient.reason) == (None, 0, "no item has 2 ratings")
        assert coefficient.n_dropped == ratings.shape[1]


def test_a_rare_disagreement_gives_no_interval() -> None:
    ratings = np.zeros((3, 50))
    ratings[0, 0] = 1
    alpha = krippendorff_alpha(ratings)
    assert alpha.value is not None
    assert alpha.ci_low is None
    assert alpha.reason is not None
    assert "too few items" in alpha.reason


def test_intervals_cover_and_are_seeded() -> None:
    big = krippendorff_alpha(_panel(99, items=100_000)).value
    assert big is not None
    hits = 0
    for seed in range(150):
        alpha = krippendorff_alpha(_panel(seed, items=80), replicates=400, seed=seed)
        assert alpha.ci_low is not None
        assert alpha.ci_high is not None
        hits += alpha.ci_low <= big <= alpha.ci_high
    assert hits / 150 > 0.88
    one, repeated, other = (gwet_ac1(_panel(1), seed=s) for s in (1, 1, 2))
    assert one == repeated
    assert one.ci_low != other.ci_low


def test_one_rater_left_out_names_the_odd_one() -> None:
    ratings = _panel(4, items=200)
    ratings[2] = np.random.default_rng(0).integers(4, size=200)
    values = [a.value for a in leave_one_rater_out(ratings)]
    assert all(v is not None for v in values)
    assert int(np.argmax(np.array(values, dtype=float))) == 2
    assert leave_one_rater_out(ratings[:2], gwet_ac1)[0].reason == "no item has 2 ratings"


def test_malformed_input_raises() -> None:
    for bad in ([[1.5, 1]], [[-1, 3]], [1, 2], [[NAN, 2]]):
        with pytest.raises(ValueError, match="whole numbers"):
            fleiss_kappa(bad)
    with pytest.raises(ValueError, match="level must be"):
        krippendorff_alpha([[1, 2], [1, 2]], "ratio")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="table"):
        gwet_ac1([1, 2, 3])


@pytest.mark.parametrize("width", [2, 40])
def test_equal_rows_are_found_as_numpy_finds_them(width: int) -> None:
    """As numbers of a base where they fit into 63 bits, and otherwise."""
    from auditor.metrics.agreement import _unique_rows

    counts = np.random.default_rng(width).integers(0, 4, (300, width)).astype(float)
    rows, times = np.unique(counts, axis=0, return_counts=True)
    unique_rows, often = _unique_rows(counts)
    assert (unique_rows == rows).all()
    assert (often == times).all()
