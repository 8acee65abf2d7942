"""Render a document as plain text of a fixed width, for terminals. Figures and heat maps are named, not drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from auditor.reports.document import (
    Block,
    Callout,
    Disclosure,
    Document,
    Facts,
    List,
    ListItem,
    Paragraph,
    Quote,
    Section,
    Table,
    Text,
)
from auditor.reports.render.pictures import describe_pictures, group_pictures, label_tables
from auditor.reports.render.text_layout import flatten_text, indent_text, wrap_text
from auditor.reports.render.text_tables import render_text_table
from auditor.text_safety import escape_invisible

DEFAULT_WIDTH = 100
MIN_WIDTH = 20
RULES = "═─"
"""Characters that underline headings, by level; those of deeper levels are not underlined."""
INDENTATION = "  "


def render_text(document: Document, width: int = DEFAULT_WIDTH) -> str:
    """Render the document as text of at most `width` columns, as a terminal counts them."""
    renderer = _TextRenderer(max(width, MIN_WIDTH), label_tables(document))
    subtitle = ". ".join(filter(None, map(flatten_text, (document.kind, document.subtitle))))
    parts = [
        renderer.heading(document.title, 0),
        renderer.wrap(subtitle),
        *renderer.blocks(document.opening, 1),
        *renderer.blocks(document.sections, 1),
        renderer.wrap(document.footer),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def render_text_blocks(blocks: Sequence[Block], width: int = DEFAULT_WIDTH) -> str:
    """Render blocks without figures as text of at most `width` columns."""
    renderer = _TextRenderer(max(width, MIN_WIDTH), {})
    return "\n\n".join(filter(None, renderer.blocks(blocks, 1))) + "\n"


@dataclass(frozen=True, slots=True)
class _TextRenderer:
    """Renders blocks as paragraphs of a width.

    Attributes:
        table_labels: labels of the tables that figures refer to, by id.
    """

    width: int
    table_labels: dict[str, str]

    def wrap(self, text: Text) -> str:
        """Render a paragraph."""
        return "\n".join(wrap_text(flatten_text(text), self.width))

    def heading(self, title: Text, level: int) -> str:
        """Render a heading, underlined by its level."""
        lines = self.wrap(title)
        return f"{lines}\n{RULES[level] * self.width}" if level < len(RULES) else lines

    def item(self, text: Text, bullet: str = "- ") -> str:
        """Render an item of a list."""
        return indent_text("\n".join(wrap_text(flatten_text(text), self.width - len(bullet))), bullet)

    def nested(self, blocks: Sequence[Block], level: int) -> Iterator[str]:
        """Render blocks indented."""
        renderer = _TextRenderer(self.width - len(INDENTATION), self.table_labels)
        for part in renderer.blocks(blocks, level):
            if part:
                yield indent_text(part, INDENTATION)

    def blocks(self, blocks: Sequence[Block], level: int) -> Iterator[str]:
        """Render blocks; `level` is that of the headings of sections among them."""
        for are_pictures, group in group_pictures(blocks):
            if are_pictures:
                yield self.wrap(describe_pictures(group, self.table_labels))
            else:
                for block in group:
                    yield from self.block(block, level)

    def block(self, block: Block, level: int) -> Iterator[str]:
        """Render a block that is no picture as paragraphs, some of which may be empty."""
        match block:
            case Section():
                yield self.heading(block.title, level)
                yield from self.blocks(block.blocks, level + 1)
            case Paragraph():
                yield self.wrap(block.content)
            case List():
                items = [item.content if isinstance(item, ListItem) else item for item in block.items]
                yield "\n".join(map(self.item, items))
            case Facts():
                yield "\n".join(self.item(f"{label}: {value}", "") for label, value in block.items)
            case Callout():
                yield self.wrap(block.title)
                yield from self.nested(block.blocks, level)
            case Disclosure():
                tags = [f"[{tag.text}]" for tag in block.tags]
                yield self.wrap(
                    " ".join(filter(None, (flatten_text(block.summary), flatten_text(block.detail), *tags)))
                )
                yield from self.nested(block.blocks, level)
            case Quote():
                yield self.wrap(block.heading)
                yield self.quote(block.text)
                yield self.wrap(block.note)
            case Table():
                yield self.wrap(self.table_labels.get(block.id, ""))
                yield render_text_table(block, self.width)

    def quote(self, text: str) -> str:
        """Render a text of several lines with a line at its left."""
        lines = escape_invisible(text).strip().replace("\t", " ").split("\n")
        wrapped_lines = [wrapped for line in lines for wrapped in wrap_text(line.strip(), self.width - 2)]
        return "\n".join(f"│ {line}".rstrip() for line in wrapped_lines)
