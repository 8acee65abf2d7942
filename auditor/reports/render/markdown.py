"""Render a document as Markdown for GitHub and MkDocs. Figures and heat maps are named; tables have their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from auditor.reports.document import (
    Block,
    Callout,
    Cell,
    Column,
    Disclosure,
    Document,
    Facts,
    List,
    ListItem,
    Paragraph,
    Quote,
    Reason,
    Section,
    Table,
    Text,
)
from auditor.reports.document.blocks import iterate_blocks
from auditor.reports.number_format import MISSING_SYMBOL
from auditor.reports.render.escaping import (
    InlineMarkup,
    describe_pictures,
    escape_line_starts,
    escape_markdown,
    escape_markdown_inline,
    format_markdown_code,
    group_pictures,
    label_tables,
    quote_markdown,
    render_inline,
)
from auditor.reports.render.plain_text import flatten_text
from auditor.reports.render.tables import format_figure, format_reason, iterate_rows, label_notes, shorten_table

MAX_HEADING_LEVEL = 6


def render_markdown(document: Document) -> str:
    """Render the document as Markdown."""
    return _MarkdownRenderer.of(document).render(document)


@dataclass(frozen=True, slots=True)
class _MarkdownRenderer:
    """Renders the blocks of one document.

    Attributes:
        markup: how inline nodes are marked up.
        table_labels: labels of the tables that figures refer to, by id.
    """

    markup: InlineMarkup
    table_labels: dict[str, str]

    @classmethod
    def of(cls, document: Document) -> _MarkdownRenderer:
        """The renderer of a document, whose links lead to the headings of its sections."""
        anchors = {
            f"#{block.id}": re.sub(r"[^\w\- ]", "", flatten_text(block.title).strip().lower()).replace(" ", "-")
            for block in iterate_blocks(document)
            if isinstance(block, Section)
        }

        def format_link(text: str, target: str) -> str:
            """Link to the heading of a section; the text alone if the document has no such section."""
            label = escape_markdown_inline(text)
            return f"[{label}](#{anchors[target]})" if anchors.get(target) else label

        markup = InlineMarkup(
            text=escape_markdown_inline,
            name=escape_markdown_inline,
            strong=lambda content: f"**{content.strip()}**" if content.strip() else content,
            code=format_markdown_code,
            link=format_link,
        )
        return cls(markup, label_tables(document))

    def render(self, document: Document) -> str:
        """Render the complete document."""
        blocks = [
            f"# {escape_markdown(document.title)}",
            ". ".join(filter(None, (escape_markdown(document.kind), self.line(document.subtitle)))),
            *self.blocks(document.opening, 2),
            *self.blocks(document.sections, 2),
            "---" if document.footer else "",
            self.line(document.footer),
        ]
        return "\n\n".join(filter(None, blocks)) + "\n"

    def line(self, text: Text) -> str:
        """Render a text on one line."""
        return escape_line_starts(render_inline(text, self.markup).strip())

    def blocks(self, blocks: Sequence[Block], level: int) -> Iterable[str]:
        """Render blocks; `level` is that of the headings of sections among them."""
        for are_pictures, group in group_pictures(blocks):
            if are_pictures:
                remark = escape_markdown(describe_pictures(group, self.table_labels))
                yield f"*{remark}*" if remark else ""
            else:
                for block in group:
                    yield from self.block(block, level)

    def block(self, block: Block, level: int) -> Iterable[str]:
        """Render a block that is no picture as paragraphs, some of which may be empty."""
        match block:
            case Section():
                yield f"{'#' * min(level, MAX_HEADING_LEVEL)} {self.line(block.title)}"
                yield from self.blocks(block.blocks, level + 1)
            case Paragraph():
                content = self.line(block.content)
                yield (
                    f"**{content}**"
                    if block.role in ("lead", "finding") and "**" not in content and content
                    else content
                )
            case List():
                items = [item.content if isinstance(item, ListItem) else item for item in block.items]
                yield "\n".join(f"- {self.line(item)}" for item in items)
            case Facts():
                yield "\n".join(f"- {escape_markdown(label)}: {escape_markdown(value)}" for label, value in block.items)
            case Callout():
                yield f"**{escape_markdown(block.title)}**" if block.title else ""
                yield from self.blocks(block.blocks, level)
            case Disclosure():
                detail, tags = self.line(block.detail), [escape_markdown(f"[{tag.text}]") for tag in block.tags]
                yield " ".join(filter(None, (f"**{self.line(block.summary)}**", detail, *tags)))
                yield from self.blocks(block.blocks, level)
            case Quote():
                yield self.line(block.heading)
                yield quote_markdown(block.text)
                yield self.line(block.note)
            case Table():
                if label := self.table_labels.get(block.id):
                    yield f"**{escape_markdown(label)}**"
                shown = shorten_table(block)
                yield self.line(shown.content if isinstance(shown, Paragraph) else shown.caption)
                if isinstance(shown, Table):
                    yield from self.table(shown)

    def table(self, table: Table) -> Iterable[str]:
        """Render a table, and the notes below it; bars are left out, since other columns have their numbers."""
        notes = label_notes(table)
        shown_columns = [column for column in table.columns if column.kind != "bar"]
        alignments = [
            "---:" if column.kind in ("number", "estimate", "interval", "share") else "---" for column in shown_columns
        ]
        header = [self.line(column.title) for column in shown_columns]
        rows = [self.row(table.columns, row.cells, notes) for row in iterate_rows(table)]
        yield "\n".join("| " + " | ".join(cells) + " |" for cells in (header, alignments, *rows))
        yield "\n".join(f"- note {label}: {escape_markdown(text)}" for text, label in notes.items())

    def row(self, columns: Sequence[Column], cells: Sequence[Cell], notes: Mapping[str, str]) -> list[str]:
        """Render the cells of a row; a reason that spans columns is in the first of them."""
        rendered: list[str] = []
        for cell in cells:
            column = columns[len(rendered)]
            if isinstance(cell, Reason):
                figure = format_reason(cell, notes)
                reason = escape_markdown(figure.in_line()) if figure else self.line(cell.text)
                rendered += [reason, *[MISSING_SYMBOL] * (cell.columns - 1)]
            elif column.kind in ("name", "text"):
                rendered.append(MISSING_SYMBOL if cell is None else self.line(cast(Text, cell)))
            else:
                rendered.append(escape_markdown(format_figure(cell, column, notes).in_line()))
        return [cell for cell, column in zip(rendered, columns, strict=True) if column.kind != "bar"]
