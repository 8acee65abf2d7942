"""The section on the logical consistency of judges' preferences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.data.logic.schema import ContradictionRow, LogicReport, LogicRow, TransitivityRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Cell,
    Column,
    CountShare,
    Disclosure,
    Inline,
    List,
    Name,
    Paragraph,
    Section,
    Table,
)
from auditor.reports.number_format import format_count, format_share, pluralize
from auditor.reports.sections.logic_rankings import build_rankings_section, build_repair_section
from auditor.reports.sections.phrasing import (
    build_finding,
    compare_interval,
    describe_interval,
    join_names,
    list_counts,
)
from auditor.reports.sections.tables import DerivedCells, make_columns, tabulate

CRITERION_QUESTIONS = {
    "acceptability": "which is more acceptable to most people of the country",
    "preference": "which is better",
    "relevance": "which is more relevant",
    "temporal": "which is earlier",
    "causal": "which is the cause",
}
SHARE_TITLES = {
    "commutativity": "Commutativity",
    "negation": "Negation",
    "negation_calibrated": "Negation, calibrated",
    "self_agreement": "Self-agreement",
    "human_agreement": "Agreement with people",
    "human_agreement_calibrated": "Agreement with people, calibrated",
}
"""Titles of the shares in `LogicRow`, by field."""
CHANCE_TRANSITIVITY_K3 = 0.75
"""2 of the 8 tournaments of three items are cycles, so random preferences are transitive in 6 of 8."""
MAX_OPEN_ROWS = 3
"""Contradictory sets of preferences that are shown open."""
MAX_LISTED_CONTEXTS = 4
MAX_CONTEXT_CHARS = 40
"""Contexts are named in the text if they are few and each is shorter than this."""


def build_logic_section(report: Report) -> Section | None:
    """Build the section; None where nothing was compared."""
    logic = report.logic
    if logic is None:
        return None
    rows = [*logic.judges, *logic.wordings]
    findings = [
        build_finding(row.judge, "; ".join(_describe_judge(row)) or "gave no usable answer") for row in logic.judges
    ]
    blocks: list[Block | None] = [
        Paragraph(_describe_comparisons(logic)),
        List(findings, is_findings=True),
        _build_answer_table(rows),
        _build_share_table(rows),
        _build_transitivity_table(rows),
        _build_interval_note(rows),
        _build_correlation_table(logic),
        build_rankings_section(logic),
        _build_votes_section(logic),
        build_contradictions_section(logic.contradictions),
        build_repair_section(logic.repairs),
    ]
    present = [block for block in blocks if block is not None]
    return Section("logic", "Are the judges’ preferences logically consistent?", present, "Logic")


def _describe_comparisons(logic: LogicReport) -> str:
    """Describe the item sets, the criteria and the three properties that are measured."""
    criteria = ", ".join(CRITERION_QUESTIONS.get(name, name) for name in logic.criterion)
    is_short = (
        len(logic.contexts) <= MAX_LISTED_CONTEXTS and max(map(len, logic.contexts), default=0) < MAX_CONTEXT_CHARS
    )
    contexts = f": {', '.join(logic.contexts)}" if is_short else ""
    return (
        f"Each judge compared pairs of items from {pluralize(logic.sets, 'set')} "
        f"({pluralize(logic.items, 'item')} in total{contexts}). It was asked {criteria}. "
        "A consistent judge has three properties. Its preferences have no cycles (transitivity). Its decision does not "
        "depend on which item is shown first (commutativity). It names the other item if the question is negated "
        "(negation)."
    )


def _describe_judge(row: LogicRow) -> Iterator[str]:
    """Yield predicates on position bias, commutativity, negation and transitivity, where they are known."""
    first_share = f"in {_describe_share(row.first)} of its decisions"
    position_bias = {
        "positive": f"favours the item shown first, {first_share}",
        "negative": f"favours the item shown second: it names the first {first_share}",
    }
    if (comparison := compare_interval(row.first, 0.5)) in position_bias:
        yield position_bias[comparison]
    if row.commutativity.value is not None:
        yield f"makes the same decision in both orders for {_describe_share(row.commutativity)} of pairs"
    if row.negation.value is not None:
        yield f"reverses its answer to {_describe_share(row.negation)} of negated questions"
    measured = (entry for entry in row.transitivity if not entry.calibrated and entry.share.value is not None)
    if (entry := next(measured, None)) is not None:
        yield f"has no cycles in {_describe_share(entry.share)} of subsets of {entry.k} items"


def _describe_share(share: Estimate) -> str:
    """Format a share as a percentage with its interval."""
    return f"{format_share(share.value)} ({describe_interval(share, 0, 'percent')})"


def _judge_label(row: LogicRow) -> str:
    """Name of the judge, with the wording's number where the row is about one wording."""
    return row.judge if row.wording is None else f"{row.judge}, wording {row.wording + 1}"


def _build_answer_table(rows: Sequence[LogicRow]) -> Table:
    """Build the table with the judges' usable answers, ties and position bias."""
    caption = (
        "Answers of each judge. Names the first: share of decisions for the item shown first, with 95% CI, over pairs "
        "answered in both orders; 0.5 is no position bias."
    )
    columns = [
        Column("Judge", "name"),
        *make_columns("number", {"questions": "Questions", "ok": "Usable answers"}),
        Column("Usable share", "share"),
        Column("Excluded"),
        Column("Ties", "number"),
        Column("Names the first", "estimate", "first", emphasis=True),
    ]
    derived: DerivedCells[LogicRow] = {
        "judge": _judge_label,
        "usable_share": lambda row: CountShare(row.ok, row.questions),
        "excluded": lambda row: list_counts(row.losses) or "none",
    }
    return tabulate("logic-answers", "Answers of each judge", caption, rows, columns, derived)


def _build_share_table(rows: Sequence[LogicRow]) -> Table:
    """Build the table of commutativity, negation, self-agreement and agreement with people."""
    caption = (
        "Shares from 0 to 1 (higher is better), with 95% CI. Commutativity: pairs with the same decision in both "
        "orders; two ties agree. Negation: questions whose negated form is answered with the other item. "
        "Self-agreement: repeated answers that agree with the most frequent one; by chance alone this is well above "
        "0.5. Agreement with people: questions answered as people do, where people have a preference; a tie does not "
        "agree. Calibrated: both orders are averaged first. A judge that always names the first item then ties "
        "everywhere, and two ties agree: read it together with commutativity."
    )
    columns = [Column("Judge", "name"), *make_columns("estimate", SHARE_TITLES)]
    title = "Commutativity, negation and agreement"
    return tabulate("logic-shares", title, caption, rows, columns, {"judge": _judge_label})


def _build_transitivity_table(rows: Sequence[LogicRow]) -> Table:
    """Build the table with the share of subsets without a cycle, by judge, subset size and treatment of the orders."""
    caption = (
        "Transitivity: share of subsets of K items whose preferences have no cycle (higher is better), with 95% CI; n "
        "counts subsets with an answer to every pair. One order: one of the two answers to each pair, drawn at random. "
        "Calibrated: the average of both. Margin: half-width of the 95% CI from sampling subsets. A tied or unanswered "
        "pair cannot close a cycle, so decided and unanswered pairs are counted too. Random preferences reach "
        f"{CHANCE_TRANSITIVITY_K3} for K = 3."
    )
    columns = [
        Column("Judge", "name"),
        Column("K", "number"),
        Column("Answers"),
        Column("Transitive subsets", "estimate", emphasis=True),
        Column("Subsets checked"),
        *(Column(title, "number") for title in ("Margin", "Decided pairs", "Unanswered pairs")),
    ]
    cells = [_transitivity_cells(row, entry) for row in rows for entry in row.transitivity]
    return Table("logic-transitivity", "Transitivity", caption, columns, cells)


def _transitivity_cells(row: LogicRow, entry: TransitivityRow) -> list[Cell]:
    """Cells of one judge and size of subsets; without a share there are no subsets to describe."""
    cells: list[Cell] = [_judge_label(row), entry.k, "calibrated" if entry.calibrated else "one order", entry.share]
    if entry.share.value is None:
        return [*cells, None, None, None, None]
    complete_label = "all with answers" if entry.share.lost else "all"
    subsets: list[Cell] = ["random sample", entry.margin] if entry.margin else [complete_label, None]
    return [*cells, *subsets, entry.decided, entry.share.lost]


def _build_interval_note(rows: Sequence[LogicRow]) -> Paragraph | None:
    """Say which units the intervals are over; None without a figure."""
    shares = [entry.share for row in rows for entry in row.transitivity]
    shares += [getattr(row, key) for row in rows for key in SHARE_TITLES]
    units = dict.fromkeys(share.over for share in shares if share.value is not None)
    return Paragraph(f"Units of the 95% CIs: {'; '.join(units)}.", "note") if units else None


def _build_correlation_table(logic: LogicReport) -> Table | None:
    """Build the table of correlations between the figures; None without correlations."""
    caption = (
        "Pearson’s r between figures over judges or wordings, with 95% CI (figures 4 and 5 of Aligning with Logic)."
    )
    columns = [
        Column("Over", "name"),
        *make_columns("text", {"x": "Figure", "y": "Correlated with"}),
        Column("r", "estimate"),
    ]
    table = tabulate("logic-correlations", "Correlations between the figures", caption, logic.links, columns)
    return table if table.rows else None


def _build_votes_section(logic: LogicReport) -> Section | None:
    """Build the subsection on the consistency of the panel's judges and their votes; None without a panel."""
    if not logic.ledger:
        return None
    columns = [
        Column("Judge", "name"),
        Column("Transitivity", "number"),
        *make_columns("number", {key: SHARE_TITLES[key] for key in ("commutativity", "negation", "self_agreement")}),
        Column("Mean", "number", "value", emphasis=True),
        Column("Weight", "number"),
    ]
    weights = {"weight": lambda row: 0.0 if row.benched else row.weight}
    caption = (
        "Consistency of each judge of the panel in its own comparisons, from 0 to 1 (higher is better). Mean: of the "
        "measured figures. The tables above have the intervals."
    )
    table = tabulate("logic-votes", "Consistency of the judges", caption, logic.ledger, columns, weights)
    return Section("logic-panel", "Consistency and votes of the judges", [Paragraph(_describe_votes(logic)), table])


def _describe_votes(logic: LogicReport) -> str:
    """Describe whether votes are weighted by consistency, and which judges are excluded from voting."""
    if all(row.weight is None for row in logic.ledger):
        return (
            "Votes are not weighted by these figures: each judge has one vote, or its configured weight. "
            'The setting panel.weights_from = "logic" weights votes by consistency.'
        )
    excluded = ", ".join(f"{row.judge} ({row.reason})" for row in logic.ledger if row.benched)
    outcome = f"Excluded from voting: {excluded}." if excluded else "No judge is excluded from voting."
    return f"Votes on conflicts are weighted by these figures. The section on conflicts reports the effect. {outcome}"


def build_contradictions_section(rows: Sequence[ContradictionRow]) -> Section:
    """Build the subsection: first the sets of preferences with contradictions, then a list of those without."""
    contradictory = [row for row in rows if row.reversals]
    consistent = [[*_describe_contradiction(row), "."] for row in rows if not row.reversals]
    blocks: list[Block] = [
        Paragraph(
            "Both orders of each pair are averaged. Shown are the shortest cycles, and the smallest set of preferences "
            "found whose reversal removes all cycles."
        ),
        *(_build_cycles(row, is_open=i < MAX_OPEN_ROWS) for i, row in enumerate(contradictory)),
    ]
    if consistent:
        summary = f"{pluralize(len(consistent), 'set')} of preferences without a contradiction"
        blocks.append(Disclosure(summary, [List(consistent)], is_open=not contradictory))
    return Section("logic-contradictions", "Contradictory preferences", blocks)


def _describe_contradiction(row: ContradictionRow) -> list[Inline]:
    """Describe how many of one judge's preferences on one set must be reversed to remove all cycles."""
    items = pluralize(row.items, "item")
    preferences = f"{pluralize(row.decided, 'preference')} among {items}"
    if not row.decided:
        text = f"no preference among {items} once both orders are averaged, so no contradiction"
    elif not row.reversals:
        text = f"no contradiction: {preferences}, none of them in a cycle"
    else:
        reversals = f"at least {row.reversals}" if row.exact else f"between {row.least} and {row.reversals}"
        text = f"contradictions: of {preferences}, {reversals} must be reversed to remove all cycles"
    return [Name(row.judge), ", ", Name(row.context), f": {text}"]


def _build_cycles(row: ContradictionRow, *, is_open: bool) -> Disclosure:
    """Build one set of preferences with its shortest cycles and the preferences to reverse."""
    unlisted = f" ({format_count(row.not_listed)} more are not listed)" if row.not_listed else ""
    blocks: list[Block] = [
        Paragraph(f"Cycles: each item is preferred to the next, and the last to the first{unlisted}.", "note"),
        List([join_names(cycle.items, " › ") for cycle in row.cycles]),
        Paragraph("Preferences to reverse:", "note"),
        List([join_names((arc.winner, arc.loser), " › ") for arc in row.arcs]),
    ]
    return Disclosure(_describe_contradiction(row), blocks, is_open=is_open)
