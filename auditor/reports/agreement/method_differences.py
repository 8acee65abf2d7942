"""What asking a model finds beyond reading its log-probabilities, as in the paper's first table."""

from __future__ import annotations

import numpy as np

from auditor.domain import Measure, Method
from auditor.metrics.bootstrap import PEARSON
from auditor.metrics.correlation import pearson
from auditor.metrics.jackknife import paired_jackknife
from auditor.reports.coverage.missing_scores import explained, unscored, why_no_r
from auditor.reports.estimate_conversion import resampled
from auditor.reports.measurement_schema import Estimate, Part
from auditor.reports.report_source import Source


class MethodRow(Part):
    """One model's two scores against people: r(direct) less r(logprob), over the cells that have both."""

    model: str
    measures: list[str]
    """What the log-probabilities were read from; empty where nothing could be."""
    difference: Estimate
    """Interval over countries and topics, paired."""
    direct_r: float | None
    """Over those cells."""
    logprob_r: float | None


def methods(source: Source) -> list[MethodRow]:
    """One row for each model that has scores by both methods; nothing where only one was asked for."""
    column = {key: i for i, key in enumerate(source.columns)}
    both = [
        (model, column[Method.DIRECT.value, model], column[Method.LOGPROB.value, model])
        for model in source.models
        if {(Method.DIRECT.value, model), (Method.LOGPROB.value, model)} <= column.keys()
    ]
    return [_row(source, *item) for item in both]


def _row(source: Source, model: str, direct: int, logprob: int) -> MethodRow:
    asked, read = source.matrix[direct], source.matrix[logprob]
    there = ~(np.isnan(asked) | np.isnan(read) | np.isnan(source.truth))
    place = (source.country_index, source.topic_index)
    r = [pearson(x[there], source.truth[there]) for x in (asked, read)]
    found = resampled(paired_jackknife(PEARSON, asked, read, source.truth, *place))
    used = {s.measure for s in source.scores if (s.method, s.model) == (Method.LOGPROB.value, model) and s.measure}
    whole = [unscored(source, column) for column in (logprob, direct)]
    flat = [f"{how}: {why_no_r(x)}" for how, x in zip(("direct", "log-probability"), r, strict=True) if x.r is None]
    why = next((text for text in (*whole, "; ".join(flat)) if text), None)
    return MethodRow(
        model=model,
        measures=[m.value for m in Measure if m in used],
        difference=explained(found, why),
        direct_r=r[0].r,
        logprob_r=r[1].r,
    )
