"""Agreement with people by direct questions against log-probabilities, as in table 1 of the paper."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from auditor.domain import LogprobMeasure, Method
from auditor.metrics.cell_statistics import PEARSON
from auditor.metrics.correlation import pearson
from auditor.metrics.estimate import Tested
from auditor.metrics.jackknife import paired_jackknife
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.coverage.missing_scores import missing_r_reason, missing_score_reason, with_missing_reason
from auditor.reports.data.report_model import ModelName, ReportModel, p_column
from auditor.reports.data.report_source import ReportSource
from auditor.reports.document import Column


class MethodDifferenceRow(ReportModel):
    """One model's r with people by direct questions minus its r by log-probabilities, over the cells that have both."""

    model: ModelName
    direct_r: Annotated[float | None, Column("r of answers")]
    """r of the direct scores, over the same cells."""
    logprob_r: Annotated[float | None, Column("r of log-probabilities")]
    measures: Annotated[list[str], Column("Measure", key="measure")]
    """Measures that the log-probabilities were read with; empty where none could be read."""
    difference: Annotated[Tested, Column("Difference in r", style="signed", emphasis=True), p_column()]
    """Paired difference; interval over countries and topics."""


def compare_methods(source: ReportSource) -> list[MethodDifferenceRow]:
    """Compare the two methods for each model that has scores by both; empty where only one was asked for."""
    column_by_series = {key: i for i, key in enumerate(source.columns)}
    model_columns = [
        (model, column_by_series[Method.DIRECT.value, model], column_by_series[Method.LOGPROB.value, model])
        for model in source.models
        if {(Method.DIRECT.value, model), (Method.LOGPROB.value, model)} <= column_by_series.keys()
    ]
    rows = [_build_method_row(source, *columns) for columns in model_columns]
    return adjust_rows(rows, "difference", "answers compared with log-probabilities")


def _build_method_row(source: ReportSource, model: str, direct_column: int, logprob_column: int) -> MethodDifferenceRow:
    """Compute the paired difference in r of one model, with the reason if either method has no r."""
    direct_scores, logprob_scores = source.score_matrix[direct_column], source.score_matrix[logprob_column]
    is_shared = ~(np.isnan(direct_scores) | np.isnan(logprob_scores) | np.isnan(source.survey_scores))
    places = (source.cluster_countries(direct_scores, logprob_scores, source.survey_scores), source.topic_index)
    correlations = [
        pearson(scores[is_shared], source.survey_scores[is_shared]) for scores in (direct_scores, logprob_scores)
    ]
    difference = paired_jackknife(PEARSON, direct_scores, logprob_scores, source.survey_scores, *places)
    measures_used = {
        score.measure
        for score in source.scores
        if (score.method, score.model) == (Method.LOGPROB.value, model) and score.measure
    }
    score_reasons = [missing_score_reason(source, column) for column in (logprob_column, direct_column)]
    correlation_reasons = [
        f"{method_label}: {missing_r_reason(correlation)}"
        for method_label, correlation in zip(("direct", "log-probability"), correlations, strict=True)
        if correlation.value is None
    ]
    missing_reason = next((reason for reason in (*score_reasons, "; ".join(correlation_reasons)) if reason), None)
    return MethodDifferenceRow(
        model=model,
        measures=[m.value for m in LogprobMeasure if m in measures_used],
        difference=with_missing_reason(difference, missing_reason),
        direct_r=correlations[0].value,
        logprob_r=correlations[1].value,
    )
