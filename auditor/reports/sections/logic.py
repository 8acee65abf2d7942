"""The section on the logical consistency of judges' preferences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.data.logic.schema import LogicEstimate, LogicReport, LogicRow, TransitivityRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, Cell, Column, CountShare, List, ListItem, Paragraph, Section, Table
from auditor.reports.number_format import format_count, format_number, pluralize
from auditor.reports.sections.logic_contradictions import build_contradictions_section
from auditor.reports.sections.logic_rankings import build_rankings_section, build_repair_section
from auditor.reports.sections.phrasing import describe_interval, name_finding

CRITERION_QUESTIONS = {
    "acceptability": "which is more acceptable to most people of the country",
    "preference": "which is better",
    "relevance": "which is more relevant",
    "temporal": "which is earlier",
    "causal": "which is the cause",
}
CHANCE_TRANSITIVITY_K3 = 0.75
"""2 of the 8 tournaments of three items are cycles, so random preferences are transitive in 6 of 8."""
MAX_LISTED_CONTEXTS = 4
MAX_CONTEXT_CHARS = 40
"""Contexts are named in the text if they are few and each is shorter than this."""


def build_logic_section(report: Report) -> Section | None:
    """Build the section; None where nothing was compared."""
    logic = report.logic
    if logic is None:
        return None
    rows = [*logic.judges, *logic.wordings]
    blocks: list[Block | None] = [
        Paragraph(_describe_comparisons(logic)),
        List([ListItem(name_finding(row.judge, _describe_judge(row))) for row in logic.judges], is_findings=True),
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
    is_short = len(logic.contexts) <= MAX_LISTED_CONTEXTS and all(
        len(context) < MAX_CONTEXT_CHARS for context in logic.contexts
    )
    contexts = f": {', '.join(logic.contexts)}" if is_short else ""
    return (
        f"Each judge compared pairs of items from {pluralize(logic.sets, 'set')} "
        f"({pluralize(logic.items, 'item')} in total{contexts}). It was asked {criteria}. "
        "A consistent judge has three properties. Its preferences have no cycles (transitivity). Its decision does not "
        "depend on which item is shown first (commutativity). It names the other item if the question is negated "
        "(negation)."
    )


def _describe_judge(row: LogicRow) -> str:
    """Describe one judge's figures, as a predicate."""
    return "; ".join(_list_judge_findings(row)) or "gave no usable answer"


def _list_judge_findings(row: LogicRow) -> Iterator[str]:
    """Yield predicates on position bias, commutativity, negation and transitivity, where they are known."""
    first = row.first
    if first.ci_low is not None and first.ci_low > 0.5:
        yield f"favours the item shown first, in {_describe_share(first)} of its decisions"
    elif first.ci_high is not None and first.ci_high < 0.5:
        yield f"favours the item shown second: it names the first in {_describe_share(first)} of its decisions"
    if row.commutativity.value is not None:
        yield f"makes the same decision in both orders for {_describe_share(row.commutativity)} of pairs"
    if row.negation.value is not None:
        yield f"reverses its answer to {_describe_share(row.negation)} of negated questions"
    measured = (entry for entry in row.transitivity if not entry.calibrated and entry.share.value is not None)
    if (entry := next(measured, None)) is not None:
        yield f"has no cycles in {_describe_share(entry.share)} of subsets of {entry.k} items"


def _describe_share(share: Estimate) -> str:
    """Format a share as a percentage with its interval."""
    value = "an unknown share" if share.value is None else f"{format_number(100 * share.value, 0)}%"
    return f"{value} ({describe_interval(share, 0, 'percent')})"


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
        Column("Questions", "number"),
        Column("Usable answers", "number"),
        Column("Usable share", "share"),
        Column("Excluded"),
        Column("Ties", "number"),
        Column("Names the first", "estimate", emphasis=True),
    ]
    cells: list[list[Cell]] = [
        [
            _judge_label(row),
            row.questions,
            row.ok,
            CountShare(row.ok, row.questions),
            ", ".join(f"{format_count(n)} {cause.replace('_', ' ')}" for cause, n in row.losses.items()) or "none",
            row.ties,
            row.first,
        ]
        for row in rows
    ]
    return Table("logic-answers", "Answers of each judge", caption, columns, cells)


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
    titles = ("Commutativity", "Negation", "Negation, calibrated", "Self-agreement", "Agreement with people",
              "Agreement with people, calibrated")  # fmt: skip
    columns = [Column("Judge", "name"), *(Column(title, "estimate") for title in titles)]
    cells: list[list[Cell]] = [[_judge_label(row), *_shares_of(row)] for row in rows]
    return Table("logic-shares", "Commutativity, negation and agreement", caption, columns, cells)


def _shares_of(row: LogicRow) -> tuple[LogicEstimate, ...]:
    """Shares of one judge, in the order of the table's columns."""
    return (
        row.commutativity, row.negation, row.negation_calibrated, row.self_agreement, row.human_agreement,
        row.human_agreement_calibrated,
    )  # fmt: skip


def _build_transitivity_table(rows: Sequence[LogicRow]) -> Table:
    """Build the table with the share of subsets without a cycle, by judge, subset size and treatment of the orders."""
    caption = (
        "Transitivity: share of subsets of K items whose preferences have no cycle (higher is better), with 95% CI; n "
        "counts subsets with an answer to every pair. One order: one of the two answers to each pair, drawn at random. "
        "Calibrated: the average of both. Margin: half-width of the 95% CI from sampling subsets. A tied or unanswered "
        "pair cannot close a cycle, so decided and unanswered pairs are counted too. Random preferences reach "
        f"{format_number(CHANCE_TRANSITIVITY_K3)} for K = 3."
    )
    columns = [
        Column("Judge", "name"),
        Column("K", "number"),
        Column("Answers"),
        Column("Transitive subsets", "estimate", emphasis=True),
        Column("Subsets checked"),
        Column("Margin", "number"),
        Column("Decided pairs", "number"),
        Column("Unanswered pairs", "number"),
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
    shares = [share for row in rows for share in (*(entry.share for entry in row.transitivity), *_shares_of(row))]
    units = dict.fromkeys(share.over for share in shares if share.value is not None)
    return Paragraph(f"Units of the 95% CIs: {'; '.join(units)}.", "note") if units else None


def _build_correlation_table(logic: LogicReport) -> Table | None:
    """Build the table of correlations between the figures; None without correlations."""
    if not logic.links:
        return None
    caption = (
        "Pearson’s r between figures over judges or wordings, with 95% CI (figures 4 and 5 of Aligning with Logic)."
    )
    columns = [Column("Over", "name"), Column("Figure"), Column("Correlated with"), Column("r", "estimate")]
    cells: list[list[Cell]] = [[row.over, row.x, row.y, row.r] for row in logic.links]
    return Table("logic-correlations", "Correlations between the figures", caption, columns, cells)


def _build_votes_section(logic: LogicReport) -> Section | None:
    """Build the subsection on the consistency of the panel's judges and their votes; None without a panel."""
    if not logic.ledger:
        return None
    columns = [
        Column("Judge", "name"),
        *(Column(name, "number") for name in ("Transitivity", "Commutativity", "Negation", "Self-agreement")),
        Column("Mean", "number", emphasis=True),
        Column("Weight", "number"),
    ]
    cells: list[list[Cell]] = [
        [
            row.judge, row.transitivity, row.commutativity, row.negation, row.self_agreement, row.value,
            0.0 if row.benched else row.weight,
        ]
        for row in logic.ledger
    ]  # fmt: skip
    caption = (
        "Consistency of each judge of the panel in its own comparisons, from 0 to 1 (higher is better). Mean: of the "
        "measured figures. The tables above have the intervals."
    )
    table = Table("logic-votes", "Consistency of the judges", caption, columns, cells)
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
