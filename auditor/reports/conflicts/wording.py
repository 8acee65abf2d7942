"""Conflicts in words: how many, what became of them, and who settled each."""

from __future__ import annotations

from auditor.domain import ConflictKind
from auditor.metrics.conflict import MIN_THRESHOLD
from auditor.reports.pages.number_format import format_count, format_interval, format_number, format_signed, pluralize
from auditor.reports.report_schema import (
    ConflictSideReport,
    ConflictsReport,
    ListedConflictReport,
    MethodConflictRow,
    Report,
)

STATE_LABELS = {
    "open": "open",
    "disputed": "people disagree",
    "majority": "settled by the judges",
    "person": "settled by people",
}


UNVOTED_KIND_LABELS = {
    ConflictKind.METHODS.value: "between one model’s two methods",
    ConflictKind.LOGIC.value: "of judges’ verdicts on pairs of items",
}
"""Kinds that are no difference between two models."""


VOTING_RULE_LABELS = {
    "majority": "by a majority of the assigned seats",
    "weighted": "by more than half of the assigned weight",
    "dawid_skene": "by Dawid and Skene’s model of the judges",
}


def format_cell(row: ListedConflictReport) -> str:
    """Where a conflict is: country and topic, or the item."""
    return f"{row.country} · {row.topic}" if row.country else row.topic


def format_side(side: ConflictSideReport) -> str:
    """What a side of a conflict says: its answer, or its score."""
    return f"“{side.answer}”" if side.answer is not None else format_signed(side.score)


def describe_conflicts(report: Report) -> str:
    """How many conflicts there are and what became of them."""
    part = report.conflicts
    third = part.third_quartile
    quartile = f"the third quartile of this audit’s own differences is {format_number(third.value)}"
    if third.value is None or third.value < MIN_THRESHOLD:
        quartile = ""
    elif third.ci_low is not None:
        quartile += f" (95% interval {format_interval(third.ci_low, third.ci_high)})"
    none = ", here 2, since at least three in four of this audit’s differences are none"
    rule = {None: "", "auto": f", here {quartile}" if quartile else none if third.n else ""}.get(
        part.threshold if part.threshold in (None, "auto") else "",
        f", here {part.threshold}" + (f"; {quartile}" if quartile else ""),
    )
    what = f"Two models are in conflict on a cell when their scores differ by at least a threshold{rule}."
    if report.task is not None:
        what = "Two models are in conflict on an item when their commonest answers to it differ."
        if report.task.range is not None:
            what = (
                "Two models are in conflict on an item when their scores, put on a scale from −1 to 1, differ by at "
                f"least a threshold{rule}."
            )
    scored = [k for k in part.kinds if k.kind not in UNVOTED_KIND_LABELS]
    beside = _describe_unvoted_kinds(part)
    total = sum(k.total for k in scored)
    if not total:
        return f"{what} There is none.{beside}"
    standing = {state: sum(k.states.get(state, 0) for k in scored) for state in part.states}
    told = [f"{format_count(n)} {STATE_LABELS[state]}" for state, n in standing.items() if n]
    noise = ""
    if part.within_noise.value is not None:
        noise = (
            f" {format_count(round(part.within_noise.value * part.within_noise.n))} of "
            f"{format_count(part.within_noise.n)} differ by no more than the noise of their own samples."
        )
    share_settled = ""
    if part.settled.value is not None:
        share_settled = f" The judges settle {format_number(100 * part.settled.value, 0)}%"
        if part.settled.ci_low is not None and part.settled.ci_high is not None:
            ends = format_interval(100 * part.settled.ci_low, 100 * part.settled.ci_high, 0)
            share_settled += f" (95% interval {ends}%)"
        share_settled += f", {VOTING_RULE_LABELS[part.voting.rule if part.voting else 'majority']}."
    return f"{what} There are {format_count(total)}: {', '.join(told)}.{share_settled}{noise}{beside}"


def _describe_unvoted_kinds(conflicts: ConflictsReport) -> str:
    """Conflicts on which no judge has a vote."""
    told = [
        f"{format_count(k.total)} {UNVOTED_KIND_LABELS[k.kind]}"
        for k in conflicts.kinds
        if k.total and k.kind in UNVOTED_KIND_LABELS
    ]
    return f" Beside these are {' and '.join(told)}; judges have no vote on them." if told else ""


def describe_method_conflicts(report: Report) -> list[str]:
    """How often each model's two methods contradict each other."""
    return [_describe_method_conflict(row) for row in report.conflicts.between_methods]


def _describe_method_conflict(row: MethodConflictRow) -> str:
    if row.conflicts.value is None:
        return f"{row.model} has no cell with scores by both {row.first} and {row.second}."
    ends = format_interval(100 * (row.conflicts.ci_low or 0), 100 * (row.conflicts.ci_high or 0), 0)
    told = (
        f"By {row.first} and by {row.second}, {row.model} contradicts itself on "
        f"{format_number(100 * row.conflicts.value, 0)}% of {pluralize(row.conflicts.n, 'cell')} (95% interval {ends}%)"
    )
    if not row.largest:
        return f"{told}."
    most = "; ".join(f"{c}, {t}: {format_signed(a)} and {format_signed(b)}" for c, t, a, b in row.largest)
    return f"{told}, on {format_count(row.opposite)} with opposite signs. Furthest apart: {most}."


def describe_voting(report: Report) -> str:
    """What weighing the judges' votes changed; nothing where each had one vote."""
    part = report.conflicts.voting
    scored = report.conflicts.settled.n
    if part is None or part.by_weight is None or not scored:
        return ""
    weights = ", ".join(f"{judge} {format_number(weight)}" for judge, weight in part.weights.items())
    told = (
        f"The judges’ votes were weighed ({weights}): more than half of the assigned weight settled "
        f"{format_count(part.by_weight)} of {format_count(scored)} conflicts."
    )
    if part.rule == "dawid_skene":
        told = (
            "Conflicts were settled by Dawid and Skene’s model of the judges, which takes their errors for "
            f"independent: {format_count(part.by_weight)} of {format_count(scored)}."
        )
    if part.by_majority is None:
        return f"{told} What one vote each would have settled is not known: no more judges were asked than needed."
    turned = f", {format_count(part.other_side)} for opposite sides" if part.other_side else ""
    both = f"both agree on {format_count(part.same_side or 0)}{turned}"
    return f"{told} One vote each would have settled {format_count(part.by_majority)}; {both}."


def describe_conflict(row: ListedConflictReport) -> str:
    """What people of the country say, how the judges voted, and who settled it."""
    people = "People there were not asked" if row.survey is None else f"People there say {format_signed(row.survey)}"
    if not row.country:
        people = "The right answer is not known" if row.truth is None else f"The right answer is “{row.truth}”"
    votes = (
        f"{pluralize(row.seats, 'judge')} voted {row.left.votes} to {row.right.votes}"
        if row.seats
        else "no judge voted"
    )
    apart = "" if row.difference is None else f"the models are {format_number(abs(row.difference))} apart; "
    told = f"{people}; {apart}{votes}"
    if row.decision is not None:
        return f"{told}; {', '.join(row.raters)} decided: {_describe_decision(row)}."
    told += "; that is within the noise of their own samples" if row.within_noise else ""
    upheld = f", for {row.winner}" if row.winner else ""
    return f"{told}; {STATE_LABELS[row.state]}{upheld}."


def _describe_decision(row: ListedConflictReport) -> str:
    words = {
        "left": f"{row.left.model} is right",
        "right": f"{row.right.model} is right",
        "both": "both are right",
        "neither": "neither is right",
        "score": "another score is right",
    }
    return words.get(row.decision or "", row.decision or "")
