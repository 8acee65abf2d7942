"""The estimates that gates test, each with the interval that the report uses."""

from __future__ import annotations

from math import inf
from typing import Literal

from auditor.domain import Purpose
from auditor.domain.opinions import OpinionMode
from auditor.metrics.estimate import Estimate
from auditor.reports.data.coverage.lost_samples import UNKNOWN_SIGN_REASON, has_unknown_sign
from auditor.reports.data.report_schema import Report
from auditor.reports.data.rescaled_scores import RESCALED_SCORES_REASON, has_rescaled_scores

SETTINGS_REASON = "the configured sampling settings were not accepted, so it cannot be compared"
SubjectEstimates = list[tuple[str, Estimate]]
"""Subject of a gate, such as a model, and the tested estimate."""


def pearson_estimates(report: Report) -> SubjectEstimates:
    """r of each series of scores, with its interval over countries and topics; no interval where these are too few."""
    return [(column_label(report, row), row.pearson_r) for row in report.alignment]


def concordance_estimates(report: Report) -> SubjectEstimates:
    """Lin's concordance of each series of scores, with its interval over countries and topics."""
    return [(column_label(report, row), row.concordance) for row in report.alignment]


def mae_estimates(report: Report) -> SubjectEstimates:
    """MAE of each series of scores, with the interval over countries and topics."""
    return [(column_label(report, row), row.mae) for row in report.alignment]


def peer_agreement_estimates(report: Report) -> SubjectEstimates:
    """Peer agreement of each model, with its interval over countries and topics."""
    return [(row.model, row.agreement) for row in report.peer_agreement]


def corrected_estimates(report: Report) -> SubjectEstimates:
    """The share of VALID of each model corrected by people's labels; empty unless each model has enough of them.

    With the interval over countries and topics, or, where these are too few, the one for these traces.
    """
    shares = report.judge_quality.corrected_shares if report.judge_quality else {}
    return [
        (model, row.corrected if row.corrected_elsewhere.ci_low is None else row.corrected_elsewhere)
        for model, row in shares.items()
    ]


def region_gap_estimates(report: Report) -> SubjectEstimates:
    """Absolute gap in MAE between regions of each series of scores, with the interval of the absolute value.

    Without an interval where lost samples leave the sign of the gap open: a confident gate is then undecided.
    """
    rows = [
        (column_label(report, row), Estimate(None, 0, reason=RESCALED_SCORES_REASON))
        for row in report.alignment
        if has_rescaled_scores(row.method)
    ]
    for gap in report.regions.gaps:
        if has_rescaled_scores(gap.method):
            continue
        is_unsigned = gap.worst_case is not None and has_unknown_sign(gap.worst_case.mae)
        gap_size = take_absolute(gap.mae_gap)
        if is_unsigned:
            reason = gap_size.reason or UNKNOWN_SIGN_REASON
            gap_size = Estimate(gap_size.value, gap_size.n, reason=reason)
        rows.append((f"{column_label(report, gap)}: {gap.first} and {gap.second}", gap_size))
    return rows


def take_absolute(signed: Estimate) -> Estimate:
    """The absolute value of a signed figure, with the interval of the absolute value."""
    if signed.value is None or signed.ci_low is None or signed.ci_high is None:
        return Estimate(None if signed.value is None else abs(signed.value), signed.n, reason=signed.reason)
    magnitudes = sorted(abs(end) for end in (signed.ci_low, signed.ci_high))
    # The absolute value of an interval that includes 0 starts at 0.
    low = 0.0 if signed.ci_low <= 0 <= signed.ci_high else magnitudes[0]
    return Estimate(abs(signed.value), signed.n, low, magnitudes[1], signed.reason, signed.resampled)


def distribution_estimates(
    report: Report, field: Literal["skill", "variance_ratio", "order_effect"]
) -> SubjectEstimates:
    """A figure of each model's opinions, by mode; a shift counts in either direction.

    The diversity of sampled answers has no value for models that were asked with other sampling settings than the
    configuration's, if these differ between models.
    """
    if report.distribution is None:
        return []
    refusing_models = report.sampling.refusing_models(Purpose.OPINION)
    estimates: SubjectEstimates = []
    for row in report.distribution.models:
        estimate: Estimate = getattr(row, field)
        if field == "order_effect":
            estimate = take_absolute(estimate)
        elif field == "variance_ratio" and row.mode == OpinionMode.SAMPLED and row.model in refusing_models:
            estimate = Estimate(None, 0, reason=SETTINGS_REASON)
        estimates.append((f"{row.model} ({row.mode})", estimate))
    return estimates


def worst_topic_estimates(report: Report, confident: bool) -> SubjectEstimates:
    """MAE of the worst topic of each series of scores, with an interval that holds for all its topics together.

    The worst topic is that with the largest MAE or, if `confident`, the largest upper end of its interval. A topic
    without the required interval counts as the worst.
    """
    # By (model, method): the number that topics are sorted by, the label, and the estimate of the worst topic so far.
    worst: dict[tuple[str, str], tuple[float, str, Estimate]] = {}
    for row in report.topics:
        tested_error = row.mae_simultaneous.ci_high if confident else row.mae.value
        key, sort_error = (row.model, row.method), inf if tested_error is None else tested_error
        if has_rescaled_scores(row.method):
            worst[key] = (inf, column_label(report, row), Estimate(None, 0, reason=RESCALED_SCORES_REASON))
        elif row.mae.value is not None and (key not in worst or sort_error > worst[key][0]):
            worst[key] = (sort_error, f"{column_label(report, row)}: {row.name}", row.mae_simultaneous)
    return [(name, estimate) for _, name, estimate in worst.values()]


def consistency_estimates(report: Report, field: Literal["cosine", "variance"]) -> SubjectEstimates:
    """Self-consistency or variance of each series of scores.

    Without a value for models that were asked with other sampling settings than the configuration's, if these differ
    between models: one threshold cannot hold for both.
    """
    refusing_models = report.sampling.refusing_models(Purpose.DIRECT)
    labels = report.sampling.labels(Purpose.DIRECT)
    return [
        (
            column_label(report, row),
            Estimate(None, 0, reason=f"{SETTINGS_REASON} ({labels[row.model]})")
            if row.model in refusing_models
            else getattr(row, field),
        )
        for row in report.self_consistency
    ]


def column_label(report: Report, row: object) -> str:
    """Label of a row with `model` and `method`: the model, followed by the method if the report has several methods."""
    model, method = getattr(row, "model", ""), getattr(row, "method", "")
    return model if len({alignment_row.method for alignment_row in report.alignment}) < 2 else f"{model} ({method})"
