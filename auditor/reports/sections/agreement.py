"""The section on agreement with people: which model to prefer, tiers, the table, and what the intervals assume."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    Status,
    Table,
)
from auditor.reports.number_format import format_count, format_number, pluralize
from auditor.reports.sections.coverage import get_range
from auditor.reports.sections.phrasing import (
    SeriesLabels,
    build_interval_figure,
    compare_interval,
    compare_test,
    describe_correction,
    describe_estimate,
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


PARTLY_AGREES = 0.5
ROUNDING_ERROR = 1e-9
ERROR_CAPTION = "Mean absolute difference of each model’s scores from people’s; further right means a larger error."
CONCORDANCE_WORDS = ((-1.0, "hardly"), (PARTLY_AGREES, "partly"), (0.75, "well"), (0.9, "closely"))
"""How closely a model agrees with people, by the smallest concordance of each word."""

_SPECIAL_PHRASES: Mapping[str, tuple[str, str, str]] = {
    "perfect": ("has", "have", "people’s score in every cell"),
    "constant": ("hardly agrees", "hardly agree", "with people: it gives every cell the same score"),
    "reversed": ("reverses", "reverse", "people: its scores fall exactly where theirs rise"),
    "contradicts": ("contradicts", "contradict", "people: its scores fall where theirs rise"),
}
"""The same for models of a kind that agreement in words does not describe; they are named."""
_HEADLINE_PHRASES: Mapping[Status, tuple[str, str, str]] = {
    "positive": ("agrees", "agree", "with people at least partly"),
    "negative": ("hardly agrees", "hardly agree", "with people"),
    "unclear": ("may agree", "may agree", "with people at least partly, or hardly at all"),
    "neutral": ("cannot", "cannot", "be judged without a 95% CI"),
}
"""The verb for one series of scores and for several, and the rest of the predicate."""


# --- sentences --------------------------------------------------------------------------------------------------


def classify_alignment(row: AlignmentRow) -> Status:
    """Whether the interval of the concordance lies above 0.5 (positive), below it, or spans it; neutral without one.

    A perfect model and one with equal scores have no interval, and need none.
    """
    if (kind := _find_kind(row)) is not None:
        return "positive" if kind == "perfect" else "negative"
    return compare_interval(row.concordance_simultaneous, PARTLY_AGREES)


def describe_alignment(row: AlignmentRow) -> str:
    """Describe the agreement of one model with people, as a predicate: in words, then MAE, bias, concordance and r."""
    mae, r = row.mae, row.pearson_r
    if mae.value is None and r.value is None:
        return f"cannot be compared with people: {row.pearson_r.reason}"
    order = ""
    if r.value is not None:
        figure = describe_estimate("r", r, "cell" if mae.value is None else "")
        order = f"{_describe_order(row)} ({figure}{describe_correction(r)})"
    if mae.value is None:
        return f"{order}; it has no mean absolute error: {mae.reason}"
    figures = "; ".join(
        (
            describe_estimate("mean absolute error", mae, "cell"),
            describe_estimate("bias", row.bias, style="signed"),
            describe_estimate("concordance", row.concordance),
        )
    )
    return f"{describe_closeness(row)} ({figures}){f'. {order}' if order else ''}"


def describe_agreement(row: AlignmentRow) -> str:
    """The agreement of one model with people in words, as a predicate; its figures are in the table."""
    if row.mae.value is None and row.pearson_r.value is None:
        return f"cannot be compared with people: {row.pearson_r.reason}"
    order = _describe_order(row)
    order = f"and {order.removeprefix('It ')}" if order.startswith("It ") else f"{order[:1].lower()}{order[1:]}"
    closeness = "has no mean absolute error" if row.mae.value is None else describe_closeness(row)
    return closeness if row.pearson_r.value is None else f"{closeness}, {order}"


def describe_closeness(row: AlignmentRow) -> str:
    """How closely a model agrees with people, in words that hold for the interval of its concordance.

    The interval is that for all series together, so that the words of all are right in 95% of audits.
    """
    if (kind := _find_kind(row)) is not None:
        verb, _, predicate = _SPECIAL_PHRASES[kind]
        return f"{verb} {predicate}"
    concordance = row.concordance_simultaneous
    if concordance.ci_low is None or concordance.ci_high is None:
        return "cannot be judged without a 95% CI of its concordance"
    words = [
        next(word for smallest, word in reversed(CONCORDANCE_WORDS) if end >= smallest)
        for end in (concordance.ci_low, concordance.ci_high)
    ]
    if words == ["hardly", "hardly"]:
        return "hardly agrees with people"
    return f"agrees {words[0] if words[0] == words[1] else ' to '.join(words)} with people"


def _find_kind(row: AlignmentRow) -> str | None:
    """Which of `_SPECIAL_PHRASES` describes a model: perfect, constant, reversed or contradicting; else None."""
    r, concordance = row.pearson_r.value, row.concordance_simultaneous
    if row.mae.value == 0:
        return "perfect"
    if row.concordance.value is not None and abs(row.concordance.value) < ROUNDING_ERROR and r is None:
        return "constant"
    if r is not None and r < -1 + ROUNDING_ERROR:
        return "reversed"
    if concordance.ci_high is not None and concordance.ci_high < 0:
        return "contradicts"
    return None


def _describe_order(row: AlignmentRow) -> str:
    """Whether a model orders countries and topics as people do: what r says."""
    return {
        "positive": "It orders countries and topics as people do, to some degree",
        "negative": "It orders countries and topics against people",
        "unclear": "It is not shown to order countries and topics as people do",
        "neutral": "Whether it orders countries and topics as people do cannot be judged",
    }[compare_test(row.pearson_r)]


def summarize_alignment(rows: Sequence[AlignmentRow]) -> str:
    """Summarize the agreement of all series of scores with people in one or two sentences.

    The second has the bounds of the mean absolute error of models that lost more than 5% of their samples. The
    intervals of the concordance, which the first rests on, hold for all series together.
    """
    if not rows:
        return "Agreement with people is not available: no scores have been measured yet."
    if all(_has_too_few_clusters(row) for row in rows):
        noun = "model" if len(rows) == 1 else "models"
        return (
            f"This audit is too small to judge the {noun}: it needs scores on at least {MIN_UNITS} countries and "
            f"{MIN_UNITS} topics."
        )
    # Scores on another scale have neither a mean absolute error nor a concordance.
    if not (comparable := [row for row in rows if row.mae.value is not None]):
        return " ".join(f"{SeriesLabels(False).label(row)}: {_describe_order(row)}." for row in rows)
    rows = comparable
    if len(rows) > 1 and (special := [row for row in rows if _find_kind(row) is not None]):
        names = _name_special(special)
        others = [row for row in rows if row not in special]
        ordinary = f" {_summarize_ordinary(others, 'other ')}" if others else ""
        return f"{names}{ordinary}{_describe_fragile(rows)}"
    if len(rows) == 1:
        return f"The model {describe_closeness(rows[0])}{_format_mae_range(rows)}.{_describe_fragile(rows)}"
    return f"{_summarize_ordinary(rows)}{_describe_fragile(rows)}"


def _name_special(rows: Sequence[AlignmentRow]) -> str:
    """Name the perfect, constant, reversed and contradicting models, in a sentence for each kind."""
    labels = SeriesLabels(shows_method=len({row.method for row in rows}) > 1)
    sentences = []
    for kind, (one, several, predicate) in _SPECIAL_PHRASES.items():
        if members := [row for row in rows if _find_kind(row) == kind]:
            names = join_first([labels.label(row) for row in members], "model")
            verb = one if len(members) == 1 else several
            if len(members) > 1:
                predicate = predicate.replace("it gives", "each gives").replace("its scores", "their scores")
            sentences.append(f"{names} {verb} {predicate}{_format_mae_range(members)}.")
    return " ".join(sentences)


def _summarize_ordinary(rows: Sequence[AlignmentRow], kind: str = "") -> str:
    """Say how many series agree with people at least partly, hardly, or neither is shown.

    Args:
        kind: of which the series are, before the noun.
    """
    statuses = [classify_alignment(row) for row in rows]
    members = {
        status: [row for row, row_status in zip(rows, statuses, strict=True) if row_status == status]
        for status in _HEADLINE_PHRASES
    }
    predicates = [
        (len(members[status]), f"{verbs[len(members[status]) > 1]} {phrase}{_format_mae_range(members[status])}")
        for status, (*verbs, phrase) in _HEADLINE_PHRASES.items()
        if members[status]
    ]
    noun = "model" if len({row.method for row in rows}) == 1 else "series of scores"
    plural = f"{noun}s" if noun == "model" else noun
    if len(predicates) == 1:
        subject = {1: f"The {kind}{noun}", 2: f"{'The two' if kind else 'Both'} {kind}{plural}"}
        return f"{subject.get(len(rows), f'All {len(rows)} {kind}{plural}')} {predicates[0][1]}."
    *parts, last_part = (f"{n} {predicate}" for n, predicate in predicates)
    return f"Of {len(rows)} {kind}{plural}, {', '.join(parts)} and {last_part}."


def _describe_fragile(rows: Sequence[AlignmentRow]) -> str:
    """A sentence on the models that lost many samples, with a space before it and bounds of MAE; empty without any."""
    labels = SeriesLabels(shows_method=len({row.method for row in rows}) > 1)
    ranges = [
        f"{labels.label(row)} {format_number(ends[0])} to {format_number(ends[1])}"
        for row in rows
        if row.worst_case is not None and (ends := get_range(row.worst_case.mae)) is not None
    ]
    if not ranges:
        return ""
    return f" Whatever scores the lost samples would have had, the mean absolute error is within: {', '.join(ranges)}."


def _has_too_few_clusters(row: AlignmentRow) -> bool:
    """Whether a series has r but no interval, since its scores are on too few countries or topics."""
    is_too_small = min(row.countries, row.topics) < MIN_UNITS
    return row.pearson_r.value is not None and classify_alignment(row) == "neutral" and is_too_small


def _format_mae_range(rows: Sequence[AlignmentRow]) -> str:
    """The range of the mean absolute error over rows, in brackets; empty without any."""
    maes = [row.mae.value for row in rows if row.mae.value is not None]
    if not maes:
        return ""
    low, high = format_number(min(maes)), format_number(max(maes))
    return f" (mean absolute error {low})" if low == high else f" (mean absolute error {low} to {high})"


# --- section ----------------------------------------------------------------------------------------------------


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
