"""How figures of agreement change without some countries, topics or models, and where their uncertainty comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Method
from auditor.metrics.intervals.estimate import complete_cases
from auditor.metrics.intervals.jackknife_interval import too_few_reason
from auditor.metrics.intervals.two_way import find_influential_unit, leave_out_range
from auditor.metrics.intervals.variance_components import (
    Design,
    VarianceComponents,
    cheapest_for_half_error,
    estimate_components,
    influence_values,
    language_variance,
    sampling_part,
    sizes_for_half_error,
)
from auditor.metrics.people.alignment import BIAS, MAE, PEARSON, Statistic
from auditor.reports.data.report_model import ROUNDING_ERROR, ModelName, ReportModel
from auditor.reports.data.report_source import FloatArray, ReportSource, has_rescaled_scores
from auditor.reports.document import Column

Figure = Literal["pearson_r", "mae", "bias"]
GroupNoun = Literal["cultural zone", "topic family", "topic"]
STATISTICS: Mapping[Figure, Statistic] = {"pearson_r": PEARSON, "mae": MAE, "bias": BIAS}


class LeftOutFigure(ReportModel):
    """A figure without one zone, family or topic."""

    value: float
    left_out: str
    """Name of the zone, family or topic."""


class SensitivityRow(ReportModel):
    """Range of one model's figure when each zone, family or topic in turn is left out. It shows how far the figure
    depends on a few countries or topics that are alike, which the intervals take as exchangeable with the others."""

    model: ModelName
    method: str
    figure: Annotated[Figure, Column("Figure")]
    without: Annotated[GroupNoun, Column("Left out in turn")]
    """What is left out: a zone of the Inglehart-Welzel map (a country that is not on it is a zone of its own), or a
    family of topics of the survey; single topics where the survey names no families."""
    groups: Annotated[int, Column("How many")]
    """Number of zones, families or topics with a score."""
    fewest_left: Annotated[int, Column("Fewest left")]
    """Fewest countries (without a zone) or topics (without a family or topic) with a score that any of them leaves."""
    lowest: Annotated[LeftOutFigure, Column("Lowest", part="value"), Column("Without", "name", part="left_out")]
    highest: Annotated[LeftOutFigure, Column("Highest", part="value"), Column("Without", "name", part="left_out")]


class _Grouping(NamedTuple):
    """Groups of cells that are left out in turn.

    Attributes:
        groups: the group of each cell, shape (cells,).
        units: the country or topic of each cell, shape (cells,), of which a group has one or more.
    """

    noun: GroupNoun
    groups: NDArray[np.str_]
    units: NDArray[np.str_]


def build_sensitivity_rows(source: ReportSource) -> list[SensitivityRow]:
    """Compute the range of r, MAE and bias of each series without each zone and without each family of topics."""
    if not source.columns:
        return []
    countries = np.array([cell.country for cell in source.cells], dtype=np.str_)
    topics = np.array([cell.topic for cell in source.cells], dtype=np.str_)
    groupings = [
        _Grouping("cultural zone", np.array([source.zone_by_country.get(c, c) for c in countries.tolist()]), countries),
        _Grouping(*_find_families(source), topics),
    ]
    return [row for column in range(len(source.columns)) for row in _build_series_rows(source, column, groupings)]


def _build_series_rows(source: ReportSource, column: int, groupings: Sequence[_Grouping]) -> Iterator[SensitivityRow]:
    """Yield the rows of one model and method; none where there is only one zone or family, or no figure."""
    method, model = source.columns[column]
    for figure, statistic in STATISTICS.items():
        if figure != "pearson_r" and has_rescaled_scores(method):
            continue
        for noun, groups, units in groupings:
            scores = source.score_matrix[column]
            value_range = leave_out_range(statistic, scores, source.survey_scores, groups)
            if value_range is None:
                continue
            has_score = ~np.isnan(scores) & ~np.isnan(source.survey_scores)
            lowest, highest = (LeftOutFigure(value=end.value, left_out=end.group) for end in value_range)
            yield SensitivityRow(
                model=model,
                method=method,
                figure=figure,
                without=noun,
                groups=len(names := np.unique(groups[has_score])),
                fewest_left=min(len(np.unique(units[has_score & (groups != name)])) for name in names),
                lowest=lowest,
                highest=highest,
            )


def _find_families(source: ReportSource) -> tuple[GroupNoun, NDArray[np.str_]]:
    """The family of each cell's topic, shape (cells,), and what it is called; the topic itself if there are none."""
    family_by_topic = {topic: family for family, topics in source.survey.topic_families.items() for topic in topics}
    return (
        "topic family" if family_by_topic.keys() & set(source.topics) else "topic",
        np.array([family_by_topic.get(cell.topic, cell.topic) for cell in source.cells], dtype=np.str_),
    )


# --- influence --------------------------------------------------------------------------------------------------


class InfluentialUnit(ReportModel):
    """A country or topic on which nearly all uncertainty of one model's figure over its kind rests."""

    model: str
    method: str
    figure: Figure
    """The mean absolute error, or r for scores without errors."""
    kind: Literal["country", "topic"]
    name: str
    share: float
    """Share of the jackknife variance over countries, or over topics, that is due to this one: above 0.8."""
    without: float
    """The figure without it."""


def find_influential_units(source: ReportSource) -> list[InfluentialUnit]:
    """Find the countries and topics with more than 0.8 of the variance of a series' main figure over their kind."""
    units: list[InfluentialUnit] = []
    places: tuple[tuple[Literal["country", "topic"], Sequence[str], NDArray[np.intp]], ...] = (
        ("country", source.countries, source.country_index),
        ("topic", source.topics, source.topic_index),
    )
    for column, (method, model) in enumerate(source.columns):
        figure: Figure = "pearson_r" if has_rescaled_scores(method) else "mae"
        arrays = (source.score_matrix[column], source.survey_scores)
        for kind, names, index in places:
            influence = find_influential_unit(STATISTICS[figure], *arrays, index)
            if influence is not None:
                units.append(
                    InfluentialUnit(
                        model=model,
                        method=method,
                        figure=figure,
                        kind=kind,
                        name=names[int(influence.unit)],
                        share=influence.share,
                        without=influence.value_without,
                    )
                )
    return units


VarianceFigure = Literal["r", "MAE", "bias"]
VARIANCE_STATISTICS = {"r": PEARSON, "MAE": MAE, "bias": BIAS}


class VarianceShares(ReportModel):
    """Shares of the variance of one figure, which add up to 1."""

    country: float
    topic: float
    cell: float
    """From what is peculiar to single cells, beyond their country and topic."""
    sample: float | None
    """From the randomness of answers; null where it is not known, with fewer than two samples a cell: it is in `cell`
    then."""
    language: float | None
    """From the choice of languages, of which each cell's score is the mean; null with one language."""


class HalfErrorSizes(ReportModel):
    """How many of one kind would halve the standard error, the others being as they are; null where none would."""

    sample: int | None
    """Samples of each cell."""
    topic: int | None
    country: int | None


class VarianceRow(ReportModel):
    """Where the uncertainty of one figure of one model comes from.

    Wording is not among the sources: all samples have the same.
    """

    model: ModelName
    method: str
    figure: Annotated[VarianceFigure, Column("Figure")]
    countries: int
    topics: int
    cells: int
    samples: float
    """Mean number of samples of a cell."""
    std_error: Annotated[float | None, Column("Standard error", digits=3, emphasis=True)]
    """Standard error of the figure that the components imply."""
    shares: Annotated[
        VarianceShares | None,
        Column("Samples", "number", part="sample", digits=0, style="percent"),
        Column("Cells", "number", part="cell", digits=0, style="percent"),
        Column("Topics", "number", part="topic", digits=0, style="percent"),
        Column("Countries", "number", part="country", digits=0, style="percent"),
        Column("Languages", "number", part="language", digits=0, style="percent"),
    ]
    negative: Annotated[list[str], Column("Set to 0")]
    """Sources whose estimate was negative and was set to 0: they are too small to be estimated."""
    to_halve: HalfErrorSizes | None
    cheapest: Literal["sample", "topic", "country"] | None
    """Which of `to_halve` takes the fewest further answers; null where none is enough."""
    reason: str | None = None
    """Why there are no shares."""


def build_variance_rows(source: ReportSource, language_scores: FloatArray | None) -> list[VarianceRow]:
    """Divide the variance of r, MAE and bias of each series of scores; rescaled scores have only r.

    Args:
        language_scores: mean direct scores by language, shape (languages, models, cells); None with one language.
    """
    return [
        _build_variance_row(source, column, figure, language_scores)
        for column, (method, _) in enumerate(source.columns)
        for figure in (("r",) if has_rescaled_scores(method) else VARIANCE_STATISTICS)
    ]


def _build_variance_row(
    source: ReportSource, column: int, figure: str, language_scores: FloatArray | None
) -> VarianceRow:
    """Divide the variance of one figure of one series."""
    method, model = source.columns[column]
    (scores, truth), is_complete = complete_cases(source.score_matrix[column], source.survey_scores)
    countries, topics = source.country_index[is_complete], source.topic_index[is_complete]
    n_samples = source.column_values("n_ok", column)[is_complete]
    # A score has at least one sample, whatever was recorded.
    mean_samples = float(np.nanmean(np.maximum(n_samples, 1.0))) if (~np.isnan(n_samples)).any() else 1.0
    n_units = (len(np.unique(countries)), len(np.unique(topics)))
    reason = too_few_reason({"country": [n_units[0]], "topic": [n_units[1]]})
    if reason is None and figure == "r" and min(np.ptp(scores), np.ptp(truth)) <= 1e-12:
        reason = "r is undefined"
    components = None
    if reason is None:
        statistic = VARIANCE_STATISTICS[figure]
        values, _ = influence_values(statistic, scores, truth)
        noise = sampling_variances(source.variance_matrix[column][is_complete], n_samples)
        part = None if noise is None else sampling_part(statistic, scores, truth, noise)
        components = estimate_components(values, countries, topics, part, mean_samples)
        reason = None if components else "effects of countries, topics and cells cannot be separated on these cells"
    has_languages = components is not None and language_scores is not None and method == Method.DIRECT
    if components is not None and language_scores is not None and has_languages:
        scores_by_language = language_scores[:, source.models.index(model)]
        variance = language_variance(VARIANCE_STATISTICS[figure], scores_by_language, source.survey_scores)
        components = replace(components, language=variance)
    design = Design(*n_units, mean_samples)
    values_of_row = _describe_components(components, design, has_languages) if components else {"reason": reason}
    return VarianceRow.model_validate(
        {
            "model": model, "method": method, "figure": figure, "countries": n_units[0], "topics": n_units[1],
            "cells": len(scores), "samples": mean_samples, "std_error": None, "shares": None, "negative": [],
            "to_halve": None, "cheapest": None, **values_of_row,
        }
    )  # fmt: skip


def _describe_components(components: VarianceComponents, design: Design, has_languages: bool) -> dict[str, object]:
    """The fields of `VarianceRow` that follow from the components."""
    variance = components.variance(design)
    if variance <= ROUNDING_ERROR**2:
        return {"reason": "the figure does not vary between cells"}
    contributions = components.contributions(design)
    shares = {kind: contribution / variance for kind, contribution in contributions.items()}
    sizes = sizes_for_half_error(components, design)
    return {
        "std_error": variance**0.5,
        "shares": {
            **shares,
            "sample": shares["sample"] if components.sample else None,
            "language": shares["language"] if has_languages else None,
        },
        "negative": list(components.negative),
        "to_halve": sizes,
        "cheapest": cheapest_for_half_error(sizes, design),
    }


def sampling_variances(variances: FloatArray, n_samples: FloatArray) -> FloatArray | None:
    """Variance of each cell's mean score over its samples, shape (cells,); None where no cell has two samples.

    Cells with one sample get the pooled variance of the others.
    """
    known = ~np.isnan(variances) & (n_samples > 1)
    if not known.any():
        return None
    pooled = float(variances[known].mean())
    means: FloatArray = np.where(known, variances, pooled) / np.fmax(n_samples, 1.0)
    return means
