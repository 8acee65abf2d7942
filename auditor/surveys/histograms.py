"""Compute the shares of answers of each cell and group of respondents from microdata."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.distributions.distances import wasserstein
from auditor.surveys.answer_codes import NO_GROUP
from auditor.surveys.distributions import (
    EVERYONE,
    MIN_GROUP_SIZE,
    AnswerPoint,
    AnswerScale,
    CellShares,
    SurveyDistributions,
)
from auditor.surveys.estimates import SurveyDesign, compute_weighted_mean
from auditor.surveys.mapping import SurveyMapping
from auditor.surveys.microdata import Microdata

Floats = NDArray[np.float64]
DECIMALS = 9
"""Decimals of the written figures; of scores that are compared, since those of a scale are rounded."""

RELATIVE_TOLERANCE = 1e-12
"""Part of all weights up to which a difference of sums of weights is a rounding error."""


class _Respondents(NamedTuple):
    """Some respondents of one country.

    Attributes:
        point_index: shape (respondents, topics), position of the answer in the points, -1 without an answer.
        weights: shape (respondents,).
        design: how they were drawn; None if each was drawn by themselves.
    """

    country: str
    dimension: str
    group: str
    point_index: NDArray[np.intp]
    weights: Floats
    design: SurveyDesign | None


def compute_distributions(
    microdata: Microdata, mapping: SurveyMapping, seed: int = 0, n_splits: int = 100
) -> SurveyDistributions | None:
    """Compute weighted shares of answers, with sample sizes and sampling errors, of all respondents and of each group.

    Args:
        seed, n_splits: of the random halves of respondents; with 0 splits there is no distance of halves.

    Returns:
        Groups with fewer than 30 respondents who answered are left out. None if a topic has a single score.
    """
    scales = _list_scales(mapping)
    if not scales:
        return None
    default = next(iter(scales.values()))
    point_index = np.full(microdata.answers.shape, -1, np.intp)
    topic_scores = [np.array([point.score for point in scales[topic].points]) for topic in microdata.topics]
    for topic_index, scores in enumerate(topic_scores):
        answers = microdata.answers[:, topic_index]
        # Scores of a scale are computed from codes, and differ from the points by rounding only.
        nearest = np.abs(np.nan_to_num(answers)[:, None] - scores).argmin(axis=1)
        point_index[:, topic_index] = np.where(np.isnan(answers), -1, nearest)
    rng = np.random.default_rng(seed)
    return SurveyDistributions(
        points=default.points,
        is_ordered=default.is_ordered,
        scales={topic: scale for topic, scale in scales.items() if scale != default},
        groups={name: mapping.groups[name].words_by_group for name in microdata.groups},
        without_group={name: int(np.count_nonzero(index == NO_GROUP)) for name, index in microdata.groups.items()},
        cells=tuple(
            cell
            for respondents in _divide_respondents(microdata, mapping, point_index)
            for cell in _compute_cells(respondents, microdata.topics, topic_scores, rng, n_splits)
        ),
    )


def _list_scales(mapping: SurveyMapping) -> dict[str, AnswerScale]:
    """The scale of each topic; empty if a topic has a single score."""
    scales: dict[str, AnswerScale] = {}
    for column, topic in mapping.topic_by_column.items():
        own_mapping = mapping.for_column(column)
        points = _list_points(own_mapping)
        if len(points) < 2:
            return {}
        scales[topic] = AnswerScale(points=points, is_ordered=own_mapping.answers is not None)
    return scales


def _list_points(mapping: SurveyMapping) -> tuple[AnswerPoint, ...]:
    """The answers of the scale from the lowest score to the highest; choices with one score are one point."""
    if mapping.answers is not None:
        low, high = mapping.answers.low, mapping.answers.high
        step = 1 if high > low else -1
        codes = range(low, high + step, step)
        return tuple(
            AnswerPoint(name=str(code), score=round(2 * (code - low) / (high - low) - 1, DECIMALS)) for code in codes
        )
    names_by_score: dict[float, list[str]] = {}
    for name, choice in (mapping.choices or {}).items():
        names_by_score.setdefault(choice.score, []).append(name)
    return tuple(AnswerPoint(name=" / ".join(names_by_score[score]), score=score) for score in sorted(names_by_score))


def _divide_respondents(
    microdata: Microdata, mapping: SurveyMapping, point_index: NDArray[np.intp]
) -> Iterator[_Respondents]:
    """Yield all respondents of each country, and those of each group."""
    for country, (start, end) in zip(microdata.countries, itertools.pairwise(microdata.country_offsets), strict=True):
        rows = slice(start, end)
        indices, weights = point_index[rows], microdata.weights[rows]
        design = microdata.designs.get(country)
        yield _Respondents(country, EVERYONE, EVERYONE, indices, weights, design)
        for dimension, group_index in microdata.groups.items():
            for position, group in enumerate(mapping.groups[dimension].words_by_group):
                is_member = group_index[rows] == position
                if np.count_nonzero(is_member) >= MIN_GROUP_SIZE:
                    domain = design.select(is_member) if design else None
                    yield _Respondents(country, dimension, group, indices[is_member], weights[is_member], domain)


def _compute_cells(
    respondents: _Respondents,
    topics: tuple[str, ...],
    topic_scores: Sequence[Floats],
    rng: np.random.Generator,
    n_splits: int,
) -> Iterator[CellShares]:
    """Yield the shares of each topic that enough of these respondents answered.

    Args:
        topic_scores: for each topic the scores of its answers.
    """
    minimum = MIN_GROUP_SIZE if respondents.dimension else 1
    # Shape (respondents, topics, points), the weight of each answer.
    max_points = max(map(len, topic_scores))
    answers = (respondents.point_index[:, :, None] == np.arange(max_points)) * respondents.weights[:, None, None]
    half_distances = _split_half_distances(answers, topic_scores, rng, n_splits)
    for topic_index, (topic, n_points) in enumerate(zip(topics, map(len, topic_scores), strict=True)):
        chosen = respondents.point_index[:, topic_index]
        is_answered = chosen >= 0
        n = int(np.count_nonzero(is_answered))
        if n < minimum:
            continue
        weights, chosen = respondents.weights[is_answered], chosen[is_answered]
        shares = np.bincount(chosen, weights, n_points) / weights.sum()
        design = respondents.design.select(is_answered) if respondents.design else None
        variances = _compute_cut_variances(chosen, weights, n_points, design)
        yield CellShares(
            country=respondents.country,
            topic=topic,
            dimension=respondents.dimension,
            group=respondents.group,
            shares=tuple(_round(shares)),
            n=n,
            n_effective=max(1.0, round(float(weights.sum() ** 2 / (weights @ weights)), 3)),
            cut_variances=None if variances is None else tuple(_round(variances)),
            split_half_distance=half_distances[topic_index],
        )


def _compute_cut_variances(
    chosen: NDArray[np.intp], weights: Floats, n_points: int, design: SurveyDesign | None
) -> Floats | None:
    """Variance of the share of answers up to each point but the last; None if the sample is too small.

    Without a design this is the variance of `compute_weighted_mean` for the indicator of these answers, from the sums
    of squared weights by answer.
    """
    if design is not None:
        errors = [compute_weighted_mean((chosen <= cut).astype(float), weights, design) for cut in range(n_points - 1)]
        variances = [error.standard_error**2 for error in errors if error.standard_error is not None]
        return np.array(variances) if len(variances) == n_points - 1 else None
    n = chosen.size
    if n < 2:
        return None
    up_to = np.cumsum(np.bincount(chosen, weights, n_points))
    squared = np.cumsum(np.bincount(chosen, weights**2, n_points))
    shares = up_to[:-1] / up_to[-1]
    residuals = squared[:-1] * (1 - shares) ** 2 + (squared[-1] - squared[:-1]) * shares**2
    result: Floats = n / (n - 1) * residuals / up_to[-1] ** 2
    return result


def _split_half_distances(
    answers: Floats, topic_scores: Sequence[Floats], rng: np.random.Generator, n_splits: int
) -> list[float | None]:
    """Mean distance of two random halves of the respondents, by topic; None where a half has no answer in a split.

    Args:
        answers: shape (respondents, topics, K), where a topic with fewer than K answers has zeros at the end.
        topic_scores: for each topic the scores of its answers.
    """
    n_respondents, n_topics, n_points = answers.shape
    if n_splits < 1 or n_respondents < 2:
        return [None] * n_topics
    membership = rng.permuted(np.tile(np.arange(n_respondents) % 2, (n_splits, 1)), axis=1).astype(float)
    first_half = (membership @ answers.reshape(n_respondents, -1)).reshape(n_splits, n_topics, n_points)
    total = answers.sum(axis=0)
    halves = (first_half, np.maximum(total - first_half, 0.0))
    # The second half may have rounding errors instead of zeros.
    minimum = RELATIVE_TOLERANCE * total.sum(axis=1)
    is_answered = [half.sum(axis=2) > minimum for half in halves]
    has_answers = np.logical_and(*(half.all(axis=0) for half in is_answered))
    # A half without answers has no shares; its topic is left out below.
    first, second = (np.where(mask[:, :, None], half, 1.0) for half, mask in zip(halves, is_answered, strict=True))
    means = np.zeros(n_topics)
    for scores in {tuple(scores): scores for scores in topic_scores}.values():
        of_scale = [topic for topic in range(n_topics) if np.array_equal(topic_scores[topic], scores)]
        of_halves = [half[:, of_scale, : len(scores)] for half in (first, second)]
        means[of_scale] = wasserstein(of_halves[0], of_halves[1], scores).mean(axis=0)
    return [float(_round(means)[topic]) if has_answers[topic] else None for topic in range(n_topics)]


def _round(values: Floats) -> list[float]:
    """Values with 9 decimals; shares then still add up to 1 within the tolerance."""
    return [float(value) for value in np.round(np.clip(values, 0.0, 1.0), DECIMALS)]
