"""Pages on their way to a file or a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.cli.output import put_json, say, table

if TYPE_CHECKING:
    from auditor.reports.pages.report_page import Page

FORMS = {".html": "html", ".md": "markdown"}


def present(data: Any, page: Page, output: Path | None, as_json: bool) -> None:
    """What was found: as JSON where programs ask, as a file where one is named, in the terminal otherwise.

    Raises:
        UsageError: the file's suffix names no form of a page, or it cannot be written.
    """
    if as_json:
        put_json(data)
    if (form := form_of(output)) and output is not None:
        write_page(page, output, form)
    elif not as_json:
        show_page(page)


def form_of(output: Path | None) -> str | None:
    """The form of a page that a file's suffix names; None without a file.

    Raises:
        UsageError: the suffix names none.
    """
    from auditor.errors import UsageError

    if output is None:
        return None
    if output.suffix not in FORMS:
        raise UsageError(f"'{output}' has no suffix of a page.", "Name it .html or .md.")
    return FORMS[output.suffix]


def write_page(page: Page, output: Path, form: str) -> None:
    """Write a page to a file, and say where."""
    from auditor.atomic_files import write_whole
    from auditor.reports.pages.report_page import render_page

    write_whole(render_page(page, form), output)
    say(f"{page.kicker}: {output.resolve()}")


def show_page(page: Page) -> None:
    """A page in a terminal: what it says to standard error, its tables to standard output."""
    say(page.answer)
    for text in page.points if len(page.points) > 1 else ():
        say(f"  {text}")
    for text in page.warnings:
        say(f"! {text}")
    for chapter in page.chapters:
        say(f"\n{chapter.title}")
        for text in [*chapter.text, *chapter.points]:
            say(f"  {text}")
        for grid in chapter.grids:
            table(grid.columns, grid.rows)
