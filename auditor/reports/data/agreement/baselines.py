"""Reference points for agreement with people: the survey's reliability, simple baselines, and r within topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from auditor.domain import Cell
from auditor.errors import AuditorError
from auditor.metrics.intervals.correlation import within_topic_correlation
from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.metrics.intervals.jackknife_interval import LOG
from auditor.metrics.intervals.multiple_testing import intersection_union
from auditor.metrics.intervals.two_way import crossed_jackknife, paired_jackknife
from auditor.metrics.people.alignment import MAE, PEARSON
from auditor.reports.data.adjusted_tests import adjust_claims, adjust_rows
from auditor.reports.data.coverage.lost_samples import missing_score_reason, with_missing_reason
from auditor.reports.data.measurement_schema import BaselineRow, CeilingRow, GainRow, GuessClaim, GuessLevel
from auditor.reports.data.report_source import RESCALED_SCORES_REASON, FloatArray, ReportSource, has_rescaled_scores
from auditor.surveys.baselines import (
    NEAREST_BY_NAME,
    compute_baselines as compute_leave_one_out_baselines,
    compute_fitted_baselines,
    estimate_from_similar_countries,
)
from auditor.surveys.survey_facts import Reliability, SurveyFacts, load_survey_facts

BASELINES_BY_LEVEL: Mapping[GuessLevel, tuple[str, ...]] = {
    "means": ("topic mean", "country mean", "regional mean"),
    "similar countries": tuple(NEAREST_BY_NAME),
}
"""The guesses that a claim of each level is about."""
NO_VARIATION_REASONS = {
    "scores constant within topics": "the model gives a topic the same score in every country",
    "truth constant within topics": "people’s score of a topic is the same in every country",
    "scores and truth constant within topics": "neither the model nor people differ between countries on any topic",
}


def compute_ceilings(source: ReportSource) -> list[CeilingRow]:
    """Compute the survey's split-half reliability and the largest r it allows, over all cells and within topics.

    Both are null, with a reason, where the respondents are not known.
    """
    facts = load_source_facts(source)
    if isinstance(facts, str):
        return [
            CeilingRow(scope=scope, reliability=Estimate(None, 0, reason=facts), largest_r=None)
            for scope in ("all", "within topics")
        ]
    return [
        _build_ceiling_row("all", facts.reliability),
        _build_ceiling_row("within topics", facts.reliability_within_topics),
    ]


def load_source_facts(source: ReportSource) -> SurveyFacts | str:
    """Load the facts stored beside the survey, or return the reason why there are none."""
    file = source.survey.file if source.config is None else source.config.survey and source.config.survey.source
    if file is None:
        return "the audit has no survey"
    if not file:
        return "scores were imported without the survey’s respondents"
    try:
        facts = load_survey_facts(file)
    except AuditorError as error:
        return error.message
    return facts or "the survey has no data on individual respondents"


def _build_ceiling_row(scope: str, reliability: Reliability) -> CeilingRow:
    """Build the row of one scope (`all` or `within topics`) from the reliability of the survey in that scope."""
    estimate = Estimate(
        value=reliability.reliability,
        n=reliability.n,
        ci_low=reliability.low,
        ci_high=reliability.high,
        reason=reliability.reason or None,
    )
    return CeilingRow(scope=scope, reliability=estimate, largest_r=reliability.ceiling)


def compute_baselines(source: ReportSource) -> list[BaselineRow]:
    """Compute r and MAE of each baseline, and the model's MAE minus it, over the cells that each model has scores on.

    r uses baselines that see the cell they predict and MAE those that leave it out: among n countries a leave-one-out
    mean correlates -1 with the survey within a topic. P-values are adjusted in each level of guesses by itself.
    """
    similar = estimate_from_similar_countries(source.survey)
    leave_one_out = compute_leave_one_out_baselines(source.survey) | similar
    fitted = compute_fitted_baselines(source.survey) | similar
    return [
        row
        for level, names in BASELINES_BY_LEVEL.items()
        for row in adjust_rows(
            [
                _build_baseline_row(
                    source,
                    column,
                    name,
                    _align_to_cells(source, leave_one_out[name]),
                    _align_to_cells(source, fitted[name]),
                )
                for column in range(len(source.columns))
                for name in names
            ],
            "mae_difference",
            f"baselines compared with models: {level}",
        )
    ]


def build_guess_claims(source: ReportSource, rows: Sequence[BaselineRow]) -> list[GuessClaim]:
    """Whether each series of scores is closer to people than all guesses of a level.

    A claim needs every comparison of its level at 5%: its p-value is the largest of theirs (intersection-union), where
    one on the other side of 0 counts as 1. P-values are adjusted for the series (Holm), in each level by itself.
    """
    claims: list[GuessClaim] = []
    for level, names in BASELINES_BY_LEVEL.items():
        p_values = []
        for method, model in source.columns:
            of_series = [row for row in rows if (row.method, row.model) == (method, model)]
            # A guess that exists for no cell, such as the mean of a region for countries in none, is no comparison.
            compared = [row for row in of_series if row.baseline in names and row.mae.value is not None]
            p_values.append(intersection_union([_p_of_being_closer(row) for row in compared]))
        tests = adjust_claims(p_values, f"models closer than all guesses: {level}")
        claims += [
            GuessClaim(
                model=model,
                method=method,
                level=level,
                is_closer=test.is_significant,
                **dict(test),
            )
            for (method, model), test in zip(source.columns, tests, strict=True)
        ]
    return claims


def _p_of_being_closer(row: BaselineRow) -> float:
    """The two-sided p-value where the model is closer than the baseline, 1 where it is not, nan without a test."""
    difference = row.mae_difference
    if difference.p_value is None:
        return float("nan")
    return difference.p_value if (difference.value or 0.0) < 0 else 1.0


def _build_baseline_row(
    source: ReportSource, column: int, baseline: str, leave_one_out_scores: FloatArray, full_scores: FloatArray
) -> BaselineRow:
    """Compute r and MAE of one baseline against people, over the cells on which one model has a score.

    `column` is the index of the model and method in `source.columns`.
    """
    method, model = source.columns[column]
    missing = np.isnan(source.score_matrix[column]) | np.isnan(leave_one_out_scores)
    truth = np.where(missing, np.nan, source.survey_scores)
    places = (source.cluster_countries(full_scores, truth), source.topic_index)
    r, mae = (
        crossed_jackknife(statistic, scores, truth, *places)
        for statistic, scores in ((PEARSON, full_scores), (MAE, leave_one_out_scores))
    )
    missing_reason = missing_score_reason(source, column)
    difference = _compare_errors(source, column, leave_one_out_scores)
    return BaselineRow(
        model=model,
        method=method,
        baseline=baseline,
        pearson_r=with_missing_reason(r, missing_reason),
        mae=with_missing_reason(mae, missing_reason),
        mae_difference=with_missing_reason(difference, missing_reason),
    )


def _compare_errors(source: ReportSource, column: int, baseline_scores: FloatArray) -> Tested:
    """A model's MAE minus a baseline's on the cells that both have.

    They are compared on the scale of their logarithms: where a guess errs much more than the model, its error also
    varies much more, and the difference is skewed.
    """
    if has_rescaled_scores(source.columns[column][0]):
        return Tested(None, 0, reason=RESCALED_SCORES_REASON)
    compared = (source.score_matrix[column], baseline_scores, source.survey_scores)
    return paired_jackknife(MAE, *compared, source.cluster_countries(*compared), source.topic_index, LOG)


def compute_gains(source: ReportSource) -> list[GainRow]:
    """Compute each model's correlation with people within topics, across countries; tests are adjusted for models."""
    rows = [_build_gain_row(source, column) for column in range(len(source.columns))]
    return adjust_rows(rows, "within_topics", "agreement on differences between countries")


def _build_gain_row(source: ReportSource, column: int) -> GainRow:
    """Compute one model's within-topic correlation, with metric reasons replaced by plain text."""
    method, model = source.columns[column]
    compared = (source.score_matrix[column], source.survey_scores)
    correlation = within_topic_correlation(*compared, source.cluster_countries(*compared), source.topic_index)
    reworded_correlation = replace(
        correlation, reason=NO_VARIATION_REASONS.get(correlation.reason or "", correlation.reason)
    )
    within_topics = with_missing_reason(reworded_correlation, missing_score_reason(source, column))
    return GainRow(model=model, method=method, within_topics=within_topics)


def _align_to_cells(source: ReportSource, scores: Mapping[Cell, float]) -> FloatArray:
    """Arrange predictions in the order of the cells, shape (cells,); nan where a cell has none."""
    return np.array([scores.get(cell, np.nan) for cell in source.cells], dtype=float)
