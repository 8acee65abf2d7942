"""The text of a document's nodes, for tests of what a report says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from auditor.reports.document import (
    Block,
    Callout,
    Cell,
    Code,
    Disclosure,
    Document,
    Figure,
    InlineEstimate,
    Link,
    List,
    ListItem,
    Name,
    Paragraph,
    Row,
    Section,
    Strong,
    Table,
    Text,
)
from auditor.reports.document.traversal import iterate_blocks
from auditor.reports.number_format import format_estimate

BlockT = TypeVar("BlockT", bound=Block)


def plain_text(text: Text) -> str:
    """The characters of a text, without its structure."""
    match text:
        case str():
            return text
        case Name() | Code() | Link():
            return text.text
        case Strong():
            return plain_text(text.content)
        case InlineEstimate():
            return format_estimate(text.estimate, text.digits)
        case _:
            return "".join(map(plain_text, text))


def sentences(section: Section) -> str:
    """The texts of a section's paragraphs, lists, summaries and captions, one a line."""
    document = Document("", "", "", [section])
    return "\n".join(plain_text(text) for block in iterate_blocks(document) for text in _texts_of(block))


def blocks_of(section: Section, kind: type[BlockT]) -> list[BlockT]:
    """The blocks of one type in a section, at any depth."""
    return [block for block in iterate_blocks(Document("", "", "", [section])) if isinstance(block, kind)]


def cells_of(table: Table) -> list[Sequence[Cell]]:
    """The cells of each row of a table, the total row included."""
    return [row.cells if isinstance(row, Row) else row for row in table.rows]


def _texts_of(block: Block) -> Iterator[Text]:
    """Yield the texts of one block, without those of the blocks within it."""
    match block:
        case Paragraph():
            yield block.content
        case List():
            yield from (item.content if isinstance(item, ListItem) else item for item in block.items)
        case Section() | Callout():
            yield block.title
        case Disclosure():
            yield from (block.summary, block.detail)
        case Table():
            yield block.caption
        case Figure():
            yield from (block.title, block.description, block.caption)
        case _:
            return
