"""Weaknesses of the models: where one fails a threshold of EvalMORAAL or is worse in one region, one sentence each.

Each family of sentences names something false in at most 5% of audits: docs/method.md has the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.domain import Purpose
from auditor.metrics.confidence import SIGNIFICANCE_LEVEL
from auditor.reports.data.agreement.shortfalls import (
    MAX_TOPIC_MAE,
    MAX_VARIANCE,
    MIN_PEER_AGREEMENT,
    Shortfall,
    Threshold,
)
from auditor.reports.data.coverage.lost_samples import has_unknown_sign
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import format_count, format_number, format_share, pluralize
from auditor.reports.sections.phrasing import SeriesLabels, join_first
from auditor.reports.sections.sampling_marks import SamplingMarks


def list_weaknesses(report: Report, level: float = SIGNIFICANCE_LEVEL) -> list[str]:
    """Weaknesses of the models; empty if no check found one.

    Args:
        level: of the tests of gaps between regions.
    """
    return [
        *_describe_regions(report, level),
        *_describe_topics(report),
        *_describe_variance(report),
        *_describe_peer_agreement(report),
    ]


def _describe_variance(report: Report) -> Iterator[str]:
    """Yield a sentence that names the models whose samples are shown to vary too much, if any."""
    marks = SamplingMarks.of(report.sampling, Purpose.DIRECT)
    rows = sorted(_select(report, "variance"), key=lambda row: -(row.figure.value or 0.0))
    labels = [
        f"{marks.mark(row.model, row.model)} ({format_number(row.figure.value)}, at least "
        f"{format_number(row.figure.ci_low)})"
        for row in rows
    ]
    if labels:
        yield f"The mean variance of the samples of a cell is above {MAX_VARIANCE} for {join_first(labels, 'model')}."


def _describe_peer_agreement(report: Report) -> Iterator[str]:
    """Yield a sentence that names the models whose share of VALID verdicts is shown to be too low, if any.

    Nothing where people's labels do not show that the majority of the judges is better than chance.
    """
    quality = report.judge_quality
    if quality is not None and quality.panel is not None and not quality.panel.is_better_than_chance:
        return
    rows = sorted(_select(report, "valid share"), key=lambda row: row.figure.value or 0.0)
    labels = [
        f"{row.model} ({format_share(row.figure.value)} of {format_count(row.figure.n)} verdicts, at most "
        f"{format_share(row.figure.ci_high)})"
        for row in rows
    ]
    if labels:
        yield f"Less than {MIN_PEER_AGREEMENT:.0%} of the verdicts are VALID for {join_first(labels, 'model')}."


def _select(report: Report, threshold: Threshold) -> list[Shortfall]:
    """The figures beyond one threshold."""
    return [row for row in report.shortfalls.rows if row.threshold == threshold]


def _describe_regions(report: Report, level: float) -> Iterator[str]:
    """Yield a sentence for each pair of regions between which the error of some models differs significantly.

    p-values are adjusted for the number of models: of 20 with equal errors, one would be named in a quarter of audits.
    """
    models_by_region_pair: dict[tuple[str, str], list[str]] = {}
    for gap in report.regions.gaps:
        if gap.worst_case is not None and has_unknown_sign(gap.worst_case.mae):
            continue
        if gap.mae_gap.is_significant_at(level) and gap.mae_gap.value is not None:
            region_pair = (gap.second, gap.first) if gap.mae_gap.value > 0 else (gap.first, gap.second)
            label = f"{gap.model} (by {format_number(abs(gap.mae_gap.value))})"
            models_by_region_pair.setdefault(region_pair, []).append(label)
    noun = " countries" if report.regions.grouping == "western" else ""
    for (worse, better), labels in models_by_region_pair.items():
        yield (
            f"The mean absolute error is larger in {worse} than in {better}{noun} for {join_first(labels, 'model')}."
        )
    for (higher, lower), labels in _group_bias_gaps(report, level).items():
        yield (
            f"Scores are more permissive, relative to people’s, in {higher} than in {lower}{noun} for "
            f"{join_first(labels, 'model')}."
        )


def _group_bias_gaps(report: Report, level: float) -> dict[tuple[str, str], list[str]]:
    """Models whose bias differs between two regions, by these regions, that with the higher bias first.

    Gaps of which lost samples may be the reason are left out: they have bounds.
    """
    models_by_region_pair: dict[tuple[str, str], list[str]] = {}
    for gap in report.regions.gaps:
        if gap.worst_case is None and gap.bias_gap.is_significant_at(level) and gap.bias_gap.value is not None:
            region_pair = (gap.second, gap.first) if gap.bias_gap.value > 0 else (gap.first, gap.second)
            label = f"{gap.model} (by {format_number(abs(gap.bias_gap.value))})"
            models_by_region_pair.setdefault(region_pair, []).append(label)
    return models_by_region_pair


def _describe_topics(report: Report) -> Iterator[str]:
    """Yield a sentence that names the models whose mean absolute error is shown to be too large on a topic, if any."""
    labels = SeriesLabels.of(report)
    by_series: dict[str, list[Shortfall]] = {}
    for row in _select(report, "topic error"):
        by_series.setdefault(labels.label(row), []).append(row)
    most_first = sorted(by_series, key=lambda label: -len(by_series[label]))
    if names := [_name_topics(label, by_series[label]) for label in most_first]:
        yield f"The mean absolute error is above {MAX_TOPIC_MAE} for {join_first(names, 'model')}."


def _name_topics(label: str, rows: Sequence[Shortfall]) -> str:
    """A model with its number of topics with a large error, and the largest of these errors."""
    worst = max(rows, key=lambda row: row.figure.value or 0.0)
    size = f"{format_number(worst.figure.value)}, at least {format_number(worst.figure.ci_low)}"
    return (
        f"{label} (on {worst.topic}: {size})"
        if len(rows) == 1
        else f"{label} (on {pluralize(len(rows), 'topic')}, most on {worst.topic}: {size})"
    )
