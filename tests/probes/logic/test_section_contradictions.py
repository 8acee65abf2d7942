"""The subsection on contradictions lists cycles and the preferences to reverse."""

from __future__ import annotations

from auditor.probes.logic.figures.schema import ArcRow, ContradictionRow, CycleRow
from auditor.probes.logic.section import MAX_OPEN_ROWS, build_contradictions_section
from auditor.reports.document import Disclosure, List
from tests.reports.hostile_report import NAME
from tests.reports.sections.node_text import assert_consistent, text_of


def make_row(reversals: int = 1, *, exact: bool = True, decided: int = 3) -> ContradictionRow:
    has_cycle = reversals > 0
    return ContradictionRow(
        judge="j", context=NAME, items=4, decided=decided, reversals=reversals, least=1, exact=exact,
        arcs=[ArcRow(winner="a", loser=NAME)] if has_cycle else [],
        cycles=[CycleRow(items=["a", NAME, "c"])] if has_cycle else [], not_listed=2 if has_cycle else 0,
    )  # fmt: skip


def build(rows: list[ContradictionRow]) -> list[Disclosure]:
    section = build_contradictions_section(rows)
    assert_consistent(section)
    return [block for block in section.blocks if isinstance(block, Disclosure)]


def test_cycles_and_the_preferences_to_reverse_are_listed() -> None:
    [row] = build([make_row()])
    assert text_of(row.summary) == (
        f"j, {NAME}: contradictions: of 3 preferences among 4 items, at least 1 must be reversed to remove all cycles"
    )
    cycles, arcs = [block for block in row.blocks if isinstance(block, List)]
    assert [text_of(item) for item in cycles.items] == [f"a › {NAME} › c"]
    assert [text_of(item) for item in arcs.items] == [f"a › {NAME}"]
    assert "(2 more are not listed)" in text_of(row.blocks[0])


def test_bounds_are_stated_where_the_minimum_is_not_proved() -> None:
    [row] = build([make_row(3, exact=False)])
    assert "between 1 and 3 must be reversed" in text_of(row.summary)


def test_sets_without_contradictions_are_listed_last_and_the_first_contradictions_are_open() -> None:
    rows = build([make_row(0), *[make_row()] * (MAX_OPEN_ROWS + 1), make_row(0, decided=0)])
    assert [row.is_open for row in rows] == [True] * MAX_OPEN_ROWS + [False, False]
    [consistent] = rows[-1].blocks
    assert isinstance(consistent, List)
    assert [text_of(item) for item in consistent.items] == [
        f"j, {NAME}: no contradiction: 3 preferences among 4 items, none of them in a cycle.",
        f"j, {NAME}: no preference among 4 items once both orders are averaged, so no contradiction.",
    ]
