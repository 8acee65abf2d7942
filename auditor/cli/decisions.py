"""Commands that lead from numbers to a decision: compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli.options import AsJson, Storage
from auditor.cli.output import put_json, say, table

if TYPE_CHECKING:
    from auditor.reports.pages import Page

FORMS = {".html": "html", ".md": "markdown"}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(compare)


def compare(
    targets: Annotated[
        list[str], typer.Argument(metavar="A [B …]", help="Audits, or AUDIT:MODEL for one model of an audit.")
    ],
    method: Annotated[list[str] | None, typer.Option("--method", help="Only scores of this method.")] = None,
    judge: Annotated[
        list[str] | None, typer.Option("--judge", help="Twice: compare two judges on the same traces.")
    ] = None,
    all_pairs: Annotated[bool, typer.Option("--all-pairs", help="All pairs, not only those with the first.")] = False,
    flips: Annotated[int, typer.Option("--flips", min=0, help="Verdict flips to list for a pair.")] = 50,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write a page (.html or .md).")
    ] = None,
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Compare models on the cells they share: what got better or worse, where, and whether it is more than chance.

    One audit: all pairs of its models. Several: each against the first, model by model, as before and after fine-tuning
    or with two prompts; AUDIT:MODEL picks one model. Two judges: --judge ONE --judge OTHER, in one audit or across two.

    Example: auditor compare before after -o comparison.html
    """
    from auditor.reports.comparison import compare as compare_
    from auditor.reports.comparison_page import page_of
    from auditor.reports.comparison_series import target
    from auditor.run import storage_url
    from auditor.storage.database import open_database

    form = _form_of(output)
    with open_database(storage_url(storage), create=False) as db:
        found = compare_(
            db,
            [target(text) for text in targets],
            methods=method or (),
            every=all_pairs,
            judges=judge or (),
            listed=flips,
        )
    if as_json:
        put_json(found.model_dump(mode="json"))
    if output is not None and form:
        write_page(page_of(found), output, form)
    elif not as_json:
        show_page(page_of(found))


def _form_of(output: Path | None) -> str | None:
    from auditor.errors import UsageError

    if output is None:
        return None
    if output.suffix not in FORMS:
        raise UsageError(f"'{output}' has no suffix of a page.", "Name it .html or .md.")
    return FORMS[output.suffix]


def write_page(page: Page, output: Path, form: str) -> None:
    """Write a page to a file, and say where."""
    from auditor.reports.pages import render_page
    from auditor.reports.render import write_report

    write_report(render_page(page, form), output)
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
