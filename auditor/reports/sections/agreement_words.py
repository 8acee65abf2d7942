"""Agreement with people in words: how closely, by the concordance's interval, and the sentence of page one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.metrics.intervals.jackknife_interval import MIN_UNITS
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.coverage.lost_samples import CONSTANT_SERIES_REASONS
from auditor.reports.data.report_model import ROUNDING_ERROR
from auditor.reports.data.report_source import has_rescaled_scores
from auditor.reports.document import Status
from auditor.reports.number_format import format_number
from auditor.reports.sections.coverage import get_range
from auditor.reports.sections.phrasing import (
    SeriesLabels,
    compare_interval,
    compare_test,
    describe_correction,
    describe_estimate,
    join_first,
    join_with_and,
)

PARTLY_AGREES = 0.5
CONCORDANCE_WORDS = ((-1.0, "hardly"), (PARTLY_AGREES, "partly"), (0.75, "well"), (0.9, "closely"))
"""How closely a model agrees with people, by the smallest concordance of each word."""

_SPECIAL_PHRASES: Mapping[str, tuple[str, str, str]] = {
    "perfect": ("has", "have", "people’s score in every cell"),
    "constant": ("hardly agrees", "hardly agree", "with people: it gives every cell the same score"),
    "reversed": ("reverses", "reverse", "people: its scores fall exactly where theirs rise"),
    "contradicts": ("contradicts", "contradict", "people: its scores fall where theirs rise"),
    "unordered": ("cannot", "cannot", "be judged by the concordance: people’s score is the same in every cell"),
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
        return "positive" if kind == "perfect" else "neutral" if kind == "unordered" else "negative"
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
        return f"{verb} {_limit_to_answered(predicate, [row])}"
    concordance = row.concordance_simultaneous
    if concordance.ci_low is None or concordance.ci_high is None:
        return "cannot be judged without a 95% CI of its concordance"
    words = [
        next(word for smallest, word in reversed(CONCORDANCE_WORDS) if end >= smallest)
        for end in (concordance.ci_low, concordance.ci_high)
    ]
    if words == ["hardly", "hardly"]:
        return "hardly agrees with people"
    if words[0] == "hardly":
        return f"agrees with people somewhere between hardly and {words[1]}"
    return f"agrees {words[0] if words[0] == words[1] else ' to '.join(words)} with people"


def _limit_to_answered(predicate: str, rows: Sequence[AlignmentRow]) -> str:
    """The predicate, about the answered cells where a model has no score in some."""
    is_complete = all(row.n_dropped <= row.n_without_survey for row in rows)
    subject = "it" if len(rows) == 1 else "they"
    return predicate if is_complete else predicate.replace("every cell", f"every cell that {subject} answered")


EQUAL_PEOPLE_REASONS = (CONSTANT_SERIES_REASONS["y constant"], CONSTANT_SERIES_REASONS["x and y constant"])


def _find_kind(row: AlignmentRow) -> str | None:
    """Which of `_SPECIAL_PHRASES` describes a model; else None."""
    r, concordance = row.pearson_r.value, row.concordance_simultaneous
    if row.mae.value is not None and row.mae.value < ROUNDING_ERROR:
        return "perfect"
    if row.pearson_r.reason in EQUAL_PEOPLE_REASONS:
        return "unordered"
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
    # Models without a usable answer have no part in what is said of those with scores.
    is_partial = any(row.mae.value is None and not has_rescaled_scores(row.method) for row in rows)
    scored, rows = " with usable scores" * is_partial, comparable
    if len(rows) > 1 and (special := [row for row in rows if _find_kind(row) is not None]):
        names = _name_special(special)
        others = [row for row in rows if row not in special]
        ordinary = f" {_summarize_ordinary(others, scored, 'other ')}" if others else ""
        return f"{names}{ordinary}{_describe_fragile(rows)}"
    if len(rows) == 1:
        return f"The model{scored} {describe_closeness(rows[0])}{_format_mae_range(rows)}.{_describe_fragile(rows)}"
    return f"{_summarize_ordinary(rows, scored)}{_describe_fragile(rows)}"


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
            predicate = _limit_to_answered(predicate, members)
            sentences.append(f"{names} {verb} {predicate}{_format_mae_range(members)}.")
    return " ".join(sentences)


def _summarize_ordinary(rows: Sequence[AlignmentRow], scored: str, kind: str = "") -> str:
    """Say how many series agree with people at least partly, hardly, or neither is shown.

    Args:
        scored: after the noun, empty if all series have scores.
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
    plural = f"{noun}s{scored}" if noun == "model" else f"{noun}{scored}"
    if len(predicates) == 1:
        subject = {1: f"The {kind}{noun}{scored}", 2: f"{'The two' if kind else 'Both'} {kind}{plural}"}
        return f"{subject.get(len(rows), f'All {len(rows)} {kind}{plural}')} {predicates[0][1]}."
    *parts, last_part = (f"{n} {predicate}" for n, predicate in predicates)
    return f"Of {len(rows)} {kind}{plural}, {', '.join(parts)} and {last_part}."


def _describe_fragile(rows: Sequence[AlignmentRow]) -> str:
    """A sentence on the models that lost many samples, with a space before it and bounds of MAE; empty without any."""
    labels = SeriesLabels(shows_method=len({row.method for row in rows}) > 1)
    ranges = [
        f"{format_number(ends[0])} to {format_number(ends[1])} for {labels.label(row)}"
        for row in rows
        if row.worst_case is not None and (ends := get_range(row.worst_case.mae)) is not None
    ]
    if not ranges:
        return ""
    return f" Whatever scores the lost samples would have had, the mean absolute error is {join_with_and(ranges)}."


def _has_too_few_clusters(row: AlignmentRow) -> bool:
    """Whether a series has figures but no interval, since its scores are on too few countries or topics."""
    is_too_small = 0 < min(row.countries, row.topics) < MIN_UNITS
    has_figures = row.pearson_r.value is not None or (row.mae.value is not None and _find_kind(row) is None)
    return has_figures and classify_alignment(row) == "neutral" and is_too_small


def _format_mae_range(rows: Sequence[AlignmentRow]) -> str:
    """The range of the mean absolute error over rows, in brackets; empty without any."""
    maes = [row.mae.value for row in rows if row.mae.value is not None]
    if not maes:
        return ""
    low, high = format_number(min(maes)), format_number(max(maes))
    return f" (mean absolute error {low})" if low == high else f" (mean absolute error {low} to {high})"


# --- section ----------------------------------------------------------------------------------------------------
