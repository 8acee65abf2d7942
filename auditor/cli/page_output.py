"""Pages on their way to a file or a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.cli.output import print_json, print_message, print_table

if TYPE_CHECKING:
    from auditor.reports.pages.report_page import ReportPage

PAGE_FORMATS = {".html": "html", ".md": "markdown"}


def present_page(json_document: Any, page: ReportPage, output: Path | None, as_json: bool) -> None:
    """What was found: as JSON where programs ask, as a file where one is named, in the terminal otherwise.

    Raises:
        UsageError: the file's suffix names no form of a page, or it cannot be written.
    """
    if as_json:
        print_json(json_document)
    if (form := resolve_page_format(output)) and output is not None:
        write_page(page, output, form)
    elif not as_json:
        print_page(page)


def resolve_page_format(output: Path | None) -> str | None:
    """The form of a page that a file's suffix names; None without a file.

    Raises:
        UsageError: the suffix names none.
    """
    from auditor.errors import UsageError

    if output is None:
        return None
    if output.suffix not in PAGE_FORMATS:
        raise UsageError(f"'{output}' has no suffix of a page.", "Name it .html or .md.")
    return PAGE_FORMATS[output.suffix]


def write_page(page: ReportPage, output: Path, page_format: str) -> None:
    """Write a page to a file, and say where."""
    from auditor.atomic_files import write_atomically
    from auditor.reports.pages.report_page import render_page

    write_atomically(render_page(page, page_format), output)
    print_message(f"{page.kicker}: {output.resolve()}")


def print_page(page: ReportPage) -> None:
    """A page in a terminal: what it says to standard error, its tables to standard output."""
    print_message(page.headline)
    for text in page.bullets if len(page.bullets) > 1 else ():
        print_message(f"  {text}")
    for text in page.warnings:
        print_message(f"! {text}")
    for chapter in page.sections:
        print_message(f"\n{chapter.title}")
        for text in [*chapter.paragraphs, *chapter.bullets]:
            print_message(f"  {text}")
        for grid in chapter.tables:
            print_table(grid.columns, grid.rows)
