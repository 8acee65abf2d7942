"""What models are weak in: the strongest differences from people, thresholds that they fail, and regions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from auditor.domain import Purpose
from auditor.metrics.intervals.estimate import SHARED_LEVEL, Estimate, Tested
from auditor.reports.data.agreement.cultural_findings import (
    MAX_TOPIC_MAE,
    MAX_VARIANCE,
    MIN_PEER_AGREEMENT,
    CulturalFinding,
    Shortfall,
    Threshold,
)
from auditor.reports.data.coverage.lost_samples import has_large_loss
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, List, ListItem, Paragraph, Section
from auditor.reports.number_format import (
    describe_estimate,
    describe_interval,
    format_count,
    format_number,
    format_share,
    pluralize,
)
from auditor.reports.sections.phrasing import SeriesLabels, join_first, name_finding
from auditor.reports.sections.requests import SamplingMarks

MAX_FINDINGS = 3
TITLE = "The strongest cross-cultural findings"


def build_findings_block(report: Report) -> Section | None:
    """The subsection with up to three findings, or why there are none; None without scores."""
    findings = report.cultural_findings
    if findings is None:
        return None
    compared = f"{format_count(findings.compared)} mean differences"
    distances = f"{format_count(findings.compared_distances)} distances in single countries"
    if findings.reason is not None:
        text = f"The audit is too small for a finding on one country or topic: {findings.reason}."
        return Section("findings", TITLE, [Paragraph(text)])
    if not findings.rows:
        text = (
            f"No difference is statistically distinguishable from zero when all {compared} by country and topic are "
            f"compared jointly, and none of {distances} from that in a model’s other countries. This does not show "
            "that there is none."
        )
        return Section("findings", TITLE, [Paragraph(text)])
    labels = SeriesLabels.of(report)
    items = [
        ListItem(name_finding(labels.label(row), describe_cultural_finding(row)), "negative")
        for row in findings.rows[:MAX_FINDINGS]
    ]
    note = (
        f"These findings were selected from {compared}, each for one country or one topic, and from {distances}. The "
        "95% CIs of mean differences hold for all of these jointly (Bonferroni), so they are valid for the largest "
        "too; they are too narrow where differences are strongly skewed. Ratios of errors are tested given the number "
        "of countries and models (Holm, at 1%); their 95% CIs are not corrected. A model has at most one finding of "
        "each kind."
    )
    blocks: list[Block] = [List(items, is_findings=True), Paragraph(note, "note")]
    return Section("findings", TITLE, blocks)


def describe_cultural_finding(row: CulturalFinding) -> str:
    """Describe one finding as a predicate, with its interval, and the share of lost samples if it is large."""
    lost = ""
    if has_large_loss(row.lost_samples):
        lost = f". Of the planned samples for {row.name}, {format_share(row.lost_samples.share)} have no usable score"
    if row.bias is None:
        if row.mae is None or row.mae_ratio is None:
            raise ValueError(f"a finding of the kind {row.kind!r} needs a mean absolute error and its ratio to others")
        return f"{describe_distance('country', row.name, row.mae, row.mae_ratio)}{lost}"
    direction = "more permissive" if (row.bias.value or 0.0) > 0 else "stricter"
    preposition, unit = ("in", ("topic", "topics")) if row.kind == "country" else ("on", ("country", "countries"))
    scope = "on" if row.kind == "country" else "in"
    same_sign = f"{format_count(row.n_same_sign)} of {pluralize(row.bias.n, *unit)}"
    figures = f"({describe_estimate('mean difference', row.bias, style='signed')}){lost}"
    general = _describe_generality(row)
    if general:
        return f"is {direction} than people {general}, with the strongest evidence {preposition} {row.name} {figures}"
    return f"is {direction} than people {preposition} {row.name}, {scope} {same_sign} {figures}"


def describe_distance(noun: str, name: str, mae: Estimate, ratio: Tested) -> str:
    """Describe that a model is further from people in one country, or on one topic, than elsewhere, as a predicate.

    Args:
        noun: `country` or `topic`.
        mae: mean absolute error there.
        ratio: of this error to the geometric mean of the others.
    """
    preposition, others = ("in", "countries") if noun == "country" else ("on", "topics")
    direction = "further from" if (ratio.value or 1.0) > 1 else "closer to"
    return (
        f"is {direction} people {preposition} {name} than {preposition} its other {others} "
        f"({describe_estimate('mean absolute error', mae)}; {format_number(ratio.value)} times that of the others, "
        f"{describe_interval(ratio)})"
    )


def _describe_generality(row: CulturalFinding) -> str:
    """In how many countries, or on how many topics, the same difference is shown; empty if it is only one."""
    if row.n_places is None or row.n_places_same_sign is None or row.n_places_same_sign < 2:
        return ""
    preposition, nouns = ("in", ("country", "countries")) if row.kind == "country" else ("on", ("topic", "topics"))
    places = pluralize(row.n_places, *nouns)
    return f"{preposition} {'all' if row.holds_everywhere else f'{format_count(row.n_places_same_sign)} of'} {places}"


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
        f"{row.model} ({format_share(row.figure.value)} of {pluralize(row.figure.n, 'verdict')}, at most "
        f"{format_share(row.figure.ci_high)})"
        for row in rows
    ]
    if labels:
        yield f"Less than {MIN_PEER_AGREEMENT:.0%} of the verdicts are VALID for {join_first(labels, 'model')}."


def _select(report: Report, threshold: Threshold) -> list[Shortfall]:
    """The figures beyond one threshold."""
    return [row for row in report.shortfalls.rows if row.threshold == threshold]


def _describe_regions(report: Report) -> Iterator[str]:
    """Yield a sentence for each pair of regions between which the error of some models differs significantly.

    p-values are adjusted for the number of models: of 20 with equal errors, one would be named in a quarter of audits.
    """
    models_by_region_pair: dict[tuple[str, str], list[str]] = {}
    for gap in report.regions.gaps:
        if gap.is_gap_shown:
            label = f"{gap.model} (by {format_number(abs(gap.mae_gap.value or 0.0))})"
            models_by_region_pair.setdefault(gap.by_error, []).append(label)
    noun = " countries" if report.regions.grouping == "western" else ""
    for (worse, better), labels in models_by_region_pair.items():
        yield (
            f"The mean absolute error is larger in {worse} than in {better}{noun} for {join_first(labels, 'model')}."
        )
    for (higher, lower), labels in _group_bias_gaps(report).items():
        yield (
            f"Scores are more permissive, relative to people’s, in {higher} than in {lower}{noun} for "
            f"{join_first(labels, 'model')}."
        )


def _group_bias_gaps(report: Report) -> dict[tuple[str, str], list[str]]:
    """Models whose bias differs between two regions, by these regions, that with the higher bias first.

    Gaps of which lost samples may be the reason are left out: they have bounds.
    """
    models_by_region_pair: dict[tuple[str, str], list[str]] = {}
    for gap in report.regions.gaps:
        if gap.worst_case is None and gap.bias_gap.is_significant_at(SHARED_LEVEL) and gap.bias_gap.value is not None:
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


WEAKNESS_CHECKS: Sequence[Callable[[Report], Iterable[str]]] = (
    _describe_regions,
    _describe_topics,
    _describe_variance,
    _describe_peer_agreement,
)
"""Checks that each give the sentences of one kind of weakness, in the order of page one."""


def list_weaknesses(report: Report) -> list[str]:
    """Weaknesses of the models; empty if no check found one."""
    return [weakness for check in WEAKNESS_CHECKS for weakness in check(report)]
