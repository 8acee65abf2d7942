"""Sentences on conflicts: how many there are, their status, and who settled each."""

from __future__ import annotations

from auditor.domain import ConflictKind
from auditor.metrics.conflict import MIN_THRESHOLD
from auditor.reports.data.report_schema import (
    ConflictSideReport,
    ConflictsReport,
    ListedConflictReport,
    MethodConflictRow,
    Report,
)
from auditor.reports.number_format import format_count, format_interval, format_number, format_signed, pluralize

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
"""Kinds of conflict that are not between two models, so that judges have no vote on them."""


VOTING_RULE_LABELS = {
    "majority": "by a majority of the assigned seats",
    "weighted": "by more than half of the assigned weight",
    "dawid_skene": "by Dawid and Skene’s model of the judges",
}


def format_cell(row: ListedConflictReport) -> str:
    """Name the cell of a conflict: country and topic, or the item."""
    return f"{row.country} · {row.topic}" if row.country else row.topic


def format_side(side: ConflictSideReport) -> str:
    """Format the position of one side: its answer, or its score."""
    return f"“{side.answer}”" if side.answer is not None else format_signed(side.score)


def describe_conflicts(report: Report) -> str:
    """Describe the definition of a conflict, the number of conflicts, and how many are in each status."""
    conflicts = report.conflicts
    third_quartile = conflicts.third_quartile
    quartile_phrase = f"the third quartile of this audit’s own differences is {format_number(third_quartile.value)}"
    if third_quartile.value is None or third_quartile.value < MIN_THRESHOLD:
        quartile_phrase = ""
    elif third_quartile.ci_low is not None:
        quartile_phrase += f" (95% interval {format_interval(third_quartile.ci_low, third_quartile.ci_high)})"
    minimum_phrase = ", here 2, since at least three in four of this audit’s differences are none"
    threshold_phrase = {
        None: "",
        "auto": f", here {quartile_phrase}" if quartile_phrase else minimum_phrase if third_quartile.n else "",
    }.get(
        conflicts.threshold if conflicts.threshold in (None, "auto") else "",
        f", here {conflicts.threshold}" + (f"; {quartile_phrase}" if quartile_phrase else ""),
    )
    definition = (
        f"Two models are in conflict on a cell when their scores differ by at least a threshold{threshold_phrase}."
    )
    if report.task is not None:
        definition = "Two models are in conflict on an item when their commonest answers to it differ."
        if report.task.range is not None:
            definition = (
                "Two models are in conflict on an item when their scores, put on a scale from −1 to 1, differ by at "
                f"least a threshold{threshold_phrase}."
            )
    voted_kinds = [row for row in conflicts.kinds if row.kind not in UNVOTED_KIND_LABELS]
    unvoted_sentence = _describe_unvoted_kinds(conflicts)
    total = sum(row.total for row in voted_kinds)
    if not total:
        return f"{definition} There is none.{unvoted_sentence}"
    counts_by_state = {state: sum(row.states.get(state, 0) for row in voted_kinds) for state in conflicts.states}
    state_counts = [f"{format_count(n)} {STATE_LABELS[state]}" for state, n in counts_by_state.items() if n]
    noise_sentence = ""
    if conflicts.within_noise.value is not None:
        noise_sentence = (
            f" {format_count(round(conflicts.within_noise.value * conflicts.within_noise.n))} of "
            f"{format_count(conflicts.within_noise.n)} differ by no more than the noise of their own samples."
        )
    settled_sentence = ""
    if conflicts.settled.value is not None:
        settled_sentence = f" The judges settle {format_number(100 * conflicts.settled.value, 0)}%"
        if conflicts.settled.ci_low is not None and conflicts.settled.ci_high is not None:
            interval = format_interval(100 * conflicts.settled.ci_low, 100 * conflicts.settled.ci_high, 0)
            settled_sentence += f" (95% interval {interval}%)"
        settled_sentence += f", {VOTING_RULE_LABELS[conflicts.voting.rule if conflicts.voting else 'majority']}."
    return (
        f"{definition} There are {format_count(total)}: {', '.join(state_counts)}."
        f"{settled_sentence}{noise_sentence}{unvoted_sentence}"
    )


def _describe_unvoted_kinds(conflicts: ConflictsReport) -> str:
    """Count the conflicts on which no judge votes; empty where there is none."""
    kind_counts = [
        f"{format_count(row.total)} {UNVOTED_KIND_LABELS[row.kind]}"
        for row in conflicts.kinds
        if row.total and row.kind in UNVOTED_KIND_LABELS
    ]
    return f" Beside these are {' and '.join(kind_counts)}; judges have no vote on them." if kind_counts else ""


def describe_method_conflicts(report: Report) -> list[str]:
    """Describe how often each model's two methods contradict each other, one sentence per pair of methods."""
    return [_describe_method_conflict(row) for row in report.conflicts.between_methods]


def _describe_method_conflict(row: MethodConflictRow) -> str:
    """Describe in a sentence how often one model's two methods contradict each other, with the largest examples."""
    if row.conflicts.value is None:
        return f"{row.model} has no cell with scores by both {row.first} and {row.second}."
    interval = format_interval(100 * (row.conflicts.ci_low or 0), 100 * (row.conflicts.ci_high or 0), 0)
    contradiction = (
        f"By {row.first} and by {row.second}, {row.model} contradicts itself on "
        f"{format_number(100 * row.conflicts.value, 0)}% of {pluralize(row.conflicts.n, 'cell')} "
        f"(95% interval {interval}%)"
    )
    if not row.largest:
        return f"{contradiction}."
    examples = "; ".join(
        f"{country}, {topic}: {format_signed(first_score)} and {format_signed(second_score)}"
        for country, topic, first_score, second_score in row.largest
    )
    return f"{contradiction}, on {format_count(row.opposite)} with opposite signs. Furthest apart: {examples}."


def describe_voting(report: Report) -> str:
    """Describe what weighting the judges' votes changed; empty where each judge had one vote."""
    voting = report.conflicts.voting
    n_conflicts = report.conflicts.settled.n
    if voting is None or voting.by_weight is None or not n_conflicts:
        return ""
    weights = ", ".join(f"{judge} {format_number(weight)}" for judge, weight in voting.weights.items())
    outcome = (
        f"The judges’ votes were weighed ({weights}): more than half of the assigned weight settled "
        f"{format_count(voting.by_weight)} of {format_count(n_conflicts)} conflicts."
    )
    if voting.rule == "dawid_skene":
        outcome = (
            "Conflicts were settled by Dawid and Skene’s model of the judges, which takes their errors for "
            f"independent: {format_count(voting.by_weight)} of {format_count(n_conflicts)}."
        )
    if voting.by_majority is None:
        return f"{outcome} What one vote each would have settled is not known: no more judges were asked than needed."
    reversals = f", {format_count(voting.other_side)} for opposite sides" if voting.other_side else ""
    same_sides = f"both agree on {format_count(voting.same_side or 0)}{reversals}"
    return f"{outcome} One vote each would have settled {format_count(voting.by_majority)}; {same_sides}."


def describe_conflict(row: ListedConflictReport) -> str:
    """Describe one conflict: people's score or the right answer, the judges' votes, and the outcome."""
    reference = "People there were not asked" if row.survey is None else f"People there say {format_signed(row.survey)}"
    if not row.country:
        reference = "The right answer is not known" if row.truth is None else f"The right answer is “{row.truth}”"
    votes = (
        f"{pluralize(row.seats, 'judge')} voted {row.left.votes} to {row.right.votes}"
        if row.seats
        else "no judge voted"
    )
    distance = "" if row.difference is None else f"the models are {format_number(abs(row.difference))} apart; "
    facts = f"{reference}; {distance}{votes}"
    if row.decision is not None:
        return f"{facts}; {', '.join(row.raters)} decided: {_describe_decision(row)}."
    facts += "; that is within the noise of their own samples" if row.within_noise else ""
    winner_phrase = f", for {row.winner}" if row.winner else ""
    return f"{facts}; {STATE_LABELS[row.state]}{winner_phrase}."


def _describe_decision(row: ListedConflictReport) -> str:
    """Return people's decision on a conflict as a clause; empty where people have not decided."""
    decision_labels = {
        "left": f"{row.left.model} is right",
        "right": f"{row.right.model} is right",
        "both": "both are right",
        "neither": "neither is right",
        "score": "another score is right",
    }
    return decision_labels.get(row.decision or "", row.decision or "")
