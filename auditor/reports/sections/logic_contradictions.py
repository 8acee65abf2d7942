"""The subsection on contradictions among a judge's preferences."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.data.logic.schema import ContradictionRow
from auditor.reports.document import Block, Disclosure, Inline, List, Name, Paragraph, Section
from auditor.reports.number_format import format_count, pluralize
from auditor.reports.sections.phrasing import join_names

MAX_OPEN_ROWS = 3
"""Contradictory sets of preferences that are shown open."""


def build_contradictions_section(rows: Sequence[ContradictionRow]) -> Section:
    """Build the subsection: first the sets of preferences with contradictions, then a list of those without."""
    contradictory = [row for row in rows if row.reversals]
    consistent = [[*_name_set(row), _describe_contradiction(row), "."] for row in rows if not row.reversals]
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


def _name_set(row: ContradictionRow) -> list[Inline]:
    """Name the judge and the item set."""
    return [Name(row.judge), ", ", Name(row.context), ": "]


def _describe_contradiction(row: ContradictionRow) -> str:
    """Describe how many of one judge's preferences on one set must be reversed to remove all cycles."""
    if not row.decided:
        return f"no preference among {pluralize(row.items, 'item')} once both orders are averaged, so no contradiction"
    preferences = f"{pluralize(row.decided, 'preference')} among {pluralize(row.items, 'item')}"
    if not row.reversals:
        return f"no contradiction: {preferences}, none of them in a cycle"
    reversals = f"at least {row.reversals}" if row.exact else f"between {row.least} and {row.reversals}"
    return f"contradictions: of {preferences}, {reversals} must be reversed to remove all cycles"


def _build_cycles(row: ContradictionRow, *, is_open: bool) -> Disclosure:
    """Build one set of preferences with its shortest cycles and the preferences to reverse."""
    unlisted = f" ({format_count(row.not_listed)} more are not listed)" if row.not_listed else ""
    blocks: list[Block] = [
        Paragraph(f"Cycles: each item is preferred to the next, and the last to the first{unlisted}.", "note"),
        List([join_names(cycle.items, " › ") for cycle in row.cycles]),
        Paragraph("Preferences to reverse:", "note"),
        List([join_names((arc.winner, arc.loser), " › ") for arc in row.arcs]),
    ]
    return Disclosure([*_name_set(row), _describe_contradiction(row)], blocks, is_open=is_open)
