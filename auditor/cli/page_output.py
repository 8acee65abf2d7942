"""Write a document to a file, or print it in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.cli.output import create_console, print_json, print_layout, print_message

if TYPE_CHECKING:
    from auditor.reports.document import Block, Document, Table, Text

PAGE_FORMATS = {".html": "html", ".md": "markdown", ".txt": "text"}


def present_document(json_document: Any, document: Document, output: Path | None, as_json: bool) -> None:
    """Print JSON if requested, write the document if a file is named, and else print it in the terminal.

    Raises:
        UsageError: the file's suffix names no format of documents, or it cannot be written.
    """
    if as_json:
        print_json(json_document)
    if output is not None:
        from auditor.atomic_files import write_atomically
        from auditor.reports.output import render_document

        write_atomically(render_document(document, resolve_page_format(output)), output)
        print_message(f"{document.kind}: {output.resolve()}")
    elif not as_json:
        print_document(document)


def resolve_page_format(output: Path | None) -> str:
    """The format that a file's suffix names: `html`, `markdown` or `text`; without a file, the terminal's `text`.

    Raises:
        UsageError: the suffix names no format of documents.
    """
    from auditor.errors import UsageError

    suffix = ".txt" if output is None else output.suffix
    if suffix not in PAGE_FORMATS:
        raise UsageError(
            f"-o: '{output}' is not the name of a page.", f"Use a name that ends in {', '.join(PAGE_FORMATS)}."
        )
    return PAGE_FORMATS[suffix]


def print_document(document: Document) -> None:
    """Print a document in the terminal: tables to standard output, other text to standard error; no figures."""
    from auditor.reports.document import Table
    from auditor.reports.document.traversal import iterate_blocks
    from auditor.reports.render.text_layout import flatten_text

    for block in iterate_blocks(document):
        if isinstance(block, Table):
            print_document_table(block)
        for text in _list_texts(block):
            print_message(flatten_text(text))


def print_document_table(table: Table, *, data: bool = True) -> None:
    """Print a table in the terminal's width, to standard output, or to standard error if it is no data."""
    from auditor.reports.render.plain_text import MIN_WIDTH
    from auditor.reports.render.text_tables import render_text_table

    print_layout(f"\n{render_text_table(table, max(create_console(data=data).width, MIN_WIDTH))}\n", data=data)


def _list_texts(block: Block) -> Iterator[Text]:
    """Yield the lines of a block that is not a table, a figure or a heat map."""
    from auditor.reports import document as nodes

    match block:
        case nodes.Section():
            yield ""
            yield block.title
        case nodes.Paragraph():
            yield block.content
        case nodes.Callout():
            yield f"{block.title}:"
        case nodes.Disclosure():
            yield block.summary
            yield block.detail
        case nodes.Quote():
            yield block.heading
            yield block.text
            yield block.note
        case nodes.List():
            for item in block.items:
                content = item.content if isinstance(item, nodes.ListItem) else item
                yield ["- ", *(content if isinstance(content, list | tuple) else [content])]
        case nodes.Facts():
            yield from (f"{label}: {value}" for label, value in block.items)
