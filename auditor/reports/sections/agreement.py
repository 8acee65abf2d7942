"""The section on agreement with people: the findings, reasons for caution, a plot and a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal

from auditor.metrics.bootstrap import MIN_CLUSTERS
from auditor.metrics.estimate import Estimate
from auditor.reports.charts.interval_plot import CORRELATION_AXIS, IntervalRow, interval_plot
from auditor.reports.data.measurement_schema import AlignmentRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Callout,
    Cell,
    Column,
    Disclosure,
    Figure,
    Link,
    List,
    ListItem,
    Paragraph,
    Reason,
    Section,
    Status,
    Table,
)
from auditor.reports.number_format import format_number
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
_HEADLINE_PHRASES: Mapping[AlignmentKind, tuple[str, str]] = {
    "agrees": ("agrees with people beyond chance", "agree with people beyond chance"),
    "opposes": (
        "is negatively correlated with people beyond chance",
        "are negatively correlated with people beyond chance",
    ),
    "unclear": (
        "shows an agreement that is not statistically distinguishable from zero",
        "show an agreement that is not statistically distinguishable from zero",
    ),
    "unknown": ("cannot be judged without a 95% CI", "cannot be judged without a 95% CI"),
}
"""Predicates for one series of scores and for several."""


# --- estimates and table ----------------------------------------------------------------------------------------


def two_way_r(row: AlignmentRow) -> Estimate:
    """r of one series of scores, with the 95% CI over countries and topics on which all findings are based.

    Fisher's interval is no substitute, since it treats the cells of one country or topic as independent.
    """
    reason = row.reason if row.pearson_r is None else row.crossed.pearson_r.reason
    return replace(row.crossed.pearson_r, value=row.pearson_r, n=row.n, reason=reason)


def _corrected_r(row: AlignmentRow) -> Estimate:
    """r corrected for the sampling noise of the model's scores, with its two-way interval."""
    if row.corrected_r.value is None:
        return row.corrected_r
    return replace(row.crossed.corrected_r, value=row.corrected_r.value)


def _fisher_estimate(row: AlignmentRow, value: float | None, low: float | None, high: float | None) -> Estimate:
    """A correlation with an interval that treats cells as independent."""
    reason = row.reason or "no interval for a correlation of 1 or −1" if low is None else None
    return Estimate(value, row.n, low, high, reason)


def _correlation(title: str, key: str, *, emphasis: bool = False) -> Column:
    """A column of correlations; n is in a column of its own."""
    return Column(title, "estimate", key, show_n=False, emphasis=emphasis)


ALIGNMENT_COLUMNS: Sequence[tuple[Column, Callable[[AlignmentRow], Cell]]] = (
    (_correlation("r", "r", emphasis=True), two_way_r),
    (
        _correlation("r, Fisher’s CI", "r_fisher"),
        lambda row: _fisher_estimate(row, row.pearson_r, row.ci_low, row.ci_high),
    ),
    (
        _correlation("Spearman ρ", "spearman_rho"),
        lambda row: _fisher_estimate(row, row.spearman_rho, row.spearman_ci_low, row.spearman_ci_high),
    ),
    (_correlation("r without sampling noise", "r_corrected"), _corrected_r),
    (Column("Highest attainable r", "number", "r_ceiling"), lambda row: row.ceiling),
    (Column("p (r = 0)", "number", "p", style="p_value"), lambda row: row.crossed_p_value),
    (Column("MAE", "estimate", "mae", show_n=False), lambda row: replace(row.crossed.mae, value=row.mae)),
    (Column("RMSE", "estimate", "rmse", show_n=False), lambda row: replace(row.crossed.rmse, value=row.rmse)),
    (
        Column("Bias", "estimate", "bias", style="signed", show_n=False),
        lambda row: replace(row.crossed.bias, value=row.bias.value),
    ),
    (Column("Cells", "number", "n"), lambda row: row.n),
    (Column("Dropped", "number", "n_dropped"), lambda row: row.n_dropped),
)
"""The columns of the alignment table after the model, each with its cell."""


def _merge_missing(cells: Iterable[Cell]) -> list[Cell]:
    """Replace estimates without a value by their reason; adjacent ones with the same reason share a cell."""
    merged: list[Cell] = []
    for reason, group in groupby(cells, _missing_reason):
        group_cells = list(group)
        merged += group_cells if reason is None else [Reason(reason, len(group_cells))]
    return merged


def _missing_reason(cell: Cell) -> str | None:
    """The reason of an estimate without a value; None for other cells."""
    return cell.reason if isinstance(cell, Estimate) and cell.value is None else None


def _build_alignment_table(report: Report, rows: Sequence[AlignmentRow], labels: SeriesLabels) -> Table:
    """The table of agreement with people, one row for each series of scores."""
    low_label, high_label = report.audit.survey.scale
    ceiling_note = "" if any(row.ceiling is not None for row in rows) else " (not available here)"
    return Table(
        id="alignment",
        label="Agreement with people",
        caption=(
            "Agreement with people, over the cells (country × topic) with a score of people and of the model. r and ρ "
            "range from −1 to +1; higher is better. MAE, RMSE and bias are on the scale of the scores, from "
            f"−1 ({low_label}) to +1 ({high_label}). Lower MAE and RMSE are better; a positive bias is more permissive "
            "than people. r without sampling noise estimates r for an unlimited number of samples per cell "
            "(Spearman’s correction by the spread of the samples, on the model’s side only). The highest attainable r "
            f"is what a perfect model is expected to reach against this survey{ceiling_note}. Intervals are 95% CIs "
            "over countries and topics; those of Fisher’s r and of ρ treat cells as independent."
        ),
        columns=[Column("Model", "name"), *(column for column, _ in ALIGNMENT_COLUMNS)],
        rows=[
            [labels.label(row.method, row.model), *_merge_missing(get_cell(row) for _, get_cell in ALIGNMENT_COLUMNS)]
            for row in rows
        ],
    )


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
        (len(members), _HEADLINE_PHRASES[kind][len(members) > 1] + _format_r_range(kind, members))
        for kind, members in rows_by_kind.items()
        if members
    ]
    if len(rows) == 1:
        return f"The model {counts_and_predicates[0][1]}."
    noun = "models" if len({row.method for row in rows}) == 1 else "series of scores"
    if len(counts_and_predicates) == 1:
        quantifier = "Both" if len(rows) == 2 else f"All {len(rows)}"
        return f"{quantifier} {noun} {counts_and_predicates[0][1]}."
    phrases = [f"{n} {predicate}" for n, predicate in counts_and_predicates]
    return f"Of {len(rows)} {noun}, {', '.join(phrases[:-1])} and {phrases[-1]}."


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
    label = labels.label(best.method, best.model)
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
            _build_alignment_table(report, rows, labels),
            _build_remarks(report),
        ]
    return Section("answer", "How well do the models agree with people?", blocks, "Agreement with people")


def _findings_blocks(rows: Sequence[AlignmentRow], labels: SeriesLabels) -> Iterator[Block]:
    """Yield the findings on each series of scores, and whether one is the best."""
    findings = List(
        [
            ListItem(
                name_finding(labels.label(row.method, row.model), describe_alignment(row)),
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
    labelled_rows = [(labels.label(row.method, row.model), row, two_way_r(row)) for row in rows]
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


def _build_remarks(report: Report) -> Paragraph:
    """Remarks on the columns of the alignment table."""
    n_not_asked = report.audit.survey.cells - report.audit.survey.asked
    return Paragraph(
        f"Dropped cells lack a score. People were not asked in {n_not_asked}; in the others no answer of the model was "
        "usable. Cells of one country or topic are correlated, so Fisher’s interval is too narrow. The 95% CI over "
        "countries and topics leaves out each country and topic in turn (jackknife with crossed clusters). All "
        f"findings use it. It needs at least {MIN_CLUSTERS} countries and {MIN_CLUSTERS} topics; with fewer, the "
        "uncertainty is not available. p is also over countries and topics.",
        "note",
    )
