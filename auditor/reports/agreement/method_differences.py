"""What asking a model finds beyond reading its log-probabilities, as in the paper's first table."""

from __future__ import annotations

import numpy as np

from auditor.domain import LogprobMeasure, Method
from auditor.metrics.bootstrap import PEARSON
from auditor.metrics.correlation import pearson
from auditor.metrics.jackknife import paired_jackknife
from auditor.reports.coverage.missing_scores import missing_r_reason, missing_score_reason, with_missing_reason
from auditor.reports.estimate_conversion import interval_to_estimate
from auditor.reports.measurement_schema import Estimate, ReportModel
from auditor.reports.report_source import ReportSource


class MethodDifferenceRow(ReportModel):
    """One model's two scores against people: r(direct) less r(logprob), over the cells that have both."""

    model: str
    measures: list[str]
    """What the log-probabilities were read from; empty where nothing could be."""
    difference: Estimate
    """Interval over countries and topics, paired."""
    direct_r: float | None
    """Over those cells."""
    logprob_r: float | None


def compare_methods(source: ReportSource) -> list[MethodDifferenceRow]:
    """One row for each model that has scores by both methods; nothing where only one was asked for."""
    column = {key: i for i, key in enumerate(source.columns)}
    both = [
        (model, column[Method.DIRECT.value, model], column[Method.LOGPROB.value, model])
        for model in source.models
        if {(Method.DIRECT.value, model), (Method.LOGPROB.value, model)} <= column.keys()
    ]
    return [_build_method_row(source, *item) for item in both]


def _build_method_row(source: ReportSource, model: str, direct_column: int, logprob_column: int) -> MethodDifferenceRow:
    asked, read = source.score_matrix[direct_column], source.score_matrix[logprob_column]
    there = ~(np.isnan(asked) | np.isnan(read) | np.isnan(source.survey_scores))
    place = (source.country_index, source.topic_index)
    r = [pearson(x[there], source.survey_scores[there]) for x in (asked, read)]
    found = interval_to_estimate(paired_jackknife(PEARSON, asked, read, source.survey_scores, *place))
    used = {s.measure for s in source.scores if (s.method, s.model) == (Method.LOGPROB.value, model) and s.measure}
    whole = [missing_score_reason(source, column) for column in (logprob_column, direct_column)]
    flat = [
        f"{how}: {missing_r_reason(x)}" for how, x in zip(("direct", "log-probability"), r, strict=True) if x.r is None
    ]
    why = next((text for text in (*whole, "; ".join(flat)) if text), None)
    return MethodDifferenceRow(
        model=model,
        measures=[m.value for m in LogprobMeasure if m in used],
        difference=with_missing_reason(found, why),
        direct_r=r[0].r,
        logprob_r=r[1].r,
    )
