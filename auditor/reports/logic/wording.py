"""The section on logic in words and tables that every form of the report shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.reports.logic.schema import (
    ContradictionRow,
    JudgeLedgerRow,
    LogicFigure,
    LogicPart,
    LogicRow,
    RepairRow,
    TransitivityRow,
)
from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import count, interval, number, plural, share, signed

CRITERIA = {
    "acceptability": "which is more acceptable to most people of the country",
    "preference": "which is better",
    "relevance": "which is more relevant",
    "temporal": "which is earlier",
    "causal": "which is the cause",
}
CHANCE_3 = "0.75"
"""Of 8 tournaments of three items 2 are circles."""
HEAD = (
    "Commutativity",
    "Negation",
    "Negation, calibrated",
    "Self-agreement",
    "Agreement with people",
    "the same, calibrated",
)
COLUMNS = (
    "commutativity",
    "negation",
    "negation_calibrated",
    "self_agreement",
    "human_agreement",
    "human_agreement_calibrated",
)


def intro(part: LogicPart) -> str:
    """What was compared, and by what."""
    what = ", ".join(CRITERIA.get(name, name) for name in part.criterion)
    where = (
        f": {', '.join(part.contexts)}" if len(part.contexts) <= 4 and all(len(c) < 40 for c in part.contexts) else ""
    )
    return (
        f"Every judge was shown pairs out of {plural(part.sets, 'set')} of items ({plural(part.items, 'item')} in "
        f"all{where}) and asked {what}. A judge of one mind prefers without going in circles (transitivity), whichever "
        "item it is shown first (commutativity), and names the other item when asked which is less so (negation)."
    )


def judged(row: LogicRow) -> str:
    """What the figures of one judge come to, in one sentence; it goes on from the judge's name."""
    told = list(_told(row))
    return "; ".join(told) if told else "gave no answer that can be used"


def _told(row: LogicRow) -> Iterator[str]:
    first, swap, negation = row.first, row.commutativity, row.negation
    if first.ci_low is not None and first.ci_low > 0.5:
        yield f"leans to the item shown first ({_percent(first)} of its decisions)"
    elif first.ci_high is not None and first.ci_high < 0.5:
        yield f"leans away from the item shown first ({_percent(first)} of its decisions)"
    if swap.value is not None:
        yield f"keeps its decision in {_percent(swap)} of pairs when their order is swapped"
    if negation.value is not None:
        yield f"turns its answer in {_percent(negation)} of questions when they are negated"
    raw = next((t for t in row.transitivity if not t.calibrated and t.share.value is not None), None)
    if raw is not None:
        yield f"is free of circles in {_percent(raw.share)} of the subsets of {raw.k} items"


def _percent(e: Estimate) -> str:
    if e.value is None:
        return "an unknown share"
    if e.ci_low is None or e.ci_high is None:
        return f"{number(100 * e.value, 0)}%"
    return f"{number(100 * e.value, 0)}% ({number(100 * e.ci_low, 0)} to {number(100 * e.ci_high, 0)}%)"


def looked_at(row: TransitivityRow) -> str:
    """How many subsets a share of transitivity rests on, and how exactly they stand for all."""
    m = f"M = {count(row.share.n)}"
    every = "all whose pairs are answered" if row.share.lost else "all of them"
    return f"{m}, {every}" if row.margin == 0 else f"{m} drawn, ± {number(row.margin)}"


def transitivity_name(row: TransitivityRow) -> str:
    """The heading of one kind of transitivity."""
    return f"K = {row.k}, {'calibrated' if row.calibrated else 'one order'}"


def figures(row: LogicRow) -> list[LogicFigure]:
    """The shares of one judge, in the order of `HEAD`."""
    return [getattr(row, name) for name in COLUMNS]


def usable(row: LogicRow) -> str:
    """How much of what was asked can be used, and what became of the rest."""
    lost = ", ".join(f"{count(n)} {name.replace('_', ' ')}" for name, n in row.losses.items())
    return f"{count(row.ok)} of {count(row.questions)} ({share(row.ok, row.questions)}){'; ' + lost if lost else ''}"


def name_of(row: LogicRow) -> str:
    """The judge, and the wording where the row is about one."""
    return row.judge if row.wording is None else f"{row.judge}, wording {row.wording + 1}"


def contradiction(row: ContradictionRow) -> str:
    """How far one judge contradicts itself on one set."""
    if not row.decided:
        return (
            f"decides no pair of {plural(row.items, 'item')} once both orders are averaged, and so contradicts nothing"
        )
    among = f"{plural(row.decided, 'preference')} among {plural(row.items, 'item')}"
    if not row.reversals:
        return f"is free of contradictions: {among}, none of them in a circle"
    fewest = f"{row.reversals} at the fewest" if row.exact else f"between {row.least} and {row.reversals}"
    return f"contradicts itself: of {among}, {fewest} must be reversed before none goes in a circle"


def repaired(row: RepairRow) -> str:
    """What ranking the items changes."""
    told = f"ranking by win-loss rate flips {count(row.flipped)} of {plural(row.questions, 'answer')}"
    before, after = row.human_agreement, row.repaired_agreement
    if before.value is None or after.value is None:
        return told
    tied = f"; {plural(row.left_out, 'question')} left tied by one of them not counted" if row.left_out else ""
    return (
        f"{told}; on {plural(after.n, 'question')} that people, answers and ranking decide, agreement with people goes "
        f"from {number(before.value)} ({interval(before.ci_low, before.ci_high)}) to {number(after.value)} "
        f"({interval(after.ci_low, after.ci_high)}), {signed(row.gain.value)} "
        f"({interval(row.gain.ci_low, row.gain.ci_high)}){tied}"
    )


def ledger(part: LogicPart) -> str:
    """What the panel makes of its judges' consistency."""
    if all(row.weight is None for row in part.ledger):
        return (
            "Each judge has one vote, or the weight that the configuration gives it: these figures have no part in it. "
            'panel.weights_from = "logic" weighs votes by them.'
        )
    benched = [f"{row.judge} ({row.reason})" for row in part.ledger if row.benched]
    told = "Votes on conflicts are weighed by these figures; what that changed is said with the conflicts."
    return f"{told} Benched: {', '.join(benched)}." if benched else f"{told} No judge is benched."


LEDGER_HEAD = ("Judge", "Transitivity", "Commutativity", "Negation", "Self-agreement", "Mean", "Weight")


def ledger_row(row: JudgeLedgerRow) -> list[str]:
    """One judge, in the order of `LEDGER_HEAD`."""
    figures = (row.transitivity, row.commutativity, row.negation, row.self_agreement, row.value)
    weight = "–" if row.weight is None else "0, benched" if row.benched else number(row.weight)
    return [row.judge, *(number(figure) for figure in figures), weight]


def over(part: LogicPart) -> str:
    """What the intervals are over."""
    rows = [*part.judges, *part.wordings]
    found = [f for row in rows for f in (*(t.share for t in row.transitivity), *figures(row)) if f.value is not None]
    kinds: Sequence[str] = list(dict.fromkeys(f.over for f in found))
    return f"95% intervals are over {'; '.join(kinds)}." if kinds else ""
