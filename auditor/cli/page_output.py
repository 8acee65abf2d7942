"""Write a report page to a file, or print it in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.cli.output import print_json, print_message, print_table

if TYPE_CHECKING:
    from auditor.reports.pages.report_page import ReportPage

PAGE_FORMATS = {".html": "html", ".md": "markdown"}


def present_page(json_document: Any, page: ReportPage, output: Path | None, as_json: bool) -> None:
    """Print JSON if requested, write the page if a file is named, and else print the page in the terminal.

    Raises:
        UsageError: the file's suffix names no page format, or it cannot be written.
    """
    if as_json:
        print_json(json_document)
    if (page_format := resolve_page_format(output)) and output is not None:
        write_page(page, output, page_format)
    elif not as_json:
        print_page(page)


def resolve_page_format(output: Path | None) -> str | None:
    """The page format that a file's suffix names, `html` or `markdown`; None without a file.

    Raises:
        UsageError: the suffix names no page format.
    """
    from auditor.errors import UsageError

    if output is None:
        return None
    if output.suffix not in PAGE_FORMATS:
        raise UsageError(f"'{output}' has no suffix of a page.", "Name it .html or .md.")
    return PAGE_FORMATS[output.suffix]


def write_page(page: ReportPage, output: Path, page_format: str) -> None:
    """Write a page to a file, and print its path."""
    from auditor.atomic_files import write_atomically
    from auditor.reports.pages.report_page import render_page

    write_atomically(render_page(page, page_format), output)
    print_message(f"{page.kicker}: {output.resolve()}")


def print_page(page: ReportPage) -> None:
    """Print a page in the terminal: text to standard error, tables to standard output."""
    print_message(page.headline)
    for line in page.bullets if len(page.bullets) > 1 else ():
        print_message(f"  {line}")
    for line in page.warnings:
        print_message(f"! {line}")
    for section in page.sections:
        print_message(f"\n{section.title}")
        for line in [*section.paragraphs, *section.bullets]:
            print_message(f"  {line}")
        for table in section.tables:
            print_table(table.columns, table.rows)
