"""The alternative annotator test: whether a judge may replace a human rater.

Calderon, Reichart & Dror, "The Alternative Annotator Test for LLM-as-a-Judge", ACL 2025. Each rater j is left out in
turn. On each item i that j rated, the judge f and j are compared with the remaining raters: W_f = 1 if the judge
agrees with them at least as well as j, W_h = 1 if j agrees at least as well as the judge; a tie counts for both. The
advantage probability of the judge over j is ρ_j, the mean of W_f. The judge wins against j if the mean of W_h - W_f is
shown to be less than ε, by a one-sided t test with the false discovery rate over raters at 5% (Benjamini &
Yekutieli, Annals of Statistics 29, 2001). The winning rate ω is the share of raters that it wins against, and it
passes with ω of at least 0.5.

The t test takes items as independent. Where items of one topic are alike it passes too often; the test over cluster
means does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import SIGNIFICANCE_LEVEL, Floats, is_constant
from auditor.metrics.intervals.jackknife_interval import MIN_UNITS
from auditor.metrics.intervals.multiple_testing import benjamini_yekutieli
from auditor.metrics.intervals.special_functions import stdtr

MIN_ITEMS = 30
"""Fewest items of a rater for a test, as the authors have it."""
PASSING_RATE = 0.5
"""Smallest winning rate with which the judge passes."""
RELATIVE_ROUNDING_ERROR = 1e-9
"""Distances that are closer than this, as a share of the larger, are a tie."""

Scoring = Literal["accuracy", "neg_rmse"]


@dataclass(frozen=True, slots=True)
class AnnotatorTest:
    """Whether a judge may replace a human rater; arrays have shape (annotators,).

    Attributes:
        p_values: one-sided, not adjusted; nan for a rater that was not tested.
        advantage_probabilities: of each rater; nan where not tested.
        wins: whether the judge wins against each rater, after the adjustment for the number of raters.
        n_by_annotator: number of items of each rater with enough labels, tested or not.
    """

    winning_rate: float | None
    """Share of the tested raters that are beaten, in [0, 1]; none if none was tested."""
    advantage_probability: float | None
    """Mean over the tested raters of the share of items on which the judge, or model, is at least as close to the
    remaining raters, in [0, 1]; none if none was tested."""
    passed: bool | None
    """Whether it may replace a rater: the winning rate is at least 0.5; none if no rater was tested."""
    p_values: Floats = field(compare=False)
    n: int
    """Items with enough labels that at least one tested rater rated."""
    advantage_probabilities: Floats = field(compare=False)
    wins: NDArray[np.bool_] = field(compare=False)
    n_by_annotator: NDArray[np.intp] = field(compare=False)
    reason: str | None = None
    """Why raters were not tested, and how many labels are missing; none if all were tested."""

    @property
    def passing_level(self) -> float | None:
        """The smallest false discovery rate at which the judge passes, in [0, 1]; none if no rater was tested.

        It is at most 5% where the judge passes, so tests of several judges can be adjusted for their number by it.
        """
        adjusted = benjamini_yekutieli(self.p_values)
        levels = np.sort(adjusted[~np.isnan(adjusted)])
        return float(levels[ceil(PASSING_RATE * len(levels)) - 1]) if len(levels) else None


def alternative_annotator_test(
    humans: ArrayLike,
    judge: ArrayLike,
    *,
    epsilon: float,
    scoring: Scoring = "accuracy",
    min_raters: int = 2,
    clusters: ArrayLike | None = None,
) -> AnnotatorTest:
    """Test whether a judge may replace a human rater (Calderon, Reichart & Dror, ACL 2025).

    Args:
        humans: shape (annotators, items), labels as numbers; nan where a rater did not label an item.
        judge: shape (items,); items with a nan are left out.
        epsilon: what the lower cost of the judge is worth, as a share of items, in [0, 1]. The authors suggest 0.2 for
            experts, 0.15 for skilled raters and 0.1 for crowd workers.
        scoring: closeness to the remaining raters: "accuracy" is the share of them with the same label, "neg_rmse" is
            minus the root of the mean squared distance.
        min_raters: fewest labels of an item, the excluded rater's included, at least 2. With 2 the test is that of the
            authors' code.
        clusters: shape (items,), such as the topic of each item. With it the t test is over the means of the clusters,
            each with equal weight.

    Returns:
        Raters with fewer than 30 items, or with fewer than 5 clusters, are not tested; the reason says how much is
        missing. If all differences of a rater are equal, its p-value is 0 where they are below epsilon, else 1.

    Raises:
        ValueError: shapes differ, a label is infinite, or an argument is out of its range.
    """
    labels, judge_labels = _read_labels(humans, judge)
    _check_settings(epsilon, scoring, min_raters)
    cluster_index = None if clusters is None else _number_clusters(clusters, judge_labels.shape)
    is_usable = ((~np.isnan(labels)).sum(axis=0) >= min_raters) & ~np.isnan(judge_labels)
    is_rated = ~np.isnan(labels) & is_usable
    n_clusters = None if cluster_index is None else np.array([len(np.unique(cluster_index[row])) for row in is_rated])
    is_tested = (is_rated.sum(axis=1) >= MIN_ITEMS) & (True if n_clusters is None else n_clusters >= MIN_UNITS)
    p_values, advantages = np.full((2, len(labels)), np.nan)
    for i in np.nonzero(is_tested)[0]:
        items = is_rated[i]
        judge_wins, rater_wins = _compare(labels[:, items], judge_labels[items], int(i), scoring)
        differences = rater_wins.astype(np.float64) - judge_wins
        if cluster_index is not None:
            differences = _cluster_means(differences, cluster_index[items])
        p_values[i], advantages[i] = _one_sided_p_value(differences, epsilon), judge_wins.mean()
    return _summarize(p_values, advantages, is_rated, is_tested, _missing_reason(is_rated, n_clusters, min_raters))


def _read_labels(humans: ArrayLike, judge: ArrayLike) -> tuple[Floats, Floats]:
    """The labels as arrays; ValueError for a wrong shape or an infinite label."""
    labels, judge_labels = np.asarray(humans, dtype=np.float64), np.asarray(judge, dtype=np.float64)
    if labels.ndim != 2 or judge_labels.shape != labels.shape[1:]:
        raise ValueError(
            f"humans must have the shape (annotators, items) and judge (items,), but they have {labels.shape} and "
            f"{judge_labels.shape}"
        )
    if np.isinf(labels).any() or np.isinf(judge_labels).any():
        raise ValueError("labels must be finite, or nan where a label is missing, but one is infinite")
    return labels, judge_labels


def _check_settings(epsilon: float, scoring: str, min_raters: int) -> None:
    """Raise ValueError for an argument out of its range."""
    if not 0 <= epsilon <= 1:
        raise ValueError(f"epsilon must be from 0 to 1, but is {epsilon!r}")
    if scoring not in ("accuracy", "neg_rmse"):
        raise ValueError(f"scoring must be 'accuracy' or 'neg_rmse', but is {scoring!r}")
    if min_raters < 2:
        raise ValueError(f"min_raters must be at least 2: a rater is compared with others; it is {min_raters!r}")


def _number_clusters(clusters: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.intp]:
    """Number of each item's cluster, from 0; ValueError for labels of another shape."""
    cluster_labels = np.asarray(clusters)
    if cluster_labels.shape != shape:
        raise ValueError(f"clusters must have the shape of judge, {shape}, but have {cluster_labels.shape}")
    return np.unique(cluster_labels, return_inverse=True)[1]


def _compare(
    labels: Floats, judge_labels: Floats, rater: int, scoring: Scoring
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether the judge, and whether the rater, is at least as close to the remaining raters, shape (items,) each.

    The number of remaining raters is the same for both, so sums are compared, not means or their roots.
    """
    others = np.delete(labels, rater, axis=0)
    distances = []
    for candidate in (judge_labels, labels[rater]):
        if scoring == "accuracy":
            distances.append(-(others == candidate).sum(axis=0, dtype=np.float64))
        else:
            distances.append(np.nansum((others - candidate) ** 2, axis=0))
    of_judge, of_rater = distances
    tolerance = RELATIVE_ROUNDING_ERROR * np.maximum(np.abs(of_judge), np.abs(of_rater))
    return of_judge <= of_rater + tolerance, of_rater <= of_judge + tolerance


def _cluster_means(values: Floats, cluster_index: NDArray[np.intp]) -> Floats:
    """The mean of the values in each cluster that has any."""
    index = np.unique(cluster_index, return_inverse=True)[1]
    means: Floats = np.bincount(index, values) / np.bincount(index)
    return means


def _one_sided_p_value(differences: Floats, epsilon: float) -> float:
    """P-value of Student's t test of a mean of at least epsilon against a smaller one."""
    distance = float(differences.mean()) - epsilon
    if is_constant(differences):
        return float(distance >= 0)
    n = len(differences)
    return float(stdtr(n - 1, distance / (differences.std(ddof=1) / n**0.5)))


def _missing_reason(is_rated: NDArray[np.bool_], n_clusters: NDArray[np.intp] | None, min_raters: int) -> str | None:
    """What is missing for the raters that were not tested; None where all were."""
    missing_items = np.maximum(MIN_ITEMS - is_rated.sum(axis=1), 0)
    missing_clusters = np.maximum(MIN_UNITS - n_clusters, 0) if n_clusters is not None else np.zeros_like(missing_items)
    if not len(is_rated):
        return f"the test needs at least {min_raters} raters, but there are none"
    n_untested = int(((missing_items > 0) | (missing_clusters > 0)).sum())
    if not n_untested:
        return None
    parts = []
    if missing_items.any():
        detail = ", ".join(f"rater {i + 1} lacks {missing_items[i]}" for i in np.nonzero(missing_items)[0])
        parts.append(
            f"a test of a rater needs {MIN_ITEMS} items with labels by at least {min_raters} raters and the judge: "
            f"{detail}"
        )
    if missing_clusters.any():
        detail = ", ".join(f"rater {i + 1} lacks {missing_clusters[i]}" for i in np.nonzero(missing_clusters)[0])
        parts.append(f"a test over clusters needs {MIN_UNITS} of them: {detail}")
    return f"{n_untested} of {len(is_rated)} raters not tested: {'; '.join(parts)}"


def _summarize(
    p_values: Floats,
    advantages: Floats,
    is_rated: NDArray[np.bool_],
    is_tested: NDArray[np.bool_],
    reason: str | None,
) -> AnnotatorTest:
    """The result from the tests of the single raters."""
    adjusted = benjamini_yekutieli(p_values)
    wins = np.asarray(np.nan_to_num(adjusted, nan=1.0) <= SIGNIFICANCE_LEVEL)
    n_by_annotator = is_rated.sum(axis=1)
    if not is_tested.any():
        return AnnotatorTest(None, None, None, p_values, 0, advantages, wins, n_by_annotator, reason)
    winning_rate = float(wins[is_tested].mean())
    return AnnotatorTest(
        winning_rate,
        float(advantages[is_tested].mean()),
        winning_rate >= PASSING_RATE,
        p_values,
        int(is_rated[is_tested].any(axis=0).sum()),
        advantages,
        wins,
        n_by_annotator,
        reason,
    )
