"""Nodes of a document: what a report says, without its look.

Sections build documents, and renderers turn them into HTML, Markdown, plain text, CSV and LaTeX. The set of nodes is
closed and has no raw markup: every text is plain text, which each renderer sanitizes and escapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from auditor.lazy_imports import import_on_first_use

if TYPE_CHECKING:
    from auditor.reports.document.blocks import (
        BarSegment as BarSegment,
        Block as Block,
        Callout as Callout,
        Cell as Cell,
        Code as Code,
        Disclosure as Disclosure,
        Document as Document,
        Facts as Facts,
        Figure as Figure,
        FigureGrid as FigureGrid,
        Footnoted as Footnoted,
        HeatMap as HeatMap,
        HeatMapCell as HeatMapCell,
        Inline as Inline,
        Link as Link,
        List as List,
        ListItem as ListItem,
        LowerBound as LowerBound,
        Paragraph as Paragraph,
        Printed as Printed,
        Quote as Quote,
        Reason as Reason,
        Row as Row,
        Search as Search,
        SearchFilter as SearchFilter,
        SearchRecord as SearchRecord,
        Section as Section,
        Status as Status,
        Strong as Strong,
        Table as Table,
        Tag as Tag,
        Text as Text,
    )
    from auditor.reports.document.columns import (
        Column as Column,
        ColumnKind as ColumnKind,
        CountShare as CountShare,
        Name as Name,
    )

if not TYPE_CHECKING:
    __getattr__, __dir__ = import_on_first_use(__name__, __file__)
