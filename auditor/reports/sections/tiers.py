"""The section on tiers of models, and sentences on which model to prefer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from auditor.domain import Method
from auditor.reports.data.agreement.tiers import ALL_COUNTRIES, TierRanking, TierRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Disclosure,
    List,
    ListItem,
    Paragraph,
    Reason,
    Row,
    Section,
)
from auditor.reports.number_format import format_count, format_number, pluralize
from auditor.reports.sections.phrasing import join_first
from auditor.reports.sections.tables import list_columns, tabulate

MAX_OPEN_RANKINGS = 1
"""Rankings whose table is open when the page is opened."""
_FIGURES = {"r": "r", "MAE": "mean absolute error"}
"""What a sentence calls the figure that models are ranked by."""

_EXPLANATION = (
    "Rankings are on the cells for which all ranked models have a score. A model of a lower tier is significantly "
    "worse than at least one model of the tier above; no model of the first tier is worse than any. Best and worst "
    "rank are the ends of the 95% CI of the rank. Both are corrected for the number of pairs. “From the best other” is "
    "the difference from the best other model (Hsu’s method, which cuts CIs off at 0). “May be the best”: the model "
    "that is significantly the best by that method; without one, all of the first tier."
)


def build_tiers_section(report: Report) -> Section | None:
    """Build the section on the tiers of models, overall and by region; None where no models are ranked."""
    if not report.tiers:
        return None
    preferences = list_preferences(report)
    rankings = [_build_ranking(ranking, position) for position, ranking in enumerate(report.tiers, 1)]
    leading: list[Block] = [
        List(preferences, is_findings=True)
        if preferences
        else Paragraph(describe_preference(report.tiers[0]), "finding")
    ]
    return Section("prefer", "Tiers of models", [*leading, Paragraph(_EXPLANATION, "note"), *rankings], "Tiers")


def _build_ranking(ranking: TierRanking, position: int) -> Disclosure:
    """The table of one ranking, below a summary with its scope, criterion and size."""
    criterion = "Pearson’s r (higher is better)" if ranking.by == "r" else "mean absolute error (lower is better)"
    reason = f" No tiers: {ranking.reason}." if ranking.reason else ""
    scope = _name_scope(ranking)
    table = tabulate(
        f"tiers-{position}",
        f"Tiers: {ranking.scope}, by {ranking.by}",
        f"Models ranked by {criterion} in {scope}.{reason}",
        ranking.rows,
        [replace(column, title=ranking.by) if column.key == "value" else column for column in list_columns(TierRow)],
        {"may_be_best": lambda row: None if row.may_be_best is None else "yes" if row.may_be_best else "no"},
    )
    excluded_rows = [
        Row([name, Reason(f"not ranked: {text}", len(table.columns) - 1)]) for name, text in ranking.left_out.items()
    ]
    size = f"{pluralize(ranking.cells, 'shared cell')} of {pluralize(ranking.countries, 'country', 'countries')}"
    return Disclosure(
        f"Ranking in {scope}, by {_name_criterion(ranking)}",
        [replace(table, rows=[*table.rows, *excluded_rows])]
        if table.rows or excluded_rows
        else [Paragraph(table.caption)],
        detail=f"{ranking.method} · {size} and {pluralize(ranking.topics, 'topic')}",
        is_open=position <= MAX_OPEN_RANKINGS,
    )


def _name_scope(ranking: TierRanking) -> str:
    """The countries of a ranking; the regions of the grouping `western` are adjectives."""
    return f"{ranking.scope} countries" if ranking.scope.endswith("Western") else ranking.scope


def _name_criterion(ranking: TierRanking) -> str:
    """The figure that models are ranked by."""
    return "agreement (r)" if ranking.by == "r" else _FIGURES[ranking.by]


def list_preferences(report: Report) -> Sequence[ListItem]:
    """The model to prefer by mean absolute error: over all countries first, then in each region."""
    rankings = [ranking for ranking in report.tiers if ranking.by == "MAE"]
    same = [ranking for ranking in rankings[1:] if _has_same_winner(ranking, rankings[0])]
    items = [
        ListItem(describe_preference(ranking), "positive" if list_candidates(ranking) else "unclear")
        for ranking in rankings
        if ranking not in same
    ]
    if same:
        scopes = " and ".join(_name_scope(ranking) for ranking in same)
        items.append(ListItem(f"For {scopes} too, prefer {list_candidates(rankings[0])[0]}.", "positive"))
    return items


def _has_same_winner(ranking: TierRanking, other: TierRanking) -> bool:
    """Whether one and the same model alone may be the best in both rankings, among several, by one method."""
    candidates = list_candidates(ranking)
    is_comparable = ranking.method == other.method and min(len(ranking.rows), len(other.rows)) > 1
    return is_comparable and len(candidates) == 1 and candidates == list_candidates(other)


def list_candidates(ranking: TierRanking) -> list[str]:
    """Models that may be the best, the best figure first; empty where none are compared."""
    return [row.model for row in ranking.rows if row.may_be_best and row.from_best.value is not None]


def describe_closest(report: Report) -> str:
    """Name the models with the smallest mean absolute error over all countries; empty if none are compared."""
    for ranking in report.tiers:
        candidates = list_candidates(ranking)
        if ranking.by == "MAE" and ranking.scope == ALL_COUNTRIES and len(ranking.rows) > 1 and candidates:
            if len(candidates) == 1:  # without the error: it is of the cells of all models, each model's own is shown
                return f"Closest to people: {candidates[0]}."
            if len(candidates) == len(ranking.rows):
                return "No model is shown to be closer to people than another."
            return f"Closest to people: {join_first(candidates)}. No one of them is shown to be closer than the others."
    return ""


def describe_preference(ranking: TierRanking) -> str:
    """Describe in one or two sentences which model to prefer in one scope, and how certain that is."""
    scope = "Over all countries" if ranking.scope == ALL_COUNTRIES else f"For {_name_scope(ranking)}"
    if ranking.method == Method.LOGPROB:
        scope += ", by log-probabilities"
    if not ranking.rows or ranking.rows[0].value is None:
        return f"{scope}, no model can be preferred: {ranking.reason or 'none has scores on enough cells'}."
    leader = ranking.rows[0]
    criterion, value = _FIGURES[ranking.by], format_number(leader.value)
    if len(ranking.rows) == 1 and leader.may_be_best is not None:
        size = pluralize(ranking.cells, "cell")
        return f"{scope}, {leader.model} is the only model with enough scores ({criterion} {value}, {size})."
    models = "all ranked models" if ranking.left_out else "all models"
    cells = f"The comparison uses the {pluralize(ranking.cells, 'cell')} that {models} share."
    leads = f"{leader.model} has the {'highest' if ranking.by == 'r' else 'lowest'} {criterion} ({value})"
    if leader.may_be_best is None:
        return f"{scope}, {leads}. It is not known whether it is the best: {ranking.reason}. {cells}"
    other_candidates = [model for model in list_candidates(ranking) if model != leader.model]
    if not other_candidates:
        claim = leads if ranking.by == "r" else f"prefer {leader.model}: its {criterion} is the lowest ({value})"
        return f"{scope}, {claim}. {_describe_lead(ranking)} {cells}"
    n_worse = len(ranking.rows) - 1 - len(other_candidates)
    worse = "The other model is worse." if n_worse == 1 else f"The other {format_count(n_worse)} models are worse."
    candidates = f"{join_first(other_candidates)} may be the best as well."
    return f"{scope}, {leads}, but {candidates}{' ' + worse if n_worse else ''} {cells}"


def _describe_lead(ranking: TierRanking) -> str:
    """Say by how much the next model is worse than the first, where that alone may be the best."""
    leader, next_model = ranking.rows[:2]
    difference = leader.from_best
    largest = max(abs(end or 0.0) for end in (difference.ci_low, difference.ci_high))
    distance = f"by {format_number(abs(difference.value or 0.0))}, and by at most {format_number(largest)}"
    return f"The next model, {next_model.model}, is shown to be worse: {distance} (95% CI)."
