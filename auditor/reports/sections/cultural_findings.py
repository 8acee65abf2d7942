"""The strongest differences between models and people by country and topic, in sentences."""

from __future__ import annotations

from auditor.metrics.confidence import PAGE_ONE_LEVEL
from auditor.metrics.estimate import Estimate, Tested
from auditor.reports.data.agreement.cultural_findings import CulturalFinding, CulturalFindingsReport
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
from auditor.reports.sections.phrasing import SeriesLabels, name_finding

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
        "of countries and models (Holm); their 95% CIs are not corrected. A model has at most one finding of each kind."
    )
    blocks: list[Block] = [List(items, is_findings=True), Paragraph(note, "note")]
    return Section("findings", TITLE, blocks)


def list_page_one_places(findings: CulturalFindingsReport | None) -> list[CulturalFinding]:
    """The findings on one country or topic that hold at the level of page one; intervals of biases are wide enough."""
    rows = [] if findings is None else findings.rows
    return [row for row in rows if row.mae_ratio is None or row.mae_ratio.is_significant_at(PAGE_ONE_LEVEL)]


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
        return f"is {direction} than people {general}, most clearly {preposition} {row.name} {figures}"
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
