"""Every block of a document is visited, in reading order."""

from __future__ import annotations

from auditor.reports.document import Callout, Disclosure, Document, Figure, FigureGrid, Paragraph, Section
from auditor.reports.document.blocks import iterate_blocks


def test_nested_blocks_are_visited_in_reading_order() -> None:
    first, second, third = (Figure(str(i), {}, "", "") for i in range(3))
    note, inner = Paragraph("note"), Section("inner", "", [third])
    grid, callout = FigureGrid([first, second]), Callout("", [note])
    disclosure = Disclosure("", [inner])
    outer = Section("outer", "", [grid, disclosure])
    document = Document("", "", "", [outer], opening=[callout])
    assert list(iterate_blocks(document)) == [callout, note, outer, grid, first, second, disclosure, inner, third]
