"""Where the uncertainty of a figure comes from: components of variance, and what a larger audit would gain.

Each cell of a table of countries and topics has an influence value. Its mean over cells follows the figure: for a mean
error the values are the errors themselves. The values are taken as the sum of independent effects of country, topic,
cell and, within a cell, of samples. The components are estimated by equating sums of squares with their expectations
(Henderson's method 1, Biometrics 9, 1953: analysis of variance of unbalanced tables). Miller, Adding Error Bars to
Evals (arXiv 2411.00640, 2024), uses such components for planning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, inf, sqrt

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics.intervals.estimate import UPPER_QUANTILE, Floats
from auditor.metrics.intervals.special_functions import find_root, nctdtr, stdtrit
from auditor.metrics.people.alignment import BIAS, MAE, PEARSON, Statistic
from auditor.metrics.people.survey_error import folded_mean

SOURCES = ("country", "topic", "cell", "sample")
POWER = 0.8
MAX_FACTOR = 1000
"""Larger multiples of an audit are not proposed."""

MAX_CONDITION = 1e10
"""Largest condition number of the equations for the components; above it they cannot be told apart."""


@dataclass(frozen=True, slots=True)
class Design:
    """Size of an audit whose every cell is asked.

    Attributes:
        samples: of each cell.
    """

    countries: float
    topics: float
    samples: float

    @property
    def calls(self) -> float:
        """Number of answers."""
        return self.countries * self.topics * self.samples


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """Variances of the effects of which influence values are the sum.

    Attributes:
        country, topic, cell: of the effects of countries, of topics, and of cells beyond these.
        sample: of single samples within a cell; 0 where cells have one sample, whose variance is in `cell` then.
        negative: the components whose estimate was negative and was set to 0.
        language: variance of the figure from the choice of languages, see `language_variance`; more countries, topics
            or samples do not reduce it.
    """

    country: float
    topic: float
    cell: float
    sample: float
    negative: tuple[str, ...] = ()
    language: float = 0.0

    def contributions(self, design: Design) -> dict[str, float]:
        """Variance of the figure from each source, in a design."""
        n_cells = design.countries * design.topics
        return {
            "country": self.country / design.countries,
            "topic": self.topic / design.topics,
            "cell": self.cell / n_cells,
            "sample": self.sample / design.calls,
            "language": self.language,
        }

    def variance(self, design: Design) -> float:
        """Variance of the figure in a design."""
        return sum(self.contributions(design).values())


def influence_values(statistic: Statistic, scores: Floats, truth: Floats) -> tuple[Floats, Floats]:
    """Influence value of each cell, and its derivative by the score, shape (n,) each.

    Args:
        statistic: BIAS, MAE or PEARSON.
        scores, truth: shape (n,), without nan.

    Raises:
        ValueError: another statistic.
    """
    error = scores - truth
    if statistic is BIAS:
        return error, np.ones_like(error)
    if statistic is MAE:
        return np.abs(error), np.sign(error)
    if statistic is PEARSON:
        x, y = ((column - column.mean()) / column.std() for column in (scores, truth))
        r = float((x * y).mean())
        return r + x * y - r * (x**2 + y**2) / 2, (y - r * x) / float(scores.std())
    raise ValueError("influence values are known for BIAS, MAE and PEARSON")


def sampling_part(statistic: Statistic, scores: Floats, truth: Floats, sampling_variances: Floats) -> Floats:
    """Variance of each influence value that is due to sampling a cell's answers, shape (n,).

    Noise also makes absolute errors around 0 larger, so it raises the variance of |error| by less than its own. For MAE
    the part is what the same noise, added once more, would raise that variance by: simulation extrapolation (Cook &
    Stefanski, JASA 89, 1994), linear, with the means of folded normals in place of simulations. It is exact for normal
    errors around 0 and for noise smaller than all errors, otherwise 0.6 to 1.35 times the true part in simulations. The
    variance of |error| within a cell is at least 1 - 2 / pi of that of its noise, so the part is too.

    Args:
        sampling_variances: variance of each score over samples, shape (n,).
    """
    noise = float(sampling_variances.mean())
    if statistic is not MAE or noise <= 0:
        return influence_values(statistic, scores, truth)[1] ** 2 * sampling_variances
    error = scores - truth
    rise = float(folded_mean(error, np.sqrt(sampling_variances)).mean()) ** 2 - float(np.abs(error).mean()) ** 2
    return sampling_variances * max(1 - 2 / np.pi, 1 - rise / noise)


def estimate_components(
    values: Floats,
    countries: ArrayLike,
    topics: ArrayLike,
    sampling_variances: Floats | None = None,
    samples: float = 1,
) -> VarianceComponents | None:
    """Estimate the components of variance; negative estimates are set to 0 and named.

    None where the components cannot be separated, as where each country has one topic only.

    Args:
        values: influence values, shape (n,), at most one per country and topic; cells may be missing.
        countries, topics: labels, shape (n,); at least two of each.
        sampling_variances: variance of each value that is due to sampling a cell's answers, shape (n,); None for none.
        samples: mean number of samples of a cell.
    """
    n = len(values)
    centred = values - values.mean()
    totals = []  # for each side: the sum of squared means, and the numbers of cells of its units
    for labels in (countries, topics):
        index = np.unique(np.asarray(labels), return_inverse=True)[1]
        counts = np.bincount(index).astype(np.float64)
        totals.append((float((np.bincount(index, centred) ** 2 / counts).sum()), counts))
    (by_country, country_counts), (by_topic, topic_counts) = totals
    n_countries, n_topics = len(country_counts), len(topic_counts)
    country_squares, topic_squares = (float((counts**2).sum()) / n for counts in (country_counts, topic_counts))
    # Expected sums of squares, less that of the mean, for the components country, topic and cell.
    expected = np.array(
        [
            [n - country_squares, n_countries - topic_squares, n_countries - 1],
            [n_topics - country_squares, n - topic_squares, n_topics - 1],
            [n - country_squares, n - topic_squares, n - 1],
        ]
    )
    if np.linalg.cond(expected) > MAX_CONDITION:
        return None
    observed = np.array([by_country, by_topic, float((centred**2).sum())])
    country, topic, cell = (float(component) for component in np.linalg.solve(expected, observed))
    sampling = 0.0 if sampling_variances is None else float(np.mean(sampling_variances))
    cell -= sampling
    estimates = {"country": country, "topic": topic, "cell": cell}
    negative = tuple(source for source, estimate in estimates.items() if estimate < 0)
    country, topic, cell = (max(0.0, estimate) for estimate in estimates.values())
    return VarianceComponents(country, topic, cell, sampling * samples, negative)


def language_variance(statistic: Statistic, scores: Floats, truth: Floats) -> float:
    """Variance of a figure from the choice of the languages over which each cell's score is averaged.

    The variance between languages beyond chance, by analysis of variance with cells as blocks, divided by the number
    of languages; at least 0.

    Args:
        scores: shape (languages, n), of at least two languages; cells without a score in one of them are left out.
        truth: shape (n,).
    """
    has_all = ~np.isnan(scores).any(axis=0) & ~np.isnan(truth)
    n_languages, n_cells = len(scores), int(has_all.sum())
    if n_cells < 2 or min(np.ptp(column) for column in (truth[has_all], *scores[:, has_all])) <= 1e-12:
        return 0.0
    values = np.stack([influence_values(statistic, column, truth[has_all])[0] for column in scores[:, has_all]])
    means = values.mean(axis=1)
    residuals = values - means[:, None] - values.mean(axis=0) + values.mean()
    residual_mean_square = float((residuals**2).sum()) / ((n_languages - 1) * (n_cells - 1))
    between = float(means.var(ddof=1)) - residual_mean_square / n_cells
    return max(0.0, between) / n_languages


def sizes_for_half_error(components: VarianceComponents, design: Design) -> dict[str, int | None]:
    """How many samples, topics or countries would halve the standard error, the rest being as it is.

    Returns:
        By `sample`, `topic`, `country`: the number needed; None where no number would do, or none below 1,000 times as
        many.
    """
    target = components.variance(design) / 4

    def enlarge(source: str, factor: float) -> Design:
        if source == "sample":
            return replace(design, samples=design.samples * factor)
        if source == "topic":
            return replace(design, topics=design.topics * factor)
        return replace(design, countries=design.countries * factor)

    current = {"sample": design.samples, "topic": design.topics, "country": design.countries}
    sizes: dict[str, int | None] = {}
    for source, size in current.items():
        if components.variance(enlarge(source, MAX_FACTOR)) > target:
            sizes[source] = None
            continue

        def excess(factor: float, source: str = source) -> float:
            """Variance beyond the target if the source has so many times its size."""
            return float(components.variance(enlarge(source, factor)) - target)

        sizes[source] = ceil(size * find_root(excess, 1.0, MAX_FACTOR) - 1e-6)
    return sizes


def cheapest_for_half_error(sizes: Mapping[str, int | None], design: Design) -> str | None:
    """The source of `sizes_for_half_error` that takes the fewest further calls; None where none will do."""
    current = {"sample": design.samples, "topic": design.topics, "country": design.countries}
    factors = {source: inf if size is None else size / current[source] for source, size in sizes.items()}
    cheapest = min(factors, key=factors.__getitem__, default=None)
    return None if cheapest is None or factors[cheapest] == inf else cheapest


def detectable_difference(components: VarianceComponents, design: Design) -> float:
    """The smallest true difference that is found with 80% power by the two-sided test at 5%.

    The test is that of `paired_jackknife`: Student's with one degree of freedom less than the fewer of countries and
    topics, and a variance that contains half of the variation between cells once more.

    Args:
        components: of the differences between two models, from `estimate_components` of their influence values.
        design: with at least two countries and topics.
    """
    contributions = components.contributions(design)
    variance = sum(contributions.values())
    if variance <= 0:
        return 0.0
    inflation = sqrt(1 + (contributions["cell"] + contributions["sample"]) / 2 / variance)
    df = min(design.countries, design.topics) - 1
    critical = float(stdtrit(df, UPPER_QUANTILE)) * inflation
    shift = float(find_root(lambda ncp: 1 - nctdtr(df, ncp, critical) - POWER, 0.0, critical + 10.0))
    return shift * sqrt(variance)
