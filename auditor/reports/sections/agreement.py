"""The section on agreement with people: which model to prefer, what the intervals assume, and the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.metrics.jackknife_interval import MIN_UNITS
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.agreement.tiers import ALL_COUNTRIES
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Paragraph, Section, Status
from auditor.reports.number_format import format_interval, format_number
from auditor.reports.sections.alignment_table import build_alignment_remarks, build_alignment_table
from auditor.reports.sections.phrasing import (
    SeriesLabels,
    compare_interval,
    describe_estimate,
    join_first,
)
from auditor.reports.sections.sensitivity import build_assumptions
from auditor.reports.sections.tiers import describe_preference

STRENGTH_WORDS = (
    (0.0, "negligibly", "negligible"),
    (0.1, "weakly", "weak"),
    (0.4, "moderately", "moderate"),
    (0.7, "strongly", "strong"),
    (0.9, "very strongly", "very strong"),
)
"""Smallest |r| for each adverb and adjective: Schober, Boer & Schwarte 2018, Anesth Analg 126:1763, table 1."""

_HEADLINE_PHRASES: Mapping[Status, tuple[str, str, str]] = {
    "positive": ("agrees", "agree", "with people beyond chance"),
    "negative": ("is", "are", "negatively correlated with people beyond chance"),
    "unclear": ("shows", "show", "an agreement that is not statistically distinguishable from zero"),
    "neutral": ("cannot", "cannot", "be judged without a 95% CI"),
}
"""The verb for one series of scores and for several, and the rest of the predicate."""


# --- sentences --------------------------------------------------------------------------------------------------


def classify_alignment(row: AlignmentRow) -> Status:
    """Whether the two-way interval of r lies above 0 or below it; neutral without r or an interval."""
    return compare_interval(row.pearson_r)


def describe_alignment(row: AlignmentRow) -> str:
    """Describe the agreement of one model with people, as a predicate: the finding, r with its interval, and MAE."""
    if row.pearson_r.value is None:
        return f"cannot be compared with people: {row.pearson_r.reason}"
    findings = {
        "positive": _describe_strength(row, "agrees {}with people"),
        "negative": _describe_strength(row, "is {}negatively correlated with people"),
        "unclear": "shows an agreement with people that is not statistically distinguishable from zero",
        "neutral": "cannot be judged",
    }
    has_error = row.mae.value is not None
    error = (
        f"; its mean absolute error is {format_number(row.mae.value)}{_format_mae_interval(row)}" if has_error else ""
    )
    return f"{findings[classify_alignment(row)]} ({describe_estimate('r', row.pearson_r, 'cell')}){error}"


def _format_mae_interval(row: AlignmentRow) -> str:
    """The interval of the mean absolute error, in brackets; empty without one: the reason is that of r."""
    has_interval = row.mae.ci_low is not None and row.mae.ci_high is not None
    return f" (95% CI {format_interval(row.mae.ci_low, row.mae.ci_high)})" if has_interval else ""


def _describe_strength(row: AlignmentRow, phrase: str) -> str:
    """Put the strength of r, from the weaker to the stronger end of its interval, into a phrase.

    A missing end counts as 0. Strengths that are no neighbours are too far apart for one adverb.
    """
    ends = sorted(abs(end or 0.0) for end in (row.pearson_r.ci_low, row.pearson_r.ci_high))
    weaker, stronger = (max(i for i, (bound, *_) in enumerate(STRENGTH_WORDS) if end >= bound) for end in ends)
    if stronger - weaker > 1:
        degree = f"from {STRENGTH_WORDS[weaker][2]} to {STRENGTH_WORDS[stronger][2]}"
        return f"{phrase.format('')}, but the strength is uncertain: anywhere {degree}"
    adverbs = [words for _, words, _ in STRENGTH_WORDS[weaker : stronger + 1]]
    return phrase.format(f"{' to '.join(adverbs)} ")


def summarize_alignment(rows: Sequence[AlignmentRow]) -> str:
    """Summarize the agreement of all series of scores with people in one or two sentences.

    The second names the models whose finding does not hold for all values that their lost samples may have had.
    p-values are corrected for the number of series (Holm): of 20 series without any agreement, one would be expected to
    agree beyond chance.
    """
    if not rows:
        return "Agreement with people is not available: no scores have been measured yet."
    if all(_has_too_few_clusters(row) for row in rows):
        noun = "model" if len(rows) == 1 else "models"
        return (
            f"This audit is too small to judge the {noun}: it needs scores on at least {MIN_UNITS} countries and "
            f"{MIN_UNITS} topics."
        )
    statuses = _classify_together(rows)
    members = {
        status: [row for row, row_status in zip(rows, statuses, strict=True) if row_status == status]
        for status in _HEADLINE_PHRASES
    }
    predicates = [
        (len(members[status]), f"{verbs[len(members[status]) > 1]} {phrase}{_format_r_range(status, members[status])}")
        for status, (*verbs, phrase) in _HEADLINE_PHRASES.items()
        if members[status]
    ]
    if len(rows) == 1:
        return f"The model {predicates[0][1]}.{_describe_fragile(rows, statuses)}"
    noun = "models" if len({row.method for row in rows}) == 1 else "series of scores"
    fragile = _describe_fragile(rows, statuses)
    if len(predicates) == 1:
        return f"{'Both' if len(rows) == 2 else f'All {len(rows)}'} {noun} {predicates[0][1]}.{fragile}"
    *parts, last_part = (f"{n} {predicate}" for n, predicate in predicates)
    return f"Of {len(rows)} {noun}, {', '.join(parts)} and {last_part}.{fragile}"


def _describe_fragile(rows: Sequence[AlignmentRow], statuses: Sequence[Status]) -> str:
    """A sentence on the models whose worst-case interval of r includes 0, with a space before it; empty without any."""
    labels = SeriesLabels(shows_method=len({row.method for row in rows}) > 1)
    names = [
        labels.label(row)
        for row, status in zip(rows, statuses, strict=True)
        if status in ("positive", "negative")
        and row.worst_case is not None
        and compare_interval(row.worst_case.pearson_r) != status
    ]
    if not names:
        return ""
    subject = "This" if len(rows) == 1 else f"For {join_first(names)}, this"
    return f" {subject} holds only if the samples without a usable score are like the others."


def _classify_together(rows: Sequence[AlignmentRow]) -> list[Status]:
    """The status of each series after Holm's correction: unclear where the agreement is not shown for all together."""
    return [
        "unclear" if status in ("positive", "negative") and not row.pearson_r.is_significant else status
        for row in rows
        for status in [classify_alignment(row)]
    ]


def _has_too_few_clusters(row: AlignmentRow) -> bool:
    """Whether a series has r but no interval, since its scores are on too few countries or topics."""
    is_too_small = min(row.countries, row.topics) < MIN_UNITS
    return row.pearson_r.value is not None and classify_alignment(row) == "neutral" and is_too_small


def _format_r_range(status: Status, rows: Sequence[AlignmentRow]) -> str:
    """The range of r over the rows of one status, in brackets; empty for a status without a clear sign of r."""
    r_values = [row.pearson_r.value for row in rows if row.pearson_r.value is not None]
    if status not in ("positive", "negative"):
        return ""
    low, high = format_number(min(r_values)), format_number(max(r_values))
    return f" (r = {low})" if len(r_values) == 1 else f" (r from {low} to {high})"


# --- section ----------------------------------------------------------------------------------------------------


def build_agreement_section(report: Report) -> Section | None:
    """Build the section on agreement with people; None for an audit without a survey."""
    if not report.audit.survey.title:
        return None
    labels = SeriesLabels.of(report)
    rows = sorted(report.alignment, key=lambda row: 2.0 if row.pearson_r.value is None else -row.pearson_r.value)
    blocks: list[Block] = [
        Paragraph(describe_preference(ranking), "finding")
        for ranking in report.tiers
        if ranking.by == "r" and ranking.scope == ALL_COUNTRIES
    ] or [Paragraph(summarize_alignment(report.alignment), "finding")]
    blocks += build_assumptions(report)
    if rows:
        blocks.append(build_alignment_table(report, rows, labels))
        blocks.append(build_alignment_remarks(report))
    return Section("answer", "How well does each model agree with people?", blocks, "Agreement with people")
