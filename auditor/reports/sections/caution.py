"""Reasons for caution about an audit's figures, one sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from auditor.config.probes import SECTION_BY_PROBE
from auditor.domain import Purpose
from auditor.reports.data.adjusted_tests import is_significant
from auditor.reports.data.coverage.lost_samples import has_unknown_sign
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import format_count, format_number, format_percent, format_share, pluralize
from auditor.reports.sections.failures import list_unusable_models
from auditor.reports.sections.lost_samples import list_lost_sample_cautions
from auditor.reports.sections.phrasing import compare_interval, describe_estimate, join_first
from auditor.reports.sections.requests import describe_mixed_forms
from auditor.reports.sections.sampling_marks import SamplingMarks

MAX_VARIANCE = 0.12
MIN_PEER_AGREEMENT = 0.70
MAX_TOPIC_MAE = 0.4
"""Thresholds of failure, as in EvalMORAAL (arXiv 2510.05942)."""
MIN_COVERAGE = 0.95


def list_cautions(report: Report) -> list[str]:
    """Reasons for caution about the figures; empty if no check found one."""
    return [
        *_coverage_cautions(report),
        *list_lost_sample_cautions(report),
        *list_unusable_models(report),
        *_sampling_cautions(report),
        *describe_mixed_forms(report),
        *_variance_cautions(report),
        *_panel_cautions(report),
        *_region_cautions(report),
        *_topic_cautions(report),
    ]


def _coverage_cautions(report: Report) -> Iterator[str]:
    """Yield cautions about an unfinished audit, and about stages in which too few answers are usable."""
    if not report.audit.complete:
        yield f"The audit is not complete (stage: {report.audit.stage}); every figure is provisional."
    for row in report.coverage.total:
        if row.planned and row.ok < MIN_COVERAGE * row.planned:
            usable = format_percent(row.ok, row.planned)
            yield f"Only {usable} of the planned {row.counted_label} are usable; “What is missing?” lists the others."


def _sampling_cautions(report: Report) -> Iterator[str]:
    """Yield a caution for each kind of answers whose spread is not comparable, since sampling settings differ."""
    figures_by_purpose = {
        section_class.parts.sampled_purpose: section_class.parts.sampled_figures
        for name, section_class in SECTION_BY_PROBE.items()
        if section_class.parts.sampled_purpose is not None and getattr(report, name) is not None
    }
    if report.task is not None:
        figures_by_purpose[Purpose.DIRECT] = "Agreement between samples"
    elif any(row.variance.value is not None for row in report.self_consistency):
        figures_by_purpose[Purpose.DIRECT] = "Self-consistency and the variance of samples"
    for purpose, figures in figures_by_purpose.items():
        marks = SamplingMarks.of(report.sampling, purpose)
        if names := report.sampling.refusing_models(purpose):
            labels = [marks.mark(name, name) for name in names]
            yield (
                f"{figures} cannot be compared between models: the configured sampling settings were not accepted for "
                f"{join_first(labels, 'model')}."
            )


def _variance_cautions(report: Report) -> Iterator[str]:
    """Yield a caution that names the models whose samples have a variance above `MAX_VARIANCE`, if any."""
    marks = SamplingMarks.of(report.sampling, Purpose.DIRECT)
    values = [(row.variance.value or 0.0, marks.mark(row.model, row.model)) for row in report.self_consistency]
    if labels := [f"{name} ({format_number(value)})" for value, name in sorted(values)[::-1] if value > MAX_VARIANCE]:
        yield f"The mean variance of the samples of a cell is above {MAX_VARIANCE} for {join_first(labels, 'model')}."


def _panel_cautions(report: Report) -> Iterator[str]:
    """Yield cautions about low peer agreement, repeated verdicts and low agreement of the judges."""
    values = [
        (row.agreement.value, row.model, row.agreement.n)
        for row in report.peer_agreement
        if row.agreement.value is not None
    ]
    low_values = sorted(value for value in values if value[0] < MIN_PEER_AGREEMENT)
    if labels := [f"{name} ({format_share(value)} of {format_count(n)})" for value, name, n in low_values]:
        yield f"Less than 70% of the verdicts are VALID for {join_first(labels, 'model')}."
    if report.panel.repeated:
        yield (
            f"{pluralize(report.panel.repeated, 'verdict')} of {format_count(report.panel.asked)} repeat the answer of "
            "another judge. Judges with the same model and the same request count as one judge; their agreement is no "
            "evidence."
        )
    kappa = report.panel.fleiss_kappa
    if (status := compare_interval(kappa)) in ("negative", "unclear"):
        finding = "below chance" if status == "negative" else "not statistically distinguishable from chance"
        yield (
            f"The agreement of the judges is {finding} ({describe_estimate('Fleiss’ kappa', kappa)}), so their "
            "verdicts are weak evidence."
        )


def _region_cautions(report: Report) -> Iterator[str]:
    """Yield a caution for each pair of regions between which the error of some models differs significantly.

    p-values are adjusted for the number of models: of 20 with equal errors, one would be named in a quarter of audits.
    """
    models_by_region_pair: dict[tuple[str, str], list[str]] = {}
    for gap in report.regions.gaps:
        if gap.worst_case is not None and has_unknown_sign(gap.worst_case.mae):
            continue
        if is_significant(gap) and gap.mae_gap.value is not None:
            region_pair = (gap.second, gap.first) if gap.mae_gap.value > 0 else (gap.first, gap.second)
            label = f"{gap.model} (by {format_number(abs(gap.mae_gap.value))})"
            models_by_region_pair.setdefault(region_pair, []).append(label)
    noun = " countries" if report.regions.grouping == "western" else ""
    for (worse, better), labels in models_by_region_pair.items():
        yield (
            f"The mean absolute error is larger in {worse} than in {better}{noun} for {join_first(labels, 'model')}."
        )


def _topic_cautions(report: Report) -> Iterator[str]:
    """Yield a caution that names the topics with a mean absolute error above `MAX_TOPIC_MAE`, if any."""
    high_errors = {(row.name, row.model) for row in report.topics if (row.mae.value or 0.0) > MAX_TOPIC_MAE}
    model_counts = Counter(topic for topic, _ in sorted(high_errors))
    if labels := [f"{topic} ({pluralize(n, 'model')})" for topic, n in model_counts.most_common()]:
        yield f"The measured mean absolute error is above {MAX_TOPIC_MAE} on {join_first(labels, 'topic')}."
