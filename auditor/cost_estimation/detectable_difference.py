"""The smallest difference between two models that a planned audit can be expected to find."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig, load_stored_config
from auditor.domain import Cell, Method, Survey
from auditor.metrics.intervals.jackknife_interval import MIN_UNITS, too_few_reason
from auditor.metrics.intervals.variance_components import (
    SOURCES,
    Design,
    VarianceComponents,
    detectable_difference,
    estimate_components,
    influence_values,
    sampling_part,
)
from auditor.metrics.people.alignment import MAE, PEARSON, Statistic
from auditor.reports.data.agreement.sensitivity import sampling_variances
from auditor.reports.data.cost import DetectableDifferences
from auditor.reports.data.report_source import FloatArray, ReportSource, load_source
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.surveys.baselines import compute_baselines, compute_fitted_baselines

MAX_PAIRS = 50
"""Pairs of models of an earlier audit whose components are averaged."""
SIMPLE_PREDICTIONS = "predicting each cell by its topic’s mean and by its country’s mean"
"""The source of the variation where no earlier audit of the survey is known."""


def plan_detectable_differences(
    config: AuditConfig, survey: Survey, cells: Sequence[Cell], db: Database | None
) -> DetectableDifferences | None:
    """The smallest differences of MAE and r that are found with 80% power; None where no scores are compared.

    The components of variance are those of the latest finished audit of real models with the same survey in the
    database. Without one
    they are those of two simple predictions from the survey itself: the mean of the topic and that of the country.

    Args:
        cells: that the audit would ask about.
        db: the database in which it would be run; None without one.
    """
    if survey.task is not None or not config.probes.direct:
        return None
    scored = [cell for cell in cells if cell in survey.scores]
    n_units = len({cell.country for cell in scored}), len({cell.topic for cell in scored})
    samples = max(1, max(config.samples_by_cell(survey).values(), default=1))
    reason = too_few_reason({"country": [n_units[0]], "topic": [n_units[1]]})
    if reason is not None:
        return DetectableDifferences(
            mae=None, pearson_r=None, countries=n_units[0], topics=n_units[1], samples=samples, basis="", reason=reason
        )
    measured = None if db is None else _measure_earlier_audit(db, survey)
    by_figure, basis = measured or (_measure_simple_predictions(survey, scored), SIMPLE_PREDICTIONS)
    design = Design(*n_units, samples)
    mae, r = (None if components is None else detectable_difference(components, design) for components in by_figure)
    return DetectableDifferences(
        mae=mae,
        pearson_r=None if r is None else min(r, 2.0),
        countries=n_units[0],
        topics=n_units[1],
        samples=samples,
        basis=basis,
        reason=None if mae is not None else "the components of variance are not known",
    )


_Components = tuple[VarianceComponents | None, VarianceComponents | None]
"""Of the differences of MAE and of r between two models."""


def _measure_earlier_audit(db: Database, survey: Survey) -> tuple[_Components, str] | None:
    """The mean components of the pairs of models of the latest finished audit of a survey; None without one."""
    same_survey = [audit for audit in audits.load_audits(db) if audits.load_audit_survey(db, audit).name == survey.name]
    # Imported scores have no configuration, and no stages. Simulated models vary less than real ones.
    finished = [audit for audit in same_survey if audit.config is None or audit.stage in audits.FINAL_STAGES]
    for audit in (audit for audit in reversed(finished) if not _is_simulated(audit)):
        source = load_source(db, audit.name)
        columns = [i for i, (method, _) in enumerate(source.columns) if method == Method.DIRECT]
        pairs = [
            components
            for pair in list(combinations(columns, 2))[:MAX_PAIRS]
            if (components := _compare_columns(source, *pair)) is not None
        ]
        if pairs:
            by_figure = tuple(_average([pair[figure] for pair in pairs]) for figure in (0, 1))
            return (by_figure[0], by_figure[1]), f"the audit “{audit.name}” of the same survey"
    return None


def _is_simulated(audit: audits.Audit) -> bool:
    """Whether the models of an audit are simulated."""
    config = load_stored_config(audit.config)
    return config is not None and config.is_simulated


def _compare_columns(
    source: ReportSource, first: int, second: int
) -> tuple[VarianceComponents, VarianceComponents] | None:
    """Components of the differences of MAE and of r between two series; None with too few countries or topics."""
    has_all = ~np.isnan(source.score_matrix[[first, second]]).any(axis=0) & ~np.isnan(source.survey_scores)
    countries, topics = source.country_index[has_all], source.topic_index[has_all]
    truth = source.survey_scores[has_all]
    if not has_all.any() or min(len(np.unique(countries)), len(np.unique(topics))) < MIN_UNITS:
        return None
    scores = source.score_matrix[[first, second]][:, has_all]
    if min(np.ptp(truth), *(np.ptp(column) for column in scores)) <= 1e-12:
        return None
    sizes = [source.column_values("n_ok", column)[has_all] for column in (first, second)]
    noise = [
        sampling_variances(source.variance_matrix[column][has_all], size)
        for column, size in zip((first, second), sizes, strict=True)
    ]
    counts = np.concatenate(sizes)
    samples = 1.0 if np.isnan(counts).all() else max(1.0, float(np.nanmean(counts)))
    mae, r = (_difference_components(s, scores, truth, countries, topics, noise, samples) for s in (MAE, PEARSON))
    return None if mae is None or r is None else (mae, r)


def _difference_components(
    statistic: Statistic,
    scores: Sequence[FloatArray] | FloatArray,
    truth: FloatArray,
    countries: NDArray[np.generic],
    topics: NDArray[np.generic],
    noise: Sequence[FloatArray | None] = (None, None),
    samples: float = 1.0,
) -> VarianceComponents | None:
    """Components of the difference of a statistic between two series.

    Args:
        scores: of the two series, shape (cells,) each.
        noise: variance of each cell's mean score over its samples, by series; None where it is not known.
    """
    first, second = (influence_values(statistic, column, truth)[0] for column in scores)
    variances = [
        sampling_part(statistic, column, truth, variance)
        for column, variance in zip(scores, noise, strict=True)
        if variance is not None
    ]
    sampling = sum(variances[1:], variances[0]) if variances else None
    return estimate_components(first - second, countries, topics, sampling, samples)


def _measure_simple_predictions(survey: Survey, cells: Sequence[Cell]) -> _Components:
    """Components of the differences between two predictions: the mean of the topic, and the mean of the country."""
    components = []
    for statistic, baselines in ((MAE, compute_baselines(survey)), (PEARSON, compute_fitted_baselines(survey))):
        predictions = [baselines[name] for name in ("topic mean", "country mean")]
        shared = [cell for cell in cells if all(cell in prediction for prediction in predictions)]
        truth = np.array([survey.scores[cell] for cell in shared])
        scores = [np.array([prediction[cell] for cell in shared]) for prediction in predictions]
        countries, topics = (np.array([cell[i] for cell in shared], dtype=np.str_) for i in (0, 1))
        is_usable = bool(shared) and min(np.ptp(column) for column in (truth, *scores)) > 1e-12
        is_usable = is_usable and min(len(np.unique(countries)), len(np.unique(topics))) >= MIN_UNITS
        components.append(_difference_components(statistic, scores, truth, countries, topics) if is_usable else None)
    return components[0], components[1]


def _average(components: Sequence[VarianceComponents]) -> VarianceComponents:
    """The mean of each component."""
    country, topic, cell, sample = (float(np.mean([getattr(pair, kind) for pair in components])) for kind in SOURCES)
    return VarianceComponents(country, topic, cell, sample)
