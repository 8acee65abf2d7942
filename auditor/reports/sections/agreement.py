"""The section on agreement with people: the findings, reasons for caution, a plot and a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from auditor.metrics.bootstrap import MIN_CLUSTERS
from auditor.reports.charts.interval_plot import CORRELATION_AXIS, IntervalRow, interval_plot
from auditor.reports.data.measurement_schema import AlignmentRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Callout,
    Disclosure,
    Figure,
    Link,
    List,
    ListItem,
    Paragraph,
    Section,
    Status,
)
from auditor.reports.number_format import format_number
from auditor.reports.sections.alignment_table import build_alignment_remarks, build_alignment_table, two_way_r
from auditor.reports.sections.caution import list_cautions
from auditor.reports.sections.phrasing import SeriesLabels, describe_estimate, name_finding
from auditor.reports.sections.tiers import MAX_LEADING_PREFERENCES, list_preferences

AlignmentKind = Literal["agrees", "opposes", "unclear", "unknown"]
"""Whether the two-way interval of r lies above 0, below 0 or includes 0; `unknown` without r or an interval."""

STRENGTH_WORDS = ((0.9, "very strongly"), (0.7, "strongly"), (0.4, "moderately"), (0.1, "weakly"), (0.0, "negligibly"))
"""Words for |r|: Schober, Boer & Schwarte 2018, Anesthesia & Analgesia 126:1763, table 1."""
MAX_OPEN_FINDINGS = 6
"""With more series of scores, the findings of each are in a disclosure."""

_STATUSES: Mapping[AlignmentKind, Status] = {
    "agrees": "positive",
    "opposes": "negative",
    "unclear": "unclear",
    "unknown": "neutral",
}
_HEADLINE_PHRASES: Mapping[AlignmentKind, tuple[str, str, str]] = {
    "agrees": ("agrees", "agree", "with people beyond chance"),
    "opposes": ("is", "are", "negatively correlated with people beyond chance"),
    "unclear": ("shows", "show", "an agreement that is not statistically distinguishable from zero"),
    "unknown": ("cannot", "cannot", "be judged without a 95% CI"),
}
"""The verb for one series of scores and for several, and the rest of the predicate."""


# --- sentences --------------------------------------------------------------------------------------------------


def classify_alignment(row: AlignmentRow) -> AlignmentKind:
    """Classify the agreement of one series of scores with people by the two-way interval of r."""
    r = two_way_r(row)
    if r.value is None or r.ci_low is None or r.ci_high is None:
        return "unknown"
    if r.ci_low > 0:
        return "agrees"
    return "opposes" if r.ci_high < 0 else "unclear"


def describe_alignment(row: AlignmentRow) -> str:
    """Describe the agreement of one model with people, as a predicate: the finding, r with its interval, and MAE."""
    if row.pearson_r is None:
        return f"cannot be compared with people: {row.reason}"
    kind = classify_alignment(row)
    findings: Mapping[AlignmentKind, str] = {
        "agrees": f"agrees {_describe_strength(row)} with people",
        "opposes": f"is {_describe_strength(row)} negatively correlated with people",
        "unclear": "shows an agreement with people that is not statistically distinguishable from zero",
        "unknown": "cannot be judged",
    }
    error = "" if row.mae is None else f"; its mean absolute error is {format_number(row.mae)}"
    return f"{findings[kind]} ({describe_estimate('r', two_way_r(row), 'cell')}){error}"


def _describe_strength(row: AlignmentRow) -> str:
    """Words for the strength of r, from the weaker to the stronger end of its interval; a missing end counts as 0."""
    ends = sorted(abs(end or 0.0) for end in (row.crossed.pearson_r.ci_low, row.crossed.pearson_r.ci_high))
    weaker, stronger = (next(word for bound, word in STRENGTH_WORDS if end >= bound) for end in ends)
    return weaker if weaker == stronger else f"{weaker} to {stronger}"


def summarize_alignment(rows: Sequence[AlignmentRow]) -> str:
    """Summarize the agreement of all series of scores with people in one sentence."""
    if not rows:
        return "Agreement with people is not available: no scores have been measured yet."
    if all(_has_too_few_clusters(row) for row in rows):
        noun = "model" if len(rows) == 1 else "models"
        return (
            f"This audit is too small to judge the {noun}: it needs scores on at least {MIN_CLUSTERS} countries and "
            f"{MIN_CLUSTERS} topics."
        )
    rows_by_kind = {kind: [row for row in rows if classify_alignment(row) == kind] for kind in _HEADLINE_PHRASES}
    counts_and_predicates = [
        (len(members), f"{phrases[len(members) > 1]} {phrases[2]}{_format_r_range(kind, members)}")
        for kind, phrases in _HEADLINE_PHRASES.items()
        if (members := rows_by_kind[kind])
    ]
    if len(rows) == 1:
        return f"The model {counts_and_predicates[0][1]}."
    noun = "models" if len({row.method for row in rows}) == 1 else "series of scores"
    if len(counts_and_predicates) == 1:
        quantifier = "Both" if len(rows) == 2 else f"All {len(rows)}"
        return f"{quantifier} {noun} {counts_and_predicates[0][1]}."
    *parts, last_part = (f"{n} {predicate}" for n, predicate in counts_and_predicates)
    return f"Of {len(rows)} {noun}, {', '.join(parts)} and {last_part}."


def _has_too_few_clusters(row: AlignmentRow) -> bool:
    """Whether a series has r but no interval, since its scores are on too few countries or topics."""
    is_too_small = min(row.crossed.countries, row.crossed.topics) < MIN_CLUSTERS
    return row.pearson_r is not None and classify_alignment(row) == "unknown" and is_too_small


def _format_r_range(kind: AlignmentKind, rows: Sequence[AlignmentRow]) -> str:
    """The range of r over the rows of one kind, in brackets; empty for kinds without a clear sign of r."""
    r_values = [row.pearson_r for row in rows if row.pearson_r is not None]
    if kind not in ("agrees", "opposes"):
        return ""
    low, high = format_number(min(r_values)), format_number(max(r_values))
    return f" (r = {low})" if len(r_values) == 1 else f" (r from {low} to {high})"


def describe_ranking(rows: Sequence[AlignmentRow], labels: SeriesLabels) -> str | None:
    """State whether the intervals separate the best series from all others; None for fewer than two intervals."""
    intervals = [
        (row, r.value, r.ci_low, r.ci_high)
        for row in rows
        for r in (two_way_r(row),)
        if r.value is not None and r.ci_low is not None and r.ci_high is not None
    ]
    if len(intervals) < 2:
        return None
    best, _, best_low, _ = max(intervals, key=lambda interval: interval[1])  # by r
    label = labels.label(best)
    n_overlapping = sum(high >= best_low for row, _, _, high in intervals if row is not best)
    if not n_overlapping:
        return f"{label} has the largest r, and its 95% CI lies above all others."
    others = "another one" if n_overlapping == 1 else f"{n_overlapping} others"
    return (
        f"{label} has the largest r, but its 95% CI overlaps {others}. This table alone does not show that it is the "
        "best."
    )


# --- section ----------------------------------------------------------------------------------------------------


def build_agreement_section(report: Report) -> Section | None:
    """Build the section on agreement with people; None for an audit without a survey."""
    if not report.audit.survey.title:
        return None
    labels = SeriesLabels.of(report)
    rows = sorted(report.alignment, key=lambda row: 2.0 if row.pearson_r is None else -row.pearson_r)
    blocks: list[Block] = [
        Paragraph(summarize_alignment(report.alignment), "lead"),
        *_findings_blocks(rows, labels),
        *_preference_blocks(report),
    ]
    if cautions := list_cautions(report):
        blocks.append(Callout("Reasons for caution", [List(cautions)]))
    if rows:
        blocks += [
            _build_forest_plot(rows, labels),
            build_alignment_table(report, rows, labels),
            build_alignment_remarks(report),
        ]
    return Section("answer", "How well do the models agree with people?", blocks, "Agreement with people")


def _findings_blocks(rows: Sequence[AlignmentRow], labels: SeriesLabels) -> Iterator[Block]:
    """Yield the findings on each series of scores, and whether one is the best."""
    findings = List(
        [
            ListItem(
                name_finding(labels.label(row), describe_alignment(row)),
                _STATUSES[classify_alignment(row)],
            )
            for row in rows
        ],
        is_findings=True,
    )
    if len(rows) > MAX_OPEN_FINDINGS:
        yield Disclosure(f"Findings on each of the {len(rows)} series of scores", [findings], in_print="hidden")
    elif rows:
        yield findings
    if ranking := describe_ranking(rows, labels):
        yield Paragraph(ranking)


def _preference_blocks(report: Report) -> Iterator[Block]:
    """Yield a subsection on the models to prefer, over all countries and in the first regions, if models are ranked."""
    preferences = list_preferences(report)
    if not preferences:
        return
    blocks: list[Block] = [List(preferences[:MAX_LEADING_PREFERENCES], is_findings=True)]
    if len(preferences) > MAX_LEADING_PREFERENCES:
        blocks.append(Paragraph([Link("The other regions, and the tiers of all models", "prefer"), "."]))
    yield Section("preferences", "Which model to prefer", blocks)


def _build_forest_plot(rows: Sequence[AlignmentRow], labels: SeriesLabels) -> Figure:
    """The plot of r with its two-way interval, and within it Fisher's, for each series of scores."""
    labelled_rows = [(labels.label(row), row, two_way_r(row)) for row in rows]
    intervals = [
        IntervalRow(label, r.value, r.ci_low, r.ci_high, inner_low=row.ci_low, inner_high=row.ci_high)
        for label, row, r in labelled_rows
    ]
    return Figure(
        id="agreement",
        spec=interval_plot(intervals, CORRELATION_AXIS),
        title="Agreement with people: r and its 95% CI",
        description="; ".join(f"{label} {describe_alignment(row)}" for label, row, _ in labelled_rows),
        caption=(
            "Pearson’s r between the scores of each model and of people. The thin line is its 95% CI over countries "
            "and topics. The thick line is Fisher’s, which treats cells as independent. If the thin line reaches zero, "
            "the agreement is not statistically distinguishable from zero."
        ),
        table_id="alignment",
    )
