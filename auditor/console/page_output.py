"""Write a document to a file, or print it in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.atomic_files import write_atomically
from auditor.console.output import create_console, print_json, print_layout, print_message
from auditor.errors import UsageError
from auditor.reports.output import DOCUMENT_FORMATS, render_document
from auditor.reports.render.plain_text import MIN_WIDTH, render_text, render_text_table

if TYPE_CHECKING:
    from auditor.reports.document import Document, Table

CSV_SUFFIX = ".csv"


def present_document(
    json_document: Any, document: Document, output: Path | None, as_json: bool, figures: Table | None = None
) -> None:
    """Print JSON if requested, write the document if a file is named, and else print it in the terminal.

    Args:
        figures: the table that is written instead of the document to a file whose name ends in .csv.

    Raises:
        UsageError: the file's suffix names no format of documents, or it cannot be written.
    """
    if as_json:
        print_json(json_document)
    if output is not None:
        from auditor.reports.render.table_files import render_csv

        if figures is not None and output.suffix == CSV_SUFFIX:
            write_atomically(render_csv(figures), output)
        else:
            write_atomically(render_document(document, resolve_page_format(output)), output)
        print_message(f"{document.kind}: {output.resolve()}")
    elif not as_json:
        print_document(document)


def resolve_page_format(output: Path | None, *, allows_csv: bool = False) -> str:
    """The format that a file's suffix names: `html`, `markdown` or `text`; without a file, the terminal's `text`.

    Args:
        allows_csv: whether it may be `csv`, too.

    Raises:
        UsageError: the suffix names no format of documents.
    """
    formats = DOCUMENT_FORMATS | ({CSV_SUFFIX: "csv"} if allows_csv else {})
    suffix = ".txt" if output is None else output.suffix
    if suffix not in formats:
        raise UsageError(f"-o: '{output}' is not the name of a page.", f"Use a name that ends in {', '.join(formats)}.")
    return formats[suffix]


def print_document(document: Document) -> None:
    """Print a document to standard output as text of the terminal's width; figures are named, not drawn."""
    print_layout(render_text(document, create_console(data=True).width))


def print_document_table(table: Table, *, data: bool = True) -> None:
    """Print a table in the terminal's width, to standard output, or to standard error if it is no data."""
    print_layout(f"\n{render_text_table(table, max(create_console(data=data).width, MIN_WIDTH))}\n", data=data)
