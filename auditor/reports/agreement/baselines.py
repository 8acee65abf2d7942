"""How high agreement could be, how high it is without any model, and what a model knows beyond that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from auditor.domain import Cell
from auditor.errors import AuditorError
from auditor.metrics.bootstrap import MAE, PEARSON
from auditor.metrics.jackknife import crossed_jackknife
from auditor.metrics.within_topic import within_topic_correlation
from auditor.reports.coverage.missing_scores import missing_score_reason, with_missing_reason
from auditor.reports.estimate_conversion import interval_to_estimate, missing_estimate
from auditor.reports.measurement_schema import BaselineRow, CeilingRow, Estimate, GainRow
from auditor.reports.report_source import FloatArray, ReportSource
from auditor.surveys.baselines import compute_baselines as baselines_of
from auditor.surveys.baselines import compute_fitted_baselines
from auditor.surveys.survey_facts import Reliability, SurveyFacts, load_survey_facts

NO_VARIATION_REASONS = {
    "scores constant within topics": "the model says the same of a topic in every country",
    "truth constant within topics": "people say the same of a topic in every country",
    "scores and truth constant within topics": "neither the model nor people differ between countries on any topic",
}


def compute_ceilings(source: ReportSource) -> list[CeilingRow]:
    """The survey's agreement with itself, over all its cells and within topics; null where no respondents are known."""
    facts = _load_survey_facts(source)
    if isinstance(facts, str):
        return [
            CeilingRow(scope=s, reliability=missing_estimate(facts), largest_r=None) for s in ("all", "within topics")
        ]
    return [
        _build_ceiling_row("all", facts.reliability),
        _build_ceiling_row("within topics", facts.reliability_within_topics),
    ]


def _load_survey_facts(source: ReportSource) -> SurveyFacts | str:
    """The facts beside the survey, or why there are none."""
    if source.config is None:
        return "scores were imported, and with them no respondents"
    if source.config.survey is None:
        return "the audit has no survey"
    try:
        facts = load_survey_facts(source.config.survey.source)
    except AuditorError as error:
        return error.message
    return facts or "the survey came without its respondents, so it cannot be split in halves"


def _build_ceiling_row(scope: str, reliability: Reliability) -> CeilingRow:
    estimate = Estimate(
        value=reliability.reliability,
        n=reliability.n,
        ci_low=reliability.low,
        ci_high=reliability.high,
        reason=reliability.reason or None,
    )
    return CeilingRow(scope=scope, reliability=estimate, largest_r=reliability.ceiling)


def compute_baselines(source: ReportSource) -> list[BaselineRow]:
    """Every baseline on the cells of every model."""
    left_out, full = baselines_of(source.survey), compute_fitted_baselines(source.survey)
    return [
        _build_baseline_row(source, column, name, _align_to_cells(source, others), _align_to_cells(source, full[name]))
        for column in range(len(source.columns))
        for name, others in left_out.items()
    ]


def _build_baseline_row(
    source: ReportSource, column: int, baseline: str, leave_one_out_scores: FloatArray, full_scores: FloatArray
) -> BaselineRow:
    method, model = source.columns[column]
    missing = np.isnan(source.score_matrix[column]) | np.isnan(leave_one_out_scores)
    r, error = (
        interval_to_estimate(
            crossed_jackknife(
                statistic,
                np.where(missing, np.nan, scores),
                source.survey_scores,
                source.country_index,
                source.topic_index,
            )
        )
        for statistic, scores in ((PEARSON, full_scores), (MAE, leave_one_out_scores))
    )
    why = missing_score_reason(source, column)
    return BaselineRow(
        model=model,
        method=method,
        baseline=baseline,
        pearson_r=with_missing_reason(r, why),
        mae=with_missing_reason(error, why),
    )


def compute_gains(source: ReportSource) -> list[GainRow]:
    """What every model knows beyond what each topic is like everywhere."""
    return [_build_gain_row(source, column) for column in range(len(source.columns))]


def _build_gain_row(source: ReportSource, column: int) -> GainRow:
    method, model = source.columns[column]
    found = within_topic_correlation(
        source.score_matrix[column], source.survey_scores, source.country_index, source.topic_index
    )
    told = replace(found, reason=NO_VARIATION_REASONS.get(found.reason or "", found.reason))
    within = with_missing_reason(interval_to_estimate(told), missing_score_reason(source, column))
    return GainRow(model=model, method=method, within_topics=within, p_value=found.p_value)


def _align_to_cells(source: ReportSource, scores: Mapping[Cell, float]) -> FloatArray:
    """Predictions, shape (cells,); nan where there is nothing to go by."""
    return np.array([scores.get(cell, np.nan) for cell in source.cells], dtype=float)
