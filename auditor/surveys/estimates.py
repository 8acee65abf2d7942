"""Weighted means with standard errors by design, bounds for nonresponse, and imputation. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.errors import ImportFileError, pluralize
from auditor.surveys.answer_codes import format_value
from auditor.surveys.column_reader import DistinctValueColumn


class SurveyDesign(NamedTuple):
    """How the respondents of one country were drawn.

    Attributes:
        unit: shape (respondents,): position of each respondent's primary sampling unit.
        stratum: shape (units,): position of the stratum of each unit.
    """

    unit: NDArray[np.int64]
    stratum: NDArray[np.int64]

    def select(self, mask: NDArray[np.bool_]) -> SurveyDesign:
        """The design of some respondents, who are a domain: units without any of them stay in the design."""
        return SurveyDesign(self.unit[mask], self.stratum)

    def sum_variance(self, residuals: NDArray[np.float64]) -> float | None:
        """Variance of the sum of the respondents' residuals, which add up to 0; None with fewer than two units.

        Residuals are summed over each unit. A stratum of k units adds k / (k - 1) times the sum of squared deviations
        of these totals from the stratum's mean. A unit that is alone in its stratum is compared with the mean of all
        totals, which is 0 (R's `lonely.psu = "adjust"`). See Lohr, Sampling: Design and Analysis, ch. 9.

        Args:
            residuals: shape (respondents,).
        """
        if self.stratum.size < 2:
            return None
        totals = np.bincount(self.unit, residuals, minlength=self.stratum.size)
        n_units = np.bincount(self.stratum)
        means = np.where(n_units > 1, np.bincount(self.stratum, totals) / n_units, 0.0)
        factors = n_units / np.maximum(n_units - 1, 1)
        return float(np.sum(factors[self.stratum] * (totals - means[self.stratum]) ** 2))


def build_designs(
    strata: DistinctValueColumn | None,
    psu: DistinctValueColumn | None,
    rows_by_country: Mapping[str, tuple[int, int]],
    path: Path,
) -> tuple[dict[str, SurveyDesign], list[str]]:
    """Return how the respondents of each country were drawn, and a note for each with strata of one sampling unit.

    A country in which both columns are empty has no design. Without `psu`, each respondent was drawn by themselves.

    Args:
        strata, psu: columns whose rows are sorted by country; None if the mapping does not name one.
        rows_by_country: the rows of each country, from the first to one after the last.
        path: the file, for messages.

    Raises:
        ImportFileError: a stratum or sampling unit is empty for some respondents of a country only.
    """
    designs: dict[str, SurveyDesign] = {}
    notes: list[str] = []
    for country, (start, end) in rows_by_country.items() if strata or psu else ():
        stratum, place = (_find_positions(column, slice(start, end), country, path) for column in (strata, psu))
        if stratum is None and place is None:
            continue
        n = end - start
        pairs = np.column_stack(
            [np.zeros(n, np.int64) if stratum is None else stratum, np.arange(n) if place is None else place]
        )
        units, unit = np.unique(pairs, axis=0, return_inverse=True)
        strata_positions, stratum_of_unit = np.unique(units[:, 0], return_inverse=True)
        designs[country] = SurveyDesign(unit.ravel(), stratum_of_unit.ravel())
        lone_positions = strata_positions[np.bincount(stratum_of_unit.ravel()) == 1]
        if strata is not None and stratum is not None and lone_positions.size:
            lone_values = [strata.values[i] for i in lone_positions]
            names = ", ".join(format_value(value, strata.labels.get(value)) for value in lone_values)
            note = "with one primary sampling unit, which is compared with the country's mean"
            notes.append(f"strata of {country} {note}: {names}")
    return designs, notes


def _find_positions(
    column: DistinctValueColumn | None, rows: slice, country: str, path: Path
) -> NDArray[np.int64] | None:
    """The position of each row's value in a column; None without the column, or if it is empty for the country.

    Raises:
        ImportFileError: the column is empty in some rows only.
    """
    if column is None:
        return None
    positions = column.value_index[rows].astype(np.int64)
    is_empty = np.array([value is None for value in column.values])[positions]
    if is_empty.any() and not is_empty.all():
        row = int(column.row_numbers[rows][is_empty.argmax()])
        raise ImportFileError(
            f"{path}: row {row}, column '{column.name}': empty, while other respondents of {country} have a value "
            f"({pluralize(int(is_empty.sum()), 'empty row')}).",
            "Fill in the values, or leave the column out of [columns] in the mapping.",
        )
    return None if is_empty.all() else positions


Floats = NDArray[np.float64]


class WeightedMean(NamedTuple):
    """A weighted mean.

    Attributes:
        mean: the weighted mean; None without answers.
        standard_error: by Taylor linearisation, as R's `survey::svymean`: it does not depend on the scale of the
            weights, and unequal weights increase it. None for fewer than two answers or sampling units.
        n: number of respondents with an answer, unweighted.
        n_effective: Kish's effective sample size, at most n; 0 if n is 0.
    """

    mean: float | None
    standard_error: float | None
    n: int
    n_effective: float


def compute_weighted_mean(answers: Floats, weights: Floats, design: SurveyDesign | None = None) -> WeightedMean:
    """Compute the weighted mean of answers with its standard error.

    With W the sum of weights w and m the mean, an answer x has the residual w (x - m) / W. Without a design the error
    is sqrt(n / (n - 1) * sum of squared residuals). With one, residuals are summed over each primary sampling unit; a
    stratum of k units adds k / (k - 1) times the sum of squared deviations of these totals from the stratum's mean, a
    stratum of one unit the square of its total (Lohr, Sampling: Design and Analysis, ch. 9). The effective size is
    W^2 / sum w^2 (Kish 1965).

    Args:
        answers: shape (respondents,); nan is left out.
        weights: shape (respondents,), above 0.
        design: of these respondents; None if each was drawn by themselves.
    """
    is_answered = ~np.isnan(answers)
    answers, weights = answers[is_answered], weights[is_answered]
    n, total_weight = answers.size, float(weights.sum())
    if n == 0:
        return WeightedMean(None, None, 0, 0.0)
    mean = float(weights @ answers) / total_weight
    residuals = weights * (answers - mean) / total_weight
    if n == 1:
        variance = None
    elif design is None:
        variance = n / (n - 1) * float(residuals @ residuals)
    else:
        variance = design.select(is_answered).sum_variance(residuals)
    error = None if variance is None else math.sqrt(variance)
    return WeightedMean(mean, error, n, total_weight**2 / float(weights @ weights))


def weighted_share(mask: NDArray[np.bool_], weights: Floats) -> float | None:
    """Weighted share of respondents for whom `mask` is true, in [0, 1]; None without respondents."""
    total_weight = float(weights.sum())
    return float(weights[mask].sum()) / total_weight if total_weight > 0 else None


def compute_neutral_mean(answers: Floats, weights: Floats, design: SurveyDesign | None = None) -> WeightedMean:
    """Compute the weighted mean with missing answers (nan) counted as 0, neutral, as in EvalMORAAL.

    Pass only respondents who were asked the question. Without any answer the mean is None.
    """
    completed = answers if np.isnan(answers).all() else np.nan_to_num(answers, nan=0.0)
    return compute_weighted_mean(completed, weights, design)


def nonresponse_bounds(answers: Floats, weights: Floats) -> tuple[float, float] | None:
    """Compute worst-case bounds of the weighted mean: all missing answers at -1, and all at +1 (Manski 1989).

    Pass only respondents who were asked the question.

    Returns:
        Lower and upper bound, or None if nobody answered.
    """
    if np.isnan(answers).all():
        return None
    low, high = (
        compute_weighted_mean(np.nan_to_num(answers, nan=assumed_answer), weights).mean
        for assumed_answer in (-1.0, 1.0)
    )
    return (low, high) if low is not None and high is not None else None


N_DONORS = 5
"""Number of nearest donors from which an answer is drawn."""


class PooledEstimate(NamedTuple):
    """An estimate over several imputations.

    Attributes:
        mean: mean of the estimates; None without imputations.
        standard_error: from the variance within and between imputations; None with fewer than two imputations, or if
            one of them has no standard error.
        missing_information: share of the variance that is between imputations, in [0, 1]; None without standard_error.
    """

    mean: float | None
    standard_error: float | None
    missing_information: float | None


def pool_estimates(means: Sequence[float], standard_errors: Sequence[float | None]) -> PooledEstimate:
    """Pool estimates by Rubin's rules: T = U + (1 + 1/m) B (Rubin 1987, eq. 3.1.2 to 3.1.5).

    U is the mean squared standard error within imputations, B the sample variance of the means between them.
    """
    m = len(means)
    if m == 0:
        return PooledEstimate(None, None, None)
    mean = float(np.mean(means))
    known_errors = [error for error in standard_errors if error is not None]
    if m < 2 or len(known_errors) != m:
        return PooledEstimate(mean, None, None)
    within = float(np.mean(np.square(known_errors)))
    between = (1 + 1 / m) * float(np.var(means, ddof=1))
    total = within + between
    return PooledEstimate(mean, math.sqrt(total), between / total if total > 0 else 0.0)


def impute_answers(answers: Floats, asked: NDArray[np.bool_], rng: np.random.Generator, n_imputations: int) -> Floats:
    """Impute the missing answers of one country several times, by hot deck.

    A missing answer is copied from a random one of the `N_DONORS` respondents whose mean answer to the other topics is
    nearest, in a bootstrap sample of those who answered. The bootstrap carries the uncertainty about the donors
    (approximate Bayesian bootstrap, Rubin & Schenker 1986; hot deck, Andridge & Little 2010). Respondents without any
    answer count as average. The method assumes that nonresponse depends only on country and those answers.

    Args:
        answers: shape (respondents, topics), nan without an answer.
        asked: shape (respondents, topics); answers that were not asked stay nan, as do topics that nobody answered.
        n_imputations: number of imputations.

    Returns:
        Shape (n_imputations, respondents, topics).
    """
    is_answered = ~np.isnan(answers)
    mean_of_others = _respondent_means(answers, is_answered)
    completed = np.repeat(answers[None], n_imputations, axis=0)
    for topic in range(answers.shape[1]):
        donors = np.flatnonzero(is_answered[:, topic])
        missing = np.flatnonzero(~is_answered[:, topic] & asked[:, topic])
        if missing.size and donors.size:
            # Donors with equal means are in random order, so that none of them is preferred.
            donors = donors[np.lexsort((rng.random(donors.size), mean_of_others[donors, topic]))]
            donor_positions = _draw_donors(
                mean_of_others[donors, topic], mean_of_others[missing, topic], rng, n_imputations
            )
            completed[:, missing, topic] = answers[donors, topic][donor_positions]
    return completed


def _respondent_means(answers: Floats, is_answered: NDArray[np.bool_]) -> Floats:
    """Return each respondent's mean deviation from the topic means over the other topics: shape (respondents, topics).

    0 is average. Answers are centred by topic, so that respondents who skip the topics with the lowest scores do not
    get a high mean.
    """
    filled = np.where(is_answered, answers, 0.0)
    n_answered = is_answered.sum(axis=0)
    topic_means = np.divide(filled.sum(axis=0), n_answered, out=np.zeros(n_answered.size), where=n_answered > 0)
    deviation = np.where(is_answered, answers - topic_means, 0.0)
    n_others = is_answered.sum(axis=1, keepdims=True) - is_answered
    sum_of_others = deviation.sum(axis=1, keepdims=True) - deviation
    mean_of_others: Floats = np.divide(sum_of_others, n_others, out=np.zeros_like(answers), where=n_others > 0)
    return mean_of_others


def _draw_donors(
    donor_means: Floats, recipient_means: Floats, rng: np.random.Generator, n_imputations: int
) -> NDArray[np.intp]:
    """Draw one of the `N_DONORS` nearest donors for each recipient, in each of several bootstrap samples of the donors.

    Args:
        donor_means: shape (donors,), sorted.
        recipient_means: shape (recipients,).

    Returns:
        Shape (n_imputations, recipients): positions among the donors.
    """
    # `window` is the number of donors among whom one is drawn; `offset` makes positions unique over all samples.
    n_donors, window = donor_means.size, min(N_DONORS, donor_means.size)
    offset = n_donors * np.arange(n_imputations)[:, None]
    # How often each bootstrap sample contains each donor: shape (n_imputations, n_donors).
    draw_counts = np.bincount(
        (rng.integers(0, n_donors, (n_imputations, n_donors)) + offset).ravel(), minlength=n_imputations * n_donors
    ).reshape(n_imputations, n_donors)
    cumulative_counts = np.cumsum(draw_counts, axis=1)
    # `counts_before[:, d]` is the number of draws of donors before d. A sample is taken as sorted by the donors' means:
    # `first_tied` and `after_tied` bound the positions in it of draws whose mean equals the recipient's.
    counts_before = np.hstack([np.zeros((n_imputations, 1), cumulative_counts.dtype), cumulative_counts])
    first_tied, after_tied = (
        counts_before[:, np.searchsorted(donor_means, recipient_means, side)] for side in ("left", "right")
    )
    # A window of odd width cannot be centred between two donors, so it is shifted to a random side.
    window_start = np.clip(
        (first_tied + after_tied) // 2 - (window + rng.integers(0, 2, first_tied.shape)) // 2, 0, n_donors - window
    )
    # If donors with the recipient's mean fill the window, draw from all of them, and from no other donor.
    ties_fill_window = after_tied - first_tied >= window
    n_choices = np.where(ties_fill_window, after_tied - first_tied, window)
    sample_position = np.where(ties_fill_window, first_tied, window_start) + (
        rng.random(first_tied.shape) * n_choices
    ).astype(np.intp)
    # Which donor is at that position of the sorted sample.
    donor_positions: NDArray[np.intp] = (
        np.searchsorted((cumulative_counts + offset).ravel(), sample_position + offset, side="right") - offset
    )
    return donor_positions


def compute_imputed_means(
    answers: Floats,
    asked: NDArray[np.bool_],
    weights: Floats,
    rng: np.random.Generator,
    n_imputations: int,
    design: SurveyDesign | None = None,
) -> list[PooledEstimate]:
    """Estimate the weighted mean of each topic of one country over several imputations, pooled by Rubin's rules.

    Args:
        answers, asked: as in `impute_answers`.
        weights: shape (respondents,), above 0.
        design: how the respondents were drawn; None if each was drawn by themselves.

    Returns:
        One estimate per topic.
    """
    completed = impute_answers(answers, asked, rng, n_imputations)
    pooled = []
    for topic in range(answers.shape[1]):
        estimates = [compute_weighted_mean(drawn_answers, weights, design) for drawn_answers in completed[:, :, topic]]
        means = [estimate.mean for estimate in estimates if estimate.mean is not None]
        pooled.append(pool_estimates(means, [estimate.standard_error for estimate in estimates]))
    return pooled
