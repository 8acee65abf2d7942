"""The section on logic in words and tables that every form of the report shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.reports.logic.schema import (
    ContradictionRow,
    JudgeConsistencyRow,
    LogicEstimate,
    LogicReport,
    LogicRow,
    RankingRepairRow,
    TransitivityRow,
)
from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import (
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
"""Of 8 tournaments of three items 2 are circles."""
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
    """What was compared, and by what."""
    what = ", ".join(CRITERION_QUESTIONS.get(name, name) for name in logic.criterion)
    where = (
        f": {', '.join(logic.contexts)}"
        if len(logic.contexts) <= 4 and all(len(c) < 40 for c in logic.contexts)
        else ""
    )
    return (
        f"Every judge was shown pairs out of {pluralize(logic.sets, 'set')} of items ({pluralize(logic.items, 'item')} "
        f"in all{where}) and asked {what}. A judge of one mind prefers without going in circles (transitivity), "
        "whichever item it is shown first (commutativity), and names the other item when asked which is less so "
        "(negation)."
    )


def describe_judge(row: LogicRow) -> str:
    """What the figures of one judge come to, in one sentence; it goes on from the judge's name."""
    told = list(_list_judge_statements(row))
    return "; ".join(told) if told else "gave no answer that can be used"


def _list_judge_statements(row: LogicRow) -> Iterator[str]:
    first, swap, negation = row.first, row.commutativity, row.negation
    if first.ci_low is not None and first.ci_low > 0.5:
        yield f"leans to the item shown first ({_format_percent(first)} of its decisions)"
    elif first.ci_high is not None and first.ci_high < 0.5:
        yield f"leans away from the item shown first ({_format_percent(first)} of its decisions)"
    if swap.value is not None:
        yield f"keeps its decision in {_format_percent(swap)} of pairs when their order is swapped"
    if negation.value is not None:
        yield f"turns its answer in {_format_percent(negation)} of questions when they are negated"
    raw = next((t for t in row.transitivity if not t.calibrated and t.share.value is not None), None)
    if raw is not None:
        yield f"is free of circles in {_format_percent(raw.share)} of the subsets of {raw.k} items"


def _format_percent(estimate: Estimate) -> str:
    if estimate.value is None:
        return "an unknown share"
    if estimate.ci_low is None or estimate.ci_high is None:
        return f"{format_number(100 * estimate.value, 0)}%"
    low, high = format_number(100 * estimate.ci_low, 0), format_number(100 * estimate.ci_high, 0)
    return f"{format_number(100 * estimate.value, 0)}% ({low} to {high}%)"


def describe_subsets(row: TransitivityRow) -> str:
    """How many subsets a share of transitivity rests on, and how exactly they stand for all."""
    m = f"M = {format_count(row.share.n)}"
    every = "all whose pairs are answered" if row.share.lost else "all of them"
    return f"{m}, {every}" if row.margin == 0 else f"{m} drawn, ± {format_number(row.margin)}"


def transitivity_header(row: TransitivityRow) -> str:
    """The heading of one kind of transitivity."""
    return f"K = {row.k}, {'calibrated' if row.calibrated else 'one order'}"


def judge_figures(row: LogicRow) -> list[LogicEstimate]:
    """The shares of one judge, in the order of `HEAD`."""
    return [getattr(row, name) for name in FIGURE_FIELDS]


def format_usable_answers(row: LogicRow) -> str:
    """How much of what was asked can be used, and what became of the rest."""
    lost = ", ".join(f"{format_count(n)} {name.replace('_', ' ')}" for name, n in row.losses.items())
    return (
        f"{format_count(row.ok)} of {format_count(row.questions)} ({format_percent(row.ok, row.questions)})"
        f"{'; ' + lost if lost else ''}"
    )


def judge_label(row: LogicRow) -> str:
    """The judge, and the wording where the row is about one."""
    return row.judge if row.wording is None else f"{row.judge}, wording {row.wording + 1}"


def describe_contradiction(row: ContradictionRow) -> str:
    """How far one judge contradicts itself on one set."""
    if not row.decided:
        return (
            f"decides no pair of {pluralize(row.items, 'item')} once both orders are averaged, "
            "and so contradicts nothing"
        )
    among = f"{pluralize(row.decided, 'preference')} among {pluralize(row.items, 'item')}"
    if not row.reversals:
        return f"is free of contradictions: {among}, none of them in a circle"
    fewest = f"{row.reversals} at the fewest" if row.exact else f"between {row.least} and {row.reversals}"
    return f"contradicts itself: of {among}, {fewest} must be reversed before none goes in a circle"


def describe_repair(row: RankingRepairRow) -> str:
    """What ranking the items changes."""
    told = f"ranking by win-loss rate flips {format_count(row.flipped)} of {pluralize(row.questions, 'answer')}"
    before, after = row.human_agreement, row.repaired_agreement
    if before.value is None or after.value is None:
        return told
    tied = f"; {pluralize(row.left_out, 'question')} left tied by one of them not counted" if row.left_out else ""
    return (
        f"{told}; on {pluralize(after.n, 'question')} that people, answers and ranking decide, agreement with people "
        f"goes from {format_number(before.value)} ({format_interval(before.ci_low, before.ci_high)}) to "
        f"{format_number(after.value)} ({format_interval(after.ci_low, after.ci_high)}), "
        f"{format_signed(row.gain.value)} ({format_interval(row.gain.ci_low, row.gain.ci_high)}){tied}"
    )


def describe_vote_weights(logic: LogicReport) -> str:
    """What the panel makes of its judges' consistency."""
    if all(row.weight is None for row in logic.ledger):
        return (
            "Each judge has one vote, or the weight that the configuration gives it: these figures have no part in it. "
            'panel.weights_from = "logic" weighs votes by them.'
        )
    benched = [f"{row.judge} ({row.reason})" for row in logic.ledger if row.benched]
    told = "Votes on conflicts are weighed by these figures; what that changed is said with the conflicts."
    return f"{told} Benched: {', '.join(benched)}." if benched else f"{told} No judge is benched."


CONSISTENCY_HEADERS = ("Judge", "Transitivity", "Commutativity", "Negation", "Self-agreement", "Mean", "Weight")


def format_consistency_row(row: JudgeConsistencyRow) -> list[str]:
    """One judge, in the order of `LEDGER_HEAD`."""
    figures = (row.transitivity, row.commutativity, row.negation, row.self_agreement, row.value)
    weight = "–" if row.weight is None else "0, benched" if row.benched else format_number(row.weight)
    return [row.judge, *(format_number(figure) for figure in figures), weight]


def describe_interval_units(logic: LogicReport) -> str:
    """What the intervals are over."""
    rows = [*logic.judges, *logic.wordings]
    found = [
        f for row in rows for f in (*(t.share for t in row.transitivity), *judge_figures(row)) if f.value is not None
    ]
    kinds: Sequence[str] = list(dict.fromkeys(f.over for f in found))
    return f"95% intervals are over {'; '.join(kinds)}." if kinds else ""
