"""Coefficients of agreement as functions of sums over items, so that leaving units out costs a few sums only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, assert_never

import numpy as np

from auditor.metrics._complete_cases import Floats
from auditor.metrics.jackknife_interval import FISHER_Z, IDENTITY, Transform

MeasurementLevel = Literal["nominal", "ordinal", "interval"]


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient as a function of sums over items.

    Attributes:
        moments: shape (items, k), what is summed.
        value: from sums, shape (replicates, k), to coefficients, shape (replicates,), nan where undefined.
        scale: on which it is nearly normal.
        is_share: whether its interval is that of a share of the rarer ratings; see `_agreement_interval`.
    """

    moments: Floats
    value: Callable[[Floats], Floats]
    scale: Transform = IDENTITY
    is_share: bool = False


def make_kappa(counts: Floats) -> Coefficient:
    """Fleiss' kappa of items with at least two ratings each; counts of shape (items, categories)."""

    def kappa(sums: Floats) -> Floats:
        """Kappa from sums over items."""
        agreement, prevalence = _mean_moments(sums)
        return _beyond_chance(agreement, (prevalence**2).sum(axis=1))

    return Coefficient(_pair_moments(counts), kappa, is_share=_has_two_categories(counts))


def make_ac1(counts: Floats, n_categories: int) -> Coefficient:
    """Gwet's AC1 of items with at least two ratings each, with `n_categories` to choose from."""

    def ac1(sums: Floats) -> Floats:
        """AC1 from sums over items."""
        agreement, prevalence = _mean_moments(sums)
        return _beyond_chance(agreement, (prevalence * (1 - prevalence)).sum(axis=1) / (n_categories - 1))

    return Coefficient(_pair_moments(counts), ac1, FISHER_Z)  # near 1 where nearly all ratings are the same


def make_alpha(counts: Floats, values: Floats, level: MeasurementLevel) -> Coefficient:
    """Krippendorff's alpha of items with at least two ratings each; `values` are those of the categories."""
    if level == "ordinal":
        return _make_ordinal_alpha(counts)
    n_ratings = counts.sum(axis=1)
    if level == "nominal":  # two ratings agree or disagree
        disagreement = (n_ratings**2 - (counts**2).sum(axis=1)) / (n_ratings - 1)

        def nominal_alpha(sums: Floats) -> Floats:
            """Alpha from the sums of disagreement and of the ratings in each category."""
            total = sums[:, 1:].sum(axis=1)
            return _alpha(sums[:, 0], total, total**2 - (sums[:, 1:] ** 2).sum(axis=1))

        return Coefficient(np.column_stack([disagreement, counts]), nominal_alpha, is_share=_has_two_categories(counts))
    if level != "interval":
        assert_never(level)
    centred = values - (counts.sum(axis=0) @ values) / counts.sum()
    scaled = centred / max(float(np.abs(centred).max()), 1e-300)
    first, second = counts @ scaled, counts @ scaled**2
    # Half the squared distances of all ordered pairs of an item's ratings.
    distances = (n_ratings * second - first**2) / (n_ratings - 1)

    def interval_alpha(sums: Floats) -> Floats:
        """Alpha from the sums of distances, ratings, values and squared values."""
        return _alpha(sums[:, 0], sums[:, 1], sums[:, 1] * sums[:, 3] - sums[:, 2] ** 2)

    return Coefficient(np.column_stack([distances, n_ratings, first, second]), interval_alpha)


def _has_two_categories(counts: Floats) -> bool:
    return int((counts.sum(axis=0) > 0).sum()) == 2


def _pair_moments(counts: Floats) -> Floats:
    """What kappa and AC1 sum over items, shape (items, 2 + categories): 1, the agreeing pairs' share, the shares."""
    n_ratings = counts.sum(axis=1, keepdims=True)
    agreeing_pairs = ((counts**2).sum(axis=1, keepdims=True) - n_ratings) / (n_ratings * (n_ratings - 1))
    return np.hstack([np.ones_like(n_ratings), agreeing_pairs, counts / n_ratings])


def _mean_moments(sums: Floats) -> tuple[Floats, Floats]:
    """Mean agreement, shape (replicates,), and prevalence, shape (replicates, categories), from `_pair_moments`."""
    n_items = np.where(sums[:, :1] > 0.5, sums[:, :1], np.nan)  # nan where no item is left
    return sums[:, 1] / n_items[:, 0], sums[:, 2:] / n_items


def _beyond_chance(agreement: Floats, chance: Floats) -> Floats:
    """Agreement beyond chance, 1 for complete agreement; nan where chance agreement is complete."""
    return _safe_divide(agreement - chance, 1 - chance)


def _make_ordinal_alpha(counts: Floats) -> Coefficient:
    """Krippendorff's alpha of squared distances between midranks; what is summed are the items' coincidences."""
    n_items, k = counts.shape
    coincidences = counts[:, :, None] * counts[:, None, :]
    coincidences[:, np.arange(k), np.arange(k)] -= counts  # a rating is not paired with itself
    coincidences /= counts.sum(axis=1)[:, None, None] - 1

    def ordinal_alpha(sums: Floats) -> Floats:
        """Alpha from the sums of the ratings in each category and of the coincidences of two categories."""
        totals = sums[:, :k]
        midranks = np.cumsum(totals, axis=1) - totals / 2
        distances = (midranks[:, :, None] - midranks[:, None, :]) ** 2
        observed = (sums[:, k:].reshape(-1, k, k) * distances).sum(axis=(1, 2))
        expected = np.einsum("rc,rd,rcd->r", totals, totals, distances)  # r: replicate; c, d: categories
        return _alpha(observed, totals.sum(axis=1), expected)

    return Coefficient(np.hstack([counts, coincidences.reshape(n_items, k * k)]), ordinal_alpha)


def _alpha(observed: Floats, n_ratings: Floats, expected: Floats) -> Floats:
    """Krippendorff's alpha, 1 - observed / expected disagreement.

    Args:
        observed: sum of the distances of the ordered pairs of an item's ratings, each over the ratings minus 1.
        n_ratings: number of ratings.
        expected: sum of the distances of all ordered pairs of ratings.
    """
    return 1 - _safe_divide((n_ratings - 1) * observed, expected)


def _safe_divide(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient; nan where the denominator is 0 up to rounding."""
    defined = denominator > 1e-12
    return np.where(defined, numerator / np.where(defined, denominator, 1.0), np.nan)
