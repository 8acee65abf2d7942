"""Whether a model relates topics to each other as people do, and guesses from countries that answer alike."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import UPPER_QUANTILE, Floats, Tested, complete_cases
from auditor.metrics.intervals.jackknife_interval import jackknife_variance
from auditor.metrics.intervals.multiple_testing import intersection_union
from auditor.metrics.intervals.special_functions import stdtrit
from auditor.metrics.intervals.two_way import build_two_way_table

Booleans = NDArray[np.bool_]

MIN_COUNTRIES = 12
MIN_TOPICS = 5
N_PERMUTATIONS = 999
MAX_NEAR = 10
"""A p-value of fewer permutations that are as near is made more precise where many tests are adjusted together."""
BATCH_SIZE = 100
"""Permutations that are computed at once."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The distance in both forms; `n` counts countries, and the p-value is that of no common structure.

    Attributes:
        raw: of the scores themselves, from 0 to 2.
        without_country_means: with each country's mean over topics taken out on both sides.
    """

    raw: Tested
    without_country_means: Tested

    @property
    def p_value(self) -> float:
        """Of a common structure in both forms (intersection-union); nan where they have no test."""
        forms = (self.raw, self.without_country_means)
        return intersection_union([np.nan if form.p_value is None else form.p_value for form in forms])


def compare_structure(
    scores: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
    seed: int = 0,
    n_permutations: int = N_PERMUTATIONS,
    max_permutations: int = 0,
) -> Structure:
    """The distance of a model's correlations among topics from people's, with its 95% interval over other countries.

    Args:
        scores, truth: shape (n,), one value per cell; cells with a nan on either side are left out. Two topics are
            compared over the countries that have both.
        countries, topics: shape (n,), labels of any kind.
        seed: of the permutations.
        n_permutations: 0 for no test.
        max_permutations: made where fewer than `MAX_NEAR` of the first `n_permutations` are as near.

    Returns:
        Estimates without a value, with a reason, for fewer than 12 countries or 5 topics that can be compared.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    columns, is_complete = complete_cases(scores, truth)
    table = build_two_way_table(countries, topics, is_complete)
    x, y = (np.full((table.n_countries, table.n_topics), np.nan) for _ in range(2))
    for matrix, values in zip((x, y), columns, strict=True):
        matrix[table.row_index, table.column_index] = values
    x, y = _select_comparable(x, y)
    n_countries, n_topics = x.shape
    if n_countries < MIN_COUNTRIES or n_topics < MIN_TOPICS:
        reason = (
            f"it needs at least {MIN_COUNTRIES} countries and {MIN_TOPICS} topics whose scores vary, "
            f"but there are {n_countries} and {n_topics}"
        )
        missing = Tested(None, n_countries, reason=reason)
        return Structure(missing, missing)
    stages = (n_permutations, max(0, max_permutations - n_permutations) if n_permutations else 0)
    return Structure(*(_compare(x, y, seed, stages, centre_countries=centre) for centre in (False, True)))


def _select_comparable(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Topics that vary, with scores in at least 12 countries, and countries with scores on at least two of them."""
    has_enough = (~np.isnan(x)).sum(axis=0) >= MIN_COUNTRIES
    x, y = x[:, has_enough], y[:, has_enough]
    varies = np.array([np.nanstd(side, axis=0) > 1e-9 for side in (x, y)]).all(axis=0) if x.size else np.zeros(0, bool)
    x, y = x[:, varies], y[:, varies]
    has_scores = (~np.isnan(x)).sum(axis=1) >= 2
    return x[has_scores], y[has_scores]


def _compare(x: Floats, y: Floats, seed: int, stages: tuple[int, int], *, centre_countries: bool) -> Tested:
    """One form of the distance, with its interval and p-value.

    Args:
        stages: numbers of permutations; the second ones are made where few of the first are as near.
    """
    n = len(x)
    target = _correlations(y[None], centre_countries=centre_countries)[0]
    square = float(_mean_square(_correlations(x[None], centre_countries=centre_countries), target)[0])
    if np.isnan(square):
        return Tested(None, n, reason="too few pairs of topics have scores in the same countries")
    others = np.array([np.delete(np.arange(n), i) for i in range(n)])
    without = np.concatenate(
        [
            _mean_square(
                _correlations(x[rows], centre_countries=centre_countries),
                _correlations(y[rows], centre_countries=centre_countries),
            )
            for rows in np.array_split(others, max(1, n // BATCH_SIZE))
        ]
    )
    corrected = (n - 2) * square - (n - 3) * float(without.mean())
    half_width = float(stdtrit(n - 1, UPPER_QUANTILE)) * jackknife_variance([without]) ** 0.5
    value, low, high = (max(0.0, end) ** 0.5 for end in (corrected, corrected - half_width, corrected + half_width))
    p_value = None
    n_near, n_permutations = 0, 0
    rng = np.random.default_rng(seed)
    for n_stage in stages:
        if n_stage and n_near < MAX_NEAR:
            n_near += _count_near_permutations(x, target, square, rng, n_stage, centre_countries=centre_countries)
            n_permutations += n_stage
            p_value = (1 + n_near) / (1 + n_permutations)
    return Tested(value, n, low, high, resampled=("country",), p_value=p_value)


def _count_near_permutations(
    x: Floats, target: Floats, square: float, rng: np.random.Generator, n_permutations: int, *, centre_countries: bool
) -> int:
    """Number of permutations of the model's residuals over countries, each topic by itself, that are as near as it is.

    Residuals are what the means of topics, and in the second form those of countries, leave.
    """
    residuals = x - np.nanmean(x, axis=0)
    if centre_countries:
        residuals = residuals - np.nanmean(residuals, axis=1, keepdims=True)
    present = ~np.isnan(residuals)
    # Scores move among the countries that have one; the missing ones stay where they are.
    place = np.argsort(~present, axis=0, kind="stable")
    n_near, n_left = 0, n_permutations
    while n_left > 0:
        keys = rng.random((min(BATCH_SIZE, n_left), *x.shape))
        keys[:, ~present] = np.inf
        order = np.argsort(keys, axis=1)
        permuted = np.take_along_axis(residuals[None], order, axis=1)
        if not present.all():
            np.put_along_axis(permuted, np.broadcast_to(place, order.shape), permuted.copy(), axis=1)
        squares = _mean_square(_correlations(permuted, present, centre_countries=centre_countries), target)
        n_near += int((squares <= square + 1e-12).sum())
        n_left -= len(keys)
    return n_near


def _mean_square(first: Floats, second: Floats) -> Floats:
    """Mean squared difference of correlations over the pairs of topics that both have, shape (m,)."""
    pairs = np.triu_indices(first.shape[-1], 1)
    differences = (first - second)[..., pairs[0], pairs[1]]
    has_value = ~np.isnan(differences)
    n_pairs = has_value.sum(axis=-1)
    squares: Floats = np.where(has_value, differences, 0.0) ** 2
    return np.where(n_pairs > 0, squares.sum(axis=-1) / np.maximum(n_pairs, 1), np.nan)


def _correlations(matrices: Floats, present: Booleans | None = None, *, centre_countries: bool) -> Floats:
    """Correlations among topics over countries, shape (m, topics, topics); nan for pairs with too few countries.

    Args:
        matrices: shape (m, countries, topics).
        present: where all matrices have a score, shape (countries, topics); left out if that differs.
        centre_countries: whether each country's mean over topics is taken out before.
    """
    if present is None:
        present = ~np.isnan(matrices)
    if present.all():
        if centre_countries:
            matrices = matrices - matrices.mean(axis=2, keepdims=True)
        deviations = matrices - matrices.mean(axis=1, keepdims=True)
        return _normalize(np.swapaxes(deviations, 1, 2) @ deviations)
    if centre_countries:
        matrices = matrices - np.nanmean(matrices, axis=2, keepdims=True)
    weights = present.astype(np.float64)
    values = np.where(present, matrices, 0.0)
    transposed = np.swapaxes(values, 1, 2)
    n = np.swapaxes(weights, -1, -2) @ weights
    safe_n = np.maximum(n, 1.0)
    sums = transposed @ weights  # of the first topic, where the second has a score too
    products = transposed @ values - sums * np.swapaxes(sums, 1, 2) / safe_n
    squares = transposed**2 @ weights - sums**2 / safe_n
    return _divide_by_root(products, squares * np.swapaxes(squares, 1, 2), n >= MIN_COUNTRIES - 2)


def _normalize(products: Floats) -> Floats:
    """Correlations from sums of squares and products; nan where a topic does not vary."""
    squares = np.diagonal(products, axis1=1, axis2=2)
    return _divide_by_root(products, squares[:, :, None] * squares[:, None, :], np.True_)


def _divide_by_root(products: Floats, scale: Floats, has_enough: Booleans | np.bool_) -> Floats:
    """Correlations from sums of products and the products of sums of squares; nan where these are 0."""
    is_defined = has_enough & (scale > 1e-18)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = products / np.sqrt(scale)
    correlations[~is_defined] = np.nan
    return correlations


MIN_SHARED_TOPICS = 5
"""Fewest other topics over which two countries are compared."""


def estimate_from_nearest(table: ArrayLike, n_nearest: Collection[int] = (1, 3)) -> dict[int, Floats]:
    """Predict each score as the mean of the countries nearest to it, without using the score itself.

    The distance of two countries is the mean squared difference over all other topics that both have, at least five.
    Equal distances are settled by the order of the rows.

    Args:
        table: shape (countries, topics), scores of people; nan where not asked.
        n_nearest: numbers of countries to average.

    Returns:
        By number of countries, predictions of the shape of `table`; nan where the score is missing or fewer countries
        can be compared.

    Raises:
        ValueError: not two-dimensional.
    """
    scores = np.asarray(table, dtype=np.float64)
    if scores.ndim != 2:
        raise ValueError(f"the table must have the shape (countries, topics), but has {scores.shape}")
    present = ~np.isnan(scores)
    filled = np.where(present, scores, 0.0)
    weights = present.astype(np.float64)
    n_shared = weights @ weights.T
    squares = (filled**2) @ weights.T
    distance = squares + squares.T - 2 * filled @ filled.T  # the sum of squared differences over shared topics
    predictions = {k: np.full(scores.shape, np.nan) for k in n_nearest}
    for topic in range(scores.shape[1]):
        column, has_topic = filled[:, topic], present[:, topic]
        both = np.outer(has_topic, has_topic)
        n_others = n_shared - both
        sums = distance - np.where(both, (column[:, None] - column[None, :]) ** 2, 0.0)
        is_donor = both & (n_others >= MIN_SHARED_TOPICS)
        np.fill_diagonal(is_donor, val=False)
        # Rounded: donors with equal answers must not be ordered by rounding errors.
        means = np.where(is_donor, np.round(sums / np.maximum(n_others, 1), 12), np.inf)
        order = np.argsort(means, axis=1, kind="stable")
        for k, predicted in predictions.items():
            has_enough = is_donor.sum(axis=1) >= k
            predicted[has_enough, topic] = column[order[has_enough, :k]].mean(axis=1)
    return predictions
