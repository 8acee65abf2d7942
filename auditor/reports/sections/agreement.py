"""The section on agreement with people: which model to prefer, tiers, the table, and what the intervals assume."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from auditor.domain import Method, Purpose
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.jackknife_interval import MIN_UNITS
from auditor.reports.charts.interval_plot import CORRELATION_AXIS, error_axis
from auditor.reports.data.agreement.alignment import AlignmentRow, rank_by_error
from auditor.reports.data.agreement.tiers import ALL_COUNTRIES, TierRanking, TierRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Cell,
    Disclosure,
    Figure,
    List,
    ListItem,
    Paragraph,
    Reason,
    Row,
    Section,
    Table,
)
from auditor.reports.number_format import format_count, format_number, pluralize
from auditor.reports.sections.agreement_words import (
    classify_alignment,
    describe_agreement,
    describe_alignment,
    summarize_alignment,
)
from auditor.reports.sections.phrasing import (
    SeriesLabels,
    build_interval_figure,
    group_findings,
    join_first,
    list_columns,
    tabulate,
)
from auditor.reports.sections.probe_sections import has_probes_only
from auditor.reports.sections.requests import SamplingMarks
from auditor.reports.sections.sensitivity import build_assumptions
from auditor.reports.sections.weaknesses import build_findings_block, list_weaknesses


def _merge_missing(cells: Iterable[Cell]) -> list[Cell]:
    """Replace adjacent estimates that lack a value for the same reason by one cell with the reason."""
    merged: list[Cell] = []
    for reason, group in groupby(cells, _missing_reason):
        members = list(group)
        merged += [Reason(reason, len(members))] if reason is not None and len(members) > 1 else members
    return merged


def _missing_reason(cell: Cell) -> str | None:
    """The reason of an estimate without a value; None for other cells."""
    return cell.reason if isinstance(cell, Estimate) and cell.value is None else None


def build_alignment_table(report: Report, rows: Sequence[AlignmentRow], labels: SeriesLabels) -> Table:
    """The table of agreement with people, one row for each series of scores."""
    survey = report.audit.survey
    low_label, high_label = ("the low end", "the high end") if survey.topic_questions else survey.survey.scale
    marks = SamplingMarks.of(report.sampling, Purpose.DIRECT)
    ceiling_note = "" if any(row.ceiling is not None for row in rows) else " (not available here)"
    caption = (
        f"Scores range from −1 ({low_label}) to +1 ({high_label}). MAE, RMSE: lower is better. r and ρ say how the "
        "model orders countries and topics (−1 to +1, higher is better); p tests r = 0. r without sampling noise is "
        "for unlimited samples per cell (Spearman’s correction). The highest r is what a perfect model is expected to "
        f"reach{ceiling_note}. Lost samples have no usable score."
        f"{marks.remark('Values of r without sampling noise')}"
    )
    derived = {"model": labels.label, **marks.derived}
    title = "Agreement with people"
    table = tabulate("alignment", title, caption, rows, AlignmentRow, derived, more_columns=marks.columns)
    merged_rows = [_merge_missing(row.cells) for row in table.rows if isinstance(row, Row)]
    return replace(table, rows=merged_rows, is_dense=True)


def build_alignment_remarks(report: Report) -> Paragraph:
    """Remarks on the columns of the alignment table."""
    survey = report.audit.survey
    n_not_asked = survey.cells - survey.asked
    not_asked = (
        f"In {pluralize(n_not_asked, 'cell')}, people were not asked."
        if n_not_asked
        else "People were asked in every cell."
    )
    units = "zones" if survey.clusters == "zone" else "countries"
    return Paragraph(
        f"Cells without a score of people or of the model are dropped. {not_asked} Cells of one country or topic are "
        f"correlated, so the 95% CI is a two-way jackknife, which needs at least {MIN_UNITS} {units} and topics. That "
        "of the bias for these countries is over topics only: neighbours may share a bias that no interval shows.",
        "note",
    )


MAX_OPEN_RANKINGS = 1
"""Rankings whose table is open when the page is opened."""
_FIGURES = {"r": "r", "MAE": "mean absolute error"}
"""What a sentence calls the figure that models are ranked by."""

_EXPLANATION = (
    "Rankings are on the cells for which all ranked models have a score. A model of a lower tier is significantly "
    "worse than at least one model of the tier above; no model of the first tier is worse than any. Best and worst "
    "rank are the ends of the 95% CI of the rank. Both are corrected for the number of pairs. “From the best other” is "
    "the difference from the best of the other models (Hsu’s method: an end of the CI at 0 is no estimate). “May be "
    "the best”: the model that is significantly the best by that method; without one, all of the first tier. Rankings "
    "in regions are also corrected for the number of regions. Tiers test ratios of errors, auditor compare their "
    "differences: choose by tiers."
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
        ListItem(
            describe_preference(ranking),
            "positive" if list_candidates(ranking) and not ranking.open_by_losses else "unclear",
        )
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
    is_comparable &= not (ranking.open_by_losses or other.open_by_losses)
    return is_comparable and len(candidates) == 1 and candidates == list_candidates(other)


def list_candidates(ranking: TierRanking) -> list[str]:
    """Models that may be the best, the best figure first; empty where none are compared."""
    return [row.model for row in ranking.rows if row.may_be_best and row.from_best.value is not None]


def describe_left_out(ranking: TierRanking, beginning: str = "Not compared") -> str:
    """Name the models that a ranking leaves out, in a sentence; empty without any."""
    names = [f"{model} ({reason.removeprefix('has ')})" for model, reason in ranking.left_out.items()]
    return f"{beginning}: {join_first(names, 'model')}." if names else ""


def describe_open_by_losses(ranking: TierRanking) -> str:
    """Name the models that lost samples could show to be closer, in a sentence; empty without any."""
    if not ranking.open_by_losses:
        return ""
    return f"Lost samples could reverse this for {join_first(ranking.open_by_losses, 'model')}."


def describe_closest(report: Report) -> str:
    """Name the models with the smallest mean absolute error over all countries, and those that are not compared."""
    rankings = [ranking for ranking in report.tiers if ranking.by == "MAE" and ranking.scope == ALL_COUNTRIES]
    for ranking in rankings:
        if closest := _describe_closest(ranking):
            return " ".join(filter(None, (closest, describe_open_by_losses(ranking), describe_left_out(ranking))))
    beginning = "The models are not compared with each other, for lack of scores"
    return next(filter(None, (describe_left_out(ranking, beginning) for ranking in rankings)), "")


def _describe_closest(ranking: TierRanking) -> str:
    """Name the models with the smallest mean absolute error of a ranking; empty if none are compared."""
    candidates = list_candidates(ranking)
    if len(ranking.rows) < 2 or not candidates:
        return ""
    compared = f" of {format_count(len(ranking.rows))} compared models" if ranking.left_out else ""
    compared += ", on the cells that all answered" if ranking.open_by_losses else ""
    if len(candidates) == 1:  # without the error: it is of the cells of all models, each model's own is shown
        return f"Closest to people{compared}: {candidates[0]}."
    if len(candidates) == len(ranking.rows):
        return f"No {'compared ' if ranking.left_out else ''}model is shown to be closer to people than another."
    names = join_first(candidates)
    return f"Closest to people{compared}: {names}. No one of them is shown to be closer than the others."


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
    cells = " ".join(filter(None, (describe_open_by_losses(ranking), cells, describe_left_out(ranking))))
    leads = f"{leader.model} has the {'highest' if ranking.by == 'r' else 'lowest'} {criterion} ({value})"
    if leader.may_be_best is None:
        return f"{scope}, {leads}. It is not known whether it is the best: {ranking.reason}. {cells}"
    other_candidates = [model for model in list_candidates(ranking) if model != leader.model]
    if not other_candidates:
        claim = (
            leads
            if ranking.by == "r" or ranking.open_by_losses
            else f"prefer {leader.model}: its {criterion} is the lowest ({value})"
        )
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


ERROR_CAPTION = "Mean absolute difference of each model’s scores from people’s; further right means a larger error."


def build_agreement_section(report: Report) -> Section | None:
    """Build the section on agreement with people; None for an audit without a survey, or of probes alone."""
    if not report.audit.survey.survey.title or has_probes_only(report):
        return None
    labels = SeriesLabels.of(report)
    rows = sorted(report.alignment, key=rank_by_error)
    blocks: list[Block] = [
        Paragraph(describe_preference(ranking), "finding")
        for ranking in report.tiers
        if ranking.by == "MAE" and ranking.scope == ALL_COUNTRIES
    ] or [Paragraph(summarize_alignment(report.alignment), "finding")]
    blocks += build_assumptions(report)
    if rows:
        blocks.append(_build_forest_plot(rows, labels))
        blocks.append(
            List(
                group_findings((labels.label(row), describe_agreement(row), classify_alignment(row)) for row in rows),
                is_findings=True,
            )
        )
        blocks.append(build_alignment_table(report, rows, labels))
        blocks.append(build_alignment_remarks(report))
    if (findings := build_findings_block(report)) is not None:
        blocks.append(findings)
    if weaknesses := list_weaknesses(report):
        blocks.append(Section("weaknesses", "Where the models fall short", [List(weaknesses)]))
    return Section("answer", "How well does each model agree with people?", blocks, "Agreement with people")


def _build_forest_plot(rows: Sequence[AlignmentRow], labels: SeriesLabels) -> Figure:
    """The plot of the mean absolute error with its interval, for each series of scores that has one."""
    estimates = [(labels.label(row), row.mae) for row in rows if row.mae.value is not None]
    estimates = estimates or [(labels.label(row), row.pearson_r) for row in rows]
    has_errors = any(row.mae.value is not None for row in rows)
    ends = (end for _, mae in estimates if (end := mae.value if mae.ci_high is None else mae.ci_high) is not None)
    return build_interval_figure(
        "agreement",
        "Distance from people: mean absolute error and its 95% CI" if has_errors else "r with people and its 95% CI",
        estimates,
        error_axis(ends, "Mean absolute error (lower is better)") if has_errors else CORRELATION_AXIS,
        table_id="alignment",
        caption=ERROR_CAPTION if has_errors else "Pearson’s r of each model’s scores with people’s.",
        description="; ".join(f"{labels.label(row)} {describe_alignment(row)}" for row in rows),
    )
