"""The section on the logical consistency of judges' preferences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.metrics.estimate import Estimate
from auditor.probes.logic.figures.schema import ContradictionRow, LogicCorrelationRow, LogicReport, LogicRow
from auditor.probes.logic.section_rankings import build_rankings_section, build_repair_section
from auditor.probes.logic.section_tables import (
    build_answer_table,
    build_complete_table,
    build_interval_note,
    build_partial_table,
    build_share_tables,
)
from auditor.probes.logic.section_votes import build_votes_section
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Column,
    Disclosure,
    Inline,
    List,
    Name,
    Paragraph,
    Section,
    Table,
)
from auditor.reports.number_format import format_count, format_share, pluralize
from auditor.reports.sections.phrasing import (
    build_finding,
    describe_interval,
    join_names,
)
from auditor.reports.sections.tables import DerivedCells, make_columns, tabulate

CRITERION_QUESTIONS = {
    "acceptability": "which is more acceptable to most people of the country",
    "preference": "which is better",
    "relevance": "which is more relevant",
    "coherence": "which is the more coherent summary",
    "temporal": "which is earlier",
    "causal": "which is the cause",
}
AVERAGING_LABELS = {"instances": "mean over sets", "pooled": "pooled"}
MAX_OPEN_ROWS = 3
"""Contradictory sets of preferences that are shown open."""
MAX_LISTED_CONTEXTS = 4
MAX_CONTEXT_CHARS = 40
"""Contexts are named in the text if they are few and each is shorter than this."""


def build_logic_section(report: Report) -> Section | None:
    """Build the section; None where nothing was compared."""
    logic = report.find(LogicReport)
    if logic is None:
        return None
    rows = [*logic.judges, *logic.wordings]
    findings = [
        build_finding(row.judge, "; ".join(_describe_judge(row)) or _describe_unknown_consistency(row))
        for row in logic.judges
    ]
    blocks: list[Block | None] = [
        Paragraph(_describe_comparisons(logic)),
        List(findings, is_findings=True),
        build_answer_table(rows),
        *build_share_tables(logic),
        build_complete_table(rows),
        build_partial_table(rows),
        build_interval_note(rows),
        _build_correlation_table(logic),
        build_rankings_section(logic),
        build_votes_section(logic),
        build_contradictions_section(logic.contradictions),
        build_repair_section(logic.repairs),
    ]
    present = [block for block in blocks if block is not None]
    return Section("logic", "Are the judges’ preferences logically consistent?", present, "Logic")


def group_logic_tables(report: Report) -> Section | None:
    """Build a section with the tables of judges' figures only; None where nothing was compared."""
    logic = report.find(LogicReport)
    if logic is None:
        return None
    rows = [*logic.judges, *logic.wordings]
    blocks = [
        build_answer_table(rows),
        *build_share_tables(logic),
        build_partial_table(rows),
        _build_correlation_table(logic),
    ]
    present = [block for block in blocks if block is not None]
    return Section("logic", "Consistency of preferences", present, "consistency")


def _describe_comparisons(logic: LogicReport) -> str:
    """Describe the item sets, the criteria and the three properties that are measured."""
    criteria = ", ".join(CRITERION_QUESTIONS.get(name, name) for name in logic.criterion)
    is_short = (
        len(logic.contexts) <= MAX_LISTED_CONTEXTS and max(map(len, logic.contexts), default=0) < MAX_CONTEXT_CHARS
    )
    contexts = f": {', '.join(logic.contexts)}" if is_short else ""
    drawn = "" if logic.max_sets is None else f" Sets were drawn at random, at most {format_count(logic.max_sets)}."
    labels = "" if not logic.labelled_pairs else f" People labelled {format_count(logic.labelled_pairs)} of the pairs."
    return (
        f"Each judge compared pairs of items from {pluralize(logic.sets, 'set')} ({pluralize(logic.items, 'item')} in "
        f"total{contexts}).{drawn}{labels} It was asked {criteria}. A consistent judge has three properties. Its "
        "preferences have no cycles (transitivity). Its decisions do not depend on the order of the items "
        "(commutativity). It names the other item if the question is negated (negation)."
    )


def _describe_judge(row: LogicRow) -> Iterator[str]:
    """Yield predicates on position bias, commutativity, negation and transitivity, where they are known."""
    if row.first.value is not None:
        yield (
            f"names the item shown first in {_describe_share(row.first)} of its decisions, where 50% is no position "
            "bias"
        )
    if row.commutativity.value is not None:
        yield (
            f"makes the same decision in both orders for {_describe_share(row.commutativity)} of decided pairs "
            f"(commutativity), and gives the same answer for {_describe_share(row.position_consistency)} of all pairs, "
            "ties among them (position consistency)"
        )
    if row.negation.value is not None:
        yield f"reverses its answer to {_describe_share(row.negation)} of decided negated questions"
    measured = (entry for entry in row.transitivity if not entry.calibrated and entry.share.value is not None)
    if (entry := next(measured, None)) is not None:
        yield f"has no cycles in {_describe_share(entry.share)} of fully decided subsets of {entry.k} items"


def _describe_unknown_consistency(row: LogicRow) -> str:
    """Predicate for a judge of whom no property is known."""
    if not row.ok:
        return "gave no usable answer"
    agreement = ""
    if row.human_agreement.value is not None:
        agreement = f"answers {_describe_share(row.human_agreement)} of the questions that people decided as they do; "
    return f"{agreement}decided no pair in both orders or forms, so that its consistency is not known"


def _describe_share(share: Estimate) -> str:
    """Format a share as a percentage with its interval."""
    return f"{format_share(share.value)} ({describe_interval(share, 0, 'percent')})"


def _build_correlation_table(logic: LogicReport) -> Table | None:
    """Build the table of correlations between the figures; None without correlations."""
    caption = (
        "Pearson’s r between figures, over judges or wordings (figures 4 and 5 of Aligning with Logic). 95% CIs and p "
        "generalize to other judges or wordings. p is from a permutation test and needs 5 of them; a CI needs 8. "
        "Judges of one model family are averaged first; n then counts families."
    )
    columns = [
        Column("Over", "name"),
        *make_columns("text", {"x": "Figure", "y": "Correlated with", "averaged": "Averaged"}),
        Column("r", "estimate"),
        Column("p", "number", "r.p_value", style="p_value"),
    ]
    derived: DerivedCells[LogicCorrelationRow] = {"averaged": lambda row: AVERAGING_LABELS[row.averaged]}
    table = tabulate("logic-correlations", "Correlations between the figures", caption, logic.links, columns, derived)
    return table if table.rows else None


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
