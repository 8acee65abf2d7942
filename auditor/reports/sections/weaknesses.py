"""Weaknesses of the models: where one fails a threshold of EvalMORAAL or is worse in one region, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from auditor.domain import Purpose
from auditor.reports.data.coverage.lost_samples import has_unknown_sign
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import format_count, format_number, format_share, pluralize
from auditor.reports.sections.phrasing import SeriesLabels, join_first
from auditor.reports.sections.sampling_marks import SamplingMarks

MAX_VARIANCE = 0.12
MIN_PEER_AGREEMENT = 0.70
MAX_TOPIC_MAE = 0.4
"""Thresholds of failure, as in EvalMORAAL (arXiv 2510.05942)."""


def list_weaknesses(report: Report) -> list[str]:
    """Weaknesses of the models; empty if no check found one."""
    return [
        *_describe_regions(report),
        *_describe_topics(report),
        *_describe_variance(report),
        *_describe_peer_agreement(report),
    ]


def _describe_variance(report: Report) -> Iterator[str]:
    """Yield a sentence that names the models whose samples have a variance above `MAX_VARIANCE`, if any."""
    marks = SamplingMarks.of(report.sampling, Purpose.DIRECT)
    values = [(row.variance.value or 0.0, marks.mark(row.model, row.model)) for row in report.self_consistency]
    if labels := [f"{name} ({format_number(value)})" for value, name in sorted(values)[::-1] if value > MAX_VARIANCE]:
        yield f"The mean variance of the samples of a cell is above {MAX_VARIANCE} for {join_first(labels, 'model')}."


def _describe_peer_agreement(report: Report) -> Iterator[str]:
    """Yield a sentence that names the models whose peer agreement is below `MIN_PEER_AGREEMENT`, if any."""
    values = [
        (row.agreement.value, row.model, row.agreement.n)
        for row in report.peer_agreement
        if row.agreement.value is not None
    ]
    low_values = sorted(value for value in values if value[0] < MIN_PEER_AGREEMENT)
    if labels := [f"{name} ({format_share(value)} of {format_count(n)} verdicts)" for value, name, n in low_values]:
        yield f"Less than 70% of the verdicts are VALID for {join_first(labels, 'model')}."


def _describe_regions(report: Report) -> Iterator[str]:
    """Yield a sentence for each pair of regions between which the error of some models differs significantly.

    p-values are adjusted for the number of models: of 20 with equal errors, one would be named in a quarter of audits.
    """
    models_by_region_pair: dict[tuple[str, str], list[str]] = {}
    for gap in report.regions.gaps:
        if gap.worst_case is not None and has_unknown_sign(gap.worst_case.mae):
            continue
        if gap.mae_gap.is_significant and gap.mae_gap.value is not None:
            region_pair = (gap.second, gap.first) if gap.mae_gap.value > 0 else (gap.first, gap.second)
            label = f"{gap.model} (by {format_number(abs(gap.mae_gap.value))})"
            models_by_region_pair.setdefault(region_pair, []).append(label)
    noun = " countries" if report.regions.grouping == "western" else ""
    for (worse, better), labels in models_by_region_pair.items():
        yield (
            f"The mean absolute error is larger in {worse} than in {better}{noun} for {join_first(labels, 'model')}."
        )


def _describe_topics(report: Report) -> Iterator[str]:
    """Yield a sentence that names the models with a mean absolute error above `MAX_TOPIC_MAE` on a topic, if any."""
    labels = SeriesLabels.of(report)
    errors: dict[str, dict[str, float]] = {}
    for row in report.topics:
        if row.mae.value is not None:
            errors.setdefault(labels.label(row), {})[row.name] = row.mae.value
    high_errors = {
        label: [topic for topic, error in by_topic.items() if error > MAX_TOPIC_MAE]
        for label, by_topic in errors.items()
    }
    worst_first = sorted(high_errors, key=lambda label: -len(high_errors[label]))
    if names := [_name_topics(label, errors[label], high_errors[label]) for label in worst_first if high_errors[label]]:
        yield f"The measured mean absolute error is above {MAX_TOPIC_MAE} for {join_first(names, 'model')}."


def _name_topics(label: str, errors: Mapping[str, float], topics: Sequence[str]) -> str:
    """A model with its number of topics with a large error, and the worst of them."""
    worst = max(topics, key=lambda topic: errors[topic])
    return (
        f"{label} ({len(topics)} of {pluralize(len(errors), 'topic')}, most on {worst}: {format_number(errors[worst])})"
    )
