"""The figures that gates test, each with the interval that the report uses, and its bounds for lost answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from auditor.domain import Method, Purpose
from auditor.metrics.estimate import BoundedEstimate, Estimate
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.coverage.lost_samples import UNKNOWN_SIGN_REASON, has_unknown_sign
from auditor.reports.data.measurement_schema import RegionGapRow
from auditor.reports.data.report_schema import Report
from auditor.reports.data.rescaled_scores import RESCALED_SCORES_REASON, has_rescaled_scores

SETTINGS_REASON = "the configured sampling settings were not accepted, so it cannot be compared"


@dataclass(frozen=True, slots=True)
class GatedFigure:
    """A figure that a threshold is for.

    Attributes:
        subject: what it is of, such as a model with its method.
        model: the model that it belongs to; None if it belongs to the whole audit.
        lost: planned answers behind it that are not usable.
        bound_low, bound_high: the figure over all planned answers is between them, whatever the lost ones would have
            been; None where no bound is known.
    """

    subject: str
    estimate: Estimate
    model: str | None = None
    lost: int = 0
    bound_low: float | None = None
    bound_high: float | None = None


def pearson_estimates(report: Report) -> list[GatedFigure]:
    """r of each series of scores, with its interval over countries and topics; no interval where these are too few."""
    return [
        _bound(column_label(report, row), row.pearson_r, row, row.worst_case.pearson_r if row.worst_case else None)
        for row in report.alignment
    ]


def concordance_estimates(report: Report) -> list[GatedFigure]:
    """Lin's concordance of each series of scores, with its interval over countries and topics.

    It is at most r where r is positive, and at most 0 elsewhere; so the upper bound of r bounds it too.
    """
    figures = pearson_estimates(report)
    return [
        replace(
            figure,
            estimate=row.concordance,
            bound_low=None,
            bound_high=None if figure.bound_high is None else max(0.0, figure.bound_high),
        )
        for figure, row in zip(figures, report.alignment, strict=True)
    ]


def mae_estimates(report: Report) -> list[GatedFigure]:
    """MAE of each series of scores, with the interval over countries and topics."""
    return [
        _bound(column_label(report, row), row.mae, row, row.worst_case.mae if row.worst_case else None)
        for row in report.alignment
    ]


def _bound(subject: str, estimate: Estimate, row: AlignmentRow, bounds: BoundedEstimate | None) -> GatedFigure:
    """The figure of a series of scores with its worst-case bounds, if it has any."""
    low, high = (bounds.bound_low, bounds.bound_high) if bounds else (None, None)
    return GatedFigure(subject, estimate, row.model, row.lost_samples.lost, low, high)


def count_lost(report: Report, stage: str, model: str | None = None, method: str | None = None) -> int:
    """Count planned answers of a stage that are not usable: those of one model and method, or all."""
    return sum(
        row.planned - row.ok
        for row in report.coverage.models
        if row.stage == stage and model in (None, row.name) and method in (None, row.method)
    )


def peer_agreement_estimates(report: Report) -> list[GatedFigure]:
    """Peer agreement of each model, with its interval over countries and topics.

    The upper bound takes all lost verdicts for VALID, and those of every judge on lost answers.
    """
    n_judges = len({row.name for row in report.coverage.judges})
    figures = []
    for row in report.peer_agreement:
        lost = count_lost(report, "review", row.model) + n_judges * count_lost(
            report, "direct", row.model, Method.DIRECT
        )
        total = row.given + lost
        bounds = (row.valid / total, (row.valid + lost) / total) if total else (None, None)
        figures.append(GatedFigure(row.model, row.agreement, row.model, lost, *bounds))
    return figures


def kappa_estimates(report: Report) -> list[GatedFigure]:
    """Fleiss' kappa of the judges; no bound is known for lost verdicts."""
    lost = count_lost(report, "review") + count_lost(report, "direct", method=Method.DIRECT)
    return [GatedFigure("panel", report.panel.fleiss_kappa, lost=lost)]


def accuracy_estimates(report: Report) -> list[GatedFigure]:
    """Accuracy of each model on the items of a task, bounded by all lost samples being wrong or right."""
    return [
        GatedFigure(row.model, row.accuracy, row.model, row.planned - row.usable, row.bound_low, row.bound_high)
        for row in (report.task.models if report.task else [])
    ]


def corrected_estimates(report: Report) -> list[GatedFigure]:
    """The share of VALID of each model corrected by people's labels; empty unless each model has enough of them.

    With the interval over countries and topics, or, where these are too few, the one for these traces.
    """
    shares = report.judge_quality.corrected_shares if report.judge_quality else {}
    lost = {figure.model: figure.lost for figure in peer_agreement_estimates(report)}
    return [
        GatedFigure(
            model,
            row.corrected if row.corrected_elsewhere.ci_low is None else row.corrected_elsewhere,
            model,
            lost.get(model, 0),
        )
        for model, row in shares.items()
    ]


def region_gap_estimates(report: Report) -> list[GatedFigure]:
    """Absolute gap in MAE between regions of each series of scores, with the interval of the absolute value.

    Without an interval where lost samples leave the sign of the gap open: a confident gate is then undecided.
    """
    figures = [
        GatedFigure(column_label(report, row), Estimate(None, 0, reason=RESCALED_SCORES_REASON), row.model)
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
        subject = f"{column_label(report, gap)}: {gap.first} and {gap.second}"
        lost = gap.first_lost_samples.lost + gap.second_lost_samples.lost
        figures.append(GatedFigure(subject, gap_size, gap.model, lost, _bound_gap_size_below(gap)))
    return figures


def _bound_gap_size_below(gap: RegionGapRow) -> float | None:
    """The smallest absolute gap in MAE, whatever the lost samples would have scored; None if no bound is known."""
    bounds = gap.worst_case.mae if gap.worst_case else None
    if bounds is None or bounds.bound_low is None or bounds.bound_high is None:
        return None
    return max(0.0, bounds.bound_low, -bounds.bound_high)


def take_absolute(signed: Estimate) -> Estimate:
    """The absolute value of a signed figure, with the interval of the absolute value."""
    if signed.value is None or signed.ci_low is None or signed.ci_high is None:
        return Estimate(None if signed.value is None else abs(signed.value), signed.n, reason=signed.reason)
    magnitudes = sorted(abs(end) for end in (signed.ci_low, signed.ci_high))
    # The absolute value of an interval that includes 0 starts at 0.
    low = 0.0 if signed.ci_low <= 0 <= signed.ci_high else magnitudes[0]
    return Estimate(abs(signed.value), signed.n, low, magnitudes[1], signed.reason, signed.resampled)


def worst_topic_estimates(report: Report, confident: bool) -> list[GatedFigure]:
    """MAE of the worst topic of each series of scores, with an interval that holds for all its topics together.

    The worst topic is that with the largest MAE or, if `confident`, the largest upper end of its interval. A topic
    without the required interval counts as the worst. The lower bound is the largest of those of all topics.
    """
    # By (model, method): the number that topics are sorted by, the label, and the estimate of the worst topic so far.
    worst: dict[tuple[str, str], tuple[float, str, Estimate]] = {}
    lost, bounds = Counter[tuple[str, str]](), dict[tuple[str, str], float]()
    for row in report.topics:
        tested_error = row.mae_simultaneous.ci_high if confident else row.mae.value
        key, sort_error = (row.model, row.method), inf if tested_error is None else tested_error
        lost[key] += row.lost_samples.lost
        bounds[key] = max(bounds.get(key, 0.0), row.mae_bound_low or 0.0)
        if has_rescaled_scores(row.method):
            worst[key] = (inf, column_label(report, row), Estimate(None, 0, reason=RESCALED_SCORES_REASON))
        elif row.mae.value is not None and (key not in worst or sort_error > worst[key][0]):
            worst[key] = (sort_error, f"{column_label(report, row)}: {row.name}", row.mae_simultaneous)
    return [GatedFigure(name, estimate, key[0], lost[key], bounds[key]) for key, (_, name, estimate) in worst.items()]


def consistency_estimates(report: Report, field: Literal["cosine", "variance"]) -> list[GatedFigure]:
    """Self-consistency or variance of each series of scores.

    Without a value for models that were asked with other sampling settings than the configuration's, if these differ
    between models: one threshold cannot hold for both.
    """
    refusing_models = report.sampling.refusing_models(Purpose.DIRECT)
    labels = report.sampling.labels(Purpose.DIRECT)
    return [
        GatedFigure(
            column_label(report, row),
            Estimate(None, 0, reason=f"{SETTINGS_REASON} ({labels[row.model]})")
            if row.model in refusing_models
            else getattr(row, field),
            row.model,
            count_lost(report, "direct", row.model, row.method),
        )
        for row in report.self_consistency
    ]


def column_label(report: Report, row: object) -> str:
    """Label of a row with `model` and `method`: the model, followed by the method if the report has several methods."""
    model, method = getattr(row, "model", ""), getattr(row, "method", "")
    return model if len({alignment_row.method for alignment_row in report.alignment}) < 2 else f"{model} ({method})"
