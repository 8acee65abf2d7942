"""Where the uncertainty of each model's figures comes from, and what a larger audit would gain."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np

from auditor.domain import Method
from auditor.metrics._complete_cases import complete_cases
from auditor.metrics.cell_statistics import BIAS, MAE, PEARSON
from auditor.metrics.jackknife_interval import too_few_reason
from auditor.metrics.variance_components import (
    Design,
    VarianceComponents,
    cheapest_for_half_error,
    estimate_components,
    influence_values,
    language_variance,
    sizes_for_half_error,
)
from auditor.reports.data.report_model import ModelName, ReportModel
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.rescaled_scores import has_rescaled_scores
from auditor.reports.document import Column

Figure = Literal["r", "MAE", "bias"]
STATISTICS = {"r": PEARSON, "MAE": MAE, "bias": BIAS}


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
    figure: Annotated[Figure, Column("Figure")]
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
        for figure in (("r",) if has_rescaled_scores(method) else STATISTICS)
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
        values, slopes = influence_values(STATISTICS[figure], scores, truth)
        noise = sampling_variances(source.variance_matrix[column][is_complete], n_samples)
        components = estimate_components(
            values, countries, topics, None if noise is None else slopes**2 * noise, mean_samples
        )
        reason = None if components else "effects of countries, topics and cells cannot be separated on these cells"
    has_languages = components is not None and language_scores is not None and method == Method.DIRECT
    if components is not None and language_scores is not None and has_languages:
        scores_by_language = language_scores[:, source.models.index(model)]
        variance = language_variance(STATISTICS[figure], scores_by_language, source.survey_scores)
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
    if variance <= 0:
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
