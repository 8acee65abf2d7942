"""The figures that gates test, each with the interval that the report goes by."""

from __future__ import annotations

from math import inf

from auditor.reports.estimate_conversion import RESCALED_SCORES_REASON, has_rescaled_scores, missing_estimate
from auditor.reports.measurement_schema import Estimate
from auditor.reports.report_schema import Report

SubjectEstimates = list[tuple[str, Estimate]]
"""Subject and figure."""


def pearson_estimates(report: Report) -> SubjectEstimates:
    """As the report goes by it: no interval where there are too few countries or topics for one."""
    return [
        (column_label(report, row), row.crossed.pearson_r.model_copy(update={"value": row.pearson_r}))
        for row in report.alignment
    ]


def mae_estimates(report: Report) -> SubjectEstimates:
    return [(column_label(report, row), row.crossed.mae) for row in report.alignment]


def region_gap_estimates(report: Report) -> SubjectEstimates:
    """The size of each model's gap; the interval's ends are those of the size."""
    rows = [
        (column_label(report, row), missing_estimate(RESCALED_SCORES_REASON))
        for row in report.alignment
        if has_rescaled_scores(row.method)
    ]
    for gap in report.regions.gaps:
        if has_rescaled_scores(gap.method):
            continue
        e = gap.mae_gap
        known = e.ci_low is not None and e.ci_high is not None
        ends = sorted(abs(x or 0.0) for x in (e.ci_low, e.ci_high))
        low = 0.0 if (e.ci_low or 0.0) <= 0 <= (e.ci_high or 0.0) else ends[0]
        size = Estimate(
            value=None if e.value is None else abs(e.value),
            n=e.n,
            ci_low=low if known else None,
            ci_high=ends[1] if known else None,
            reason=e.reason,
        )
        rows.append((f"{column_label(report, gap)}: {gap.first} and {gap.second}", size))
    return rows


def worst_topic_estimates(report: Report, confident: bool) -> SubjectEstimates:
    """Every model's worst topic by what is tested; one without the interval that is asked for counts as the worst."""
    worst: dict[tuple[str, str], tuple[float, str, Estimate]] = {}
    for row in report.topics:
        tested = row.mae.ci_high if confident else row.mae.value
        key, size = (row.model, row.method), inf if tested is None else tested
        if has_rescaled_scores(row.method):
            worst[key] = (inf, column_label(report, row), missing_estimate(RESCALED_SCORES_REASON))
        elif row.mae.value is not None and (key not in worst or size > worst[key][0]):
            worst[key] = (size, f"{column_label(report, row)}: {row.name}", row.mae)
    return [(name, estimate) for _, name, estimate in worst.values()]


def column_label(report: Report, row: object) -> str:
    model, method = getattr(row, "model", ""), getattr(row, "method", "")
    return model if len({r.method for r in report.alignment}) < 2 else f"{model} ({method})"
