"""The section on tiers of models, and sentences on which model to prefer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from auditor.domain import Method
from auditor.reports.data.agreement.tiers import ALL_COUNTRIES, TierRanking
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Column,
    CountShare,
    Disclosure,
    List,
    ListItem,
    Paragraph,
    Reason,
    Row,
    Section,
)
from auditor.reports.number_format import format_count, format_number, format_percent, pluralize
from auditor.reports.sections.phrasing import join_first
from auditor.reports.sections.tables import tabulate

MAX_LEADING_PREFERENCES = 3
"""Preferences in the section on agreement; the section on tiers has the others."""
MAX_OPEN_RANKINGS = 2
"""Rankings whose table is open when the page is opened."""

_EXPLANATION = (
    "A tier holds the models that are not statistically distinguishable from its best model. Differences from the best "
    "have 95% CIs over countries and topics, corrected for their number (Holm)."
)


def build_tiers_section(report: Report) -> Section | None:
    """Build the section on the tiers of models, overall and by region; None where no models are ranked."""
    if not report.tiers:
        return None
    preferences = list_preferences(report)[MAX_LEADING_PREFERENCES:]
    rankings = [_build_ranking(ranking, position) for position, ranking in enumerate(report.tiers, 1)]
    leading: list[Block] = [List(preferences, is_findings=True)] if preferences else []
    return Section("prefer", "Tiers of models", [*leading, Paragraph(_EXPLANATION), *rankings], "Tiers")


def _build_ranking(ranking: TierRanking, position: int) -> Disclosure:
    """The table of one ranking, below a summary with its scope, criterion and size."""
    criterion = "Pearson’s r (higher is better)" if ranking.by == "r" else "mean absolute error (lower is better)"
    reason = f" No tiers: {ranking.reason}." if ranking.reason else ""
    table = tabulate(
        f"tiers-{position}",
        f"Tiers: {ranking.scope}, by {ranking.by}",
        f"Models by {criterion}, {ranking.scope}, on the cells that all ranked models have. Best and worst rank: ends "
        f"of the 95% CI of the rank. First in: share of resamples in which the model is the best.{reason}",
        ranking.rows,
        [
            Column("Model", "name"),
            Column("Tier", "number", emphasis=True),
            Column(ranking.by, "number", "value"),
            Column("Best rank", "number", "rank_low"),
            Column("Worst rank", "number", "rank_high"),
            Column("First in", "share", "first"),
        ],
        # One decimal of a percentage.
        {"first": lambda row: None if row.first is None else CountShare(round(1000 * row.first), 1000)},
    )
    excluded_rows = [Row([name, Reason(f"not ranked: {text}", 5)]) for name, text in ranking.left_out.items()]
    size = f"{pluralize(ranking.cells, 'shared cell')} of {pluralize(ranking.countries, 'country', 'countries')}"
    return Disclosure(
        f"{ranking.scope[:1].upper()}{ranking.scope[1:]}, by {_name_criterion(ranking)}",
        [replace(table, rows=[*table.rows, *excluded_rows])]
        if table.rows or excluded_rows
        else [Paragraph(table.caption)],
        detail=f"{ranking.method} · {size} and {pluralize(ranking.topics, 'topic')}",
        is_open=position <= MAX_OPEN_RANKINGS,
    )


def _name_criterion(ranking: TierRanking) -> str:
    """The figure that models are ranked by."""
    return "agreement (r)" if ranking.by == "r" else "mean absolute error"


def list_preferences(report: Report) -> Sequence[ListItem]:
    """The model to prefer by mean absolute error: over all countries first, then in each region."""
    return [
        ListItem(describe_preference(ranking), "positive" if ranking.rows and ranking.rows[0].tier else "unclear")
        for ranking in report.tiers
        if ranking.by == "MAE"
    ]


def describe_preference(ranking: TierRanking) -> str:
    """Describe in one or two sentences which model to prefer in one scope, and how certain that is."""
    noun = " countries" if ranking.scope.endswith("Western") else ""
    scope = "Over all countries" if ranking.scope == ALL_COUNTRIES else f"For {ranking.scope}{noun}"
    if ranking.method == Method.LOGPROB:
        scope += ", by log-probabilities"
    if not ranking.rows or ranking.rows[0].value is None:
        return f"{scope}, no model can be preferred: {ranking.reason or 'none has scores on enough cells'}."
    best = ranking.rows[0]
    if best.tier is None:
        return (
            f"{scope}, {best.model} has the best {_name_criterion(ranking)} ({format_number(best.value)}, "
            f"{pluralize(ranking.cells, 'cell')}). How certain this is cannot be estimated: {ranking.reason}."
        )
    first_share = format_percent(round(1000 * (best.first or 0.0)), 1000)
    figures = (
        f"{_name_criterion(ranking)} {format_number(best.value)}, first in {first_share} of resamples, "
        f"{pluralize(ranking.cells, 'shared cell')}"
    )
    tied = [row.model for row in ranking.rows[1:] if row.tier == 1]
    if not tied:
        return f"{scope}, prefer {best.model} ({figures}): it is statistically distinguishable from every other model."
    n_worse = len(ranking.rows) - 1 - len(tied)
    worse = "The other model is worse." if n_worse == 1 else f"The other {format_count(n_worse)} models are worse."
    return (
        f"{scope}, {best.model} is ahead ({figures}), but not statistically distinguishable from {join_first(tied)}."
        f"{' ' + worse if n_worse else ''}"
    )
