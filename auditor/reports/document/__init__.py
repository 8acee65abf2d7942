"""Nodes of a document: what a report says, without its look.

Sections build documents, and renderers turn them into HTML, Markdown, plain text, CSV and LaTeX. The set of nodes is
closed and has no raw markup: every text is plain text, which each renderer sanitizes and escapes.
"""

from auditor.reports.document.blocks import (
    Block,
    Callout,
    Disclosure,
    Document,
    Facts,
    Figure,
    FigureGrid,
    List,
    ListItem,
    Paragraph,
    Quote,
    Section,
    Status,
    Tag,
)
from auditor.reports.document.inline import Code, Inline, Link, Name, Strong, Text
from auditor.reports.document.tables import (
    BarSegment,
    Cell,
    Column,
    ColumnKind,
    CountShare,
    Footnoted,
    HeatMap,
    HeatMapCell,
    LowerBound,
    Printed,
    Reason,
    Row,
    Table,
)

__all__ = [
    "BarSegment",
    "Block",
    "Callout",
    "Cell",
    "Code",
    "Column",
    "ColumnKind",
    "CountShare",
    "Disclosure",
    "Document",
    "Facts",
    "Figure",
    "FigureGrid",
    "Footnoted",
    "HeatMap",
    "HeatMapCell",
    "Inline",
    "Link",
    "List",
    "ListItem",
    "LowerBound",
    "Name",
    "Paragraph",
    "Printed",
    "Quote",
    "Reason",
    "Row",
    "Section",
    "Status",
    "Strong",
    "Table",
    "Tag",
    "Text",
]
