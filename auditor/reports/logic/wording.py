"""Sentences and table cells of the section on logic, shared by all report formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.data.logic.schema import (
    ContradictionRow,
    JudgeConsistencyRow,
    LogicEstimate,
    LogicReport,
    LogicRow,
    RankingRepairRow,
    TransitivityRow,
)
from auditor.reports.number_format import (
    format_count,
    format_interval,
    format_number,
    format_percent,
    format_signed,
    pluralize,
)

CRITERION_QUESTIONS = {
    "acceptability": "which is more acceptable to most people of the country",
    "preference": "which is better",
    "relevance": "which is more relevant",
    "temporal": "which is earlier",
    "causal": "which is the cause",
}
CHANCE_TRANSITIVITY_K3 = "0.75"
"""2 of the 8 tournaments of three items are cycles, so random preferences are transitive in 6 of 8."""
FIGURE_HEADERS = (
    "Commutativity",
    "Negation",
    "Negation, calibrated",
    "Self-agreement",
    "Agreement with people",
    "the same, calibrated",
)
FIGURE_FIELDS = (
    "commutativity",
    "negation",
    "negation_calibrated",
    "self_agreement",
    "human_agreement",
    "human_agreement_calibrated",
)


def describe_comparisons(logic: LogicReport) -> str:
    """Describe the item sets, the criteria and the three properties that are measured."""
    criteria = ", ".join(CRITERION_QUESTIONS.get(name, name) for name in logic.criterion)
    context_list = (
        f": {', '.join(logic.contexts)}"
        if len(logic.contexts) <= 4 and all(len(context) < 40 for context in logic.contexts)
        else ""
    )
    return (
        f"Every judge was shown pairs out of {pluralize(logic.sets, 'set')} of items ({pluralize(logic.items, 'item')} "
        f"in all{context_list}) and asked {criteria}. "
        "A judge of one mind prefers without going in circles (transitivity), "
        "whichever item it is shown first (commutativity), and names the other item when asked which is less so "
        "(negation)."
    )


def describe_judge(row: LogicRow) -> str:
    """Describe one judge's figures in a sentence that continues after the judge's name."""
    statements = list(_list_judge_statements(row))
    return "; ".join(statements) if statements else "gave no answer that can be used"


def _list_judge_statements(row: LogicRow) -> Iterator[str]:
    """Yield clauses on position bias, commutativity, negation and transitivity, where they are known."""
    first_share, commutativity, negation = row.first, row.commutativity, row.negation
    if first_share.ci_low is not None and first_share.ci_low > 0.5:
        yield f"leans to the item shown first ({_format_percent(first_share)} of its decisions)"
    elif first_share.ci_high is not None and first_share.ci_high < 0.5:
        yield f"leans away from the item shown first ({_format_percent(first_share)} of its decisions)"
    if commutativity.value is not None:
        yield f"keeps its decision in {_format_percent(commutativity)} of pairs when their order is swapped"
    if negation.value is not None:
        yield f"turns its answer in {_format_percent(negation)} of questions when they are negated"
    uncalibrated = next(
        (
            transitivity
            for transitivity in row.transitivity
            if not transitivity.calibrated and transitivity.share.value is not None
        ),
        None,
    )
    if uncalibrated is not None:
        yield f"is free of circles in {_format_percent(uncalibrated.share)} of the subsets of {uncalibrated.k} items"


def _format_percent(estimate: Estimate) -> str:
    """Format a share as a percentage with its interval."""
    if estimate.value is None:
        return "an unknown share"
    if estimate.ci_low is None or estimate.ci_high is None:
        return f"{format_number(100 * estimate.value, 0)}%"
    low, high = format_number(100 * estimate.ci_low, 0), format_number(100 * estimate.ci_high, 0)
    return f"{format_number(100 * estimate.value, 0)}% ({low} to {high}%)"


def describe_subsets(row: TransitivityRow) -> str:
    """Describe the number of subsets behind a share of transitivity, and the margin from sampling them."""
    count_phrase = f"M = {format_count(row.share.n)}"
    all_phrase = "all whose pairs are answered" if row.share.lost else "all of them"
    return (
        f"{count_phrase}, {all_phrase}" if row.margin == 0 else f"{count_phrase} drawn, ± {format_number(row.margin)}"
    )


def transitivity_header(row: TransitivityRow) -> str:
    """Column header of one transitivity figure."""
    return f"K = {row.k}, {'calibrated' if row.calibrated else 'one order'}"


def judge_figures(row: LogicRow) -> list[LogicEstimate]:
    """Shares of one judge, in the order of `FIGURE_HEADERS`."""
    return [getattr(row, name) for name in FIGURE_FIELDS]


def format_usable_answers(row: LogicRow) -> str:
    """Format usable answers of all questions, with the losses by outcome."""
    losses = ", ".join(f"{format_count(n)} {name.replace('_', ' ')}" for name, n in row.losses.items())
    return (
        f"{format_count(row.ok)} of {format_count(row.questions)} ({format_percent(row.ok, row.questions)})"
        f"{'; ' + losses if losses else ''}"
    )


def judge_label(row: LogicRow) -> str:
    """Name of the judge, with the wording's number where the row is about one wording."""
    return row.judge if row.wording is None else f"{row.judge}, wording {row.wording + 1}"


def describe_contradiction(row: ContradictionRow) -> str:
    """Describe how many of one judge's preferences on one set must be reversed to remove all cycles."""
    if not row.decided:
        return (
            f"decides no pair of {pluralize(row.items, 'item')} once both orders are averaged, "
            "and so contradicts nothing"
        )
    preferences = f"{pluralize(row.decided, 'preference')} among {pluralize(row.items, 'item')}"
    if not row.reversals:
        return f"is free of contradictions: {preferences}, none of them in a circle"
    reversals = f"{row.reversals} at the fewest" if row.exact else f"between {row.least} and {row.reversals}"
    return f"contradicts itself: of {preferences}, {reversals} must be reversed before none goes in a circle"


def describe_repair(row: RankingRepairRow) -> str:
    """Describe how many answers the ranking flips, and how agreement with people changes."""
    flips = f"ranking by win-loss rate flips {format_count(row.flipped)} of {pluralize(row.questions, 'answer')}"
    before, after = row.human_agreement, row.repaired_agreement
    if before.value is None or after.value is None:
        return flips
    tied_phrase = (
        f"; {pluralize(row.left_out, 'question')} left tied by one of them not counted" if row.left_out else ""
    )
    return (
        f"{flips}; on {pluralize(after.n, 'question')} that people, answers and ranking decide, agreement with people "
        f"goes from {format_number(before.value)} ({format_interval(before.ci_low, before.ci_high)}) to "
        f"{format_number(after.value)} ({format_interval(after.ci_low, after.ci_high)}), "
        f"{format_signed(row.gain.value)} ({format_interval(row.gain.ci_low, row.gain.ci_high)}){tied_phrase}"
    )


def describe_vote_weights(logic: LogicReport) -> str:
    """Describe whether votes are weighted by consistency, and which judges are benched."""
    if all(row.weight is None for row in logic.ledger):
        return (
            "Each judge has one vote, or the weight that the configuration gives it: these figures have no part in it. "
            'panel.weights_from = "logic" weighs votes by them.'
        )
    benched = [f"{row.judge} ({row.reason})" for row in logic.ledger if row.benched]
    explanation = "Votes on conflicts are weighed by these figures; what that changed is said with the conflicts."
    return f"{explanation} Benched: {', '.join(benched)}." if benched else f"{explanation} No judge is benched."


CONSISTENCY_HEADERS = ("Judge", "Transitivity", "Commutativity", "Negation", "Self-agreement", "Mean", "Weight")


def format_consistency_row(row: JudgeConsistencyRow) -> list[str]:
    """Format the row of one judge, in the order of `CONSISTENCY_HEADERS`."""
    figures = (row.transitivity, row.commutativity, row.negation, row.self_agreement, row.value)
    weight = "–" if row.weight is None else "0, benched" if row.benched else format_number(row.weight)
    return [row.judge, *(format_number(figure) for figure in figures), weight]


def describe_interval_units(logic: LogicReport) -> str:
    """Describe the units that the intervals are over; empty without a figure."""
    rows = [*logic.judges, *logic.wordings]
    estimates = [
        estimate
        for row in rows
        for estimate in (*(transitivity.share for transitivity in row.transitivity), *judge_figures(row))
        if estimate.value is not None
    ]
    units: Sequence[str] = list(dict.fromkeys(estimate.over for estimate in estimates))
    return f"95% intervals are over {'; '.join(units)}." if units else ""
