"""The command review: conflicts that wait for a person."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from auditor.cli.options import StorageOption
from auditor.cli.output import format_command, print_message


def review(
    audit: Annotated[
        str | None, typer.Argument(metavar="[AUDIT]", help="Name of the audit; without it, choose from a list.")
    ] = None,
    rater: Annotated[str | None, typer.Option("--rater", help="Your name as rater. Default: your user name.")] = None,
    plain_text: Annotated[
        bool, typer.Option("--plain", help="Use plain text instead of a full screen; the default without a terminal.")
    ] = False,
    open_book: Annotated[
        bool, typer.Option("--open-book", help="Show authors, verdicts and survey before you decide.")
    ] = False,
    second_rater_share: Annotated[
        float | None, typer.Option("--second-share", min=0, max=1, help="Share of conflicts that two raters decide.")
    ] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Open the app in a browser, on this machine only.")] = False,
    host: Annotated[str, typer.Option("--host", help="With --serve: the network interface.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="With --serve: the port.")] = 8321,
    public_url: Annotated[
        str | None,
        typer.Option("--public-url", metavar="URL", help="With --serve: the URL that browsers use, if it differs."),
    ] = None,
    storage: StorageOption = None,
) -> None:
    """Review the conflicts that the judges could not resolve, in a terminal app.

    Example: auditor review moral-alignment --rater ada
    """
    import getpass

    from auditor.review.conflict_list import DEFAULT_SECOND_RATER_SHARE
    from auditor.storage.database import STORAGE_VARIABLE, resolve_database_url
    from auditor.tui.plain_text_app import needs_plain_text, run_plain_text_review

    url, rater_name = resolve_database_url(storage), rater or getpass.getuser()
    if serve:
        from auditor.tui import web_server

        os.environ[STORAGE_VARIABLE] = url  # not an argument: other users of this machine can list those
        arguments = ["review", *([audit] if audit else []), "--rater", rater_name]
        arguments += ["--open-book"] if open_book else []
        arguments += [] if second_rater_share is None else ["--second-share", str(second_rater_share)]
        web_server.serve_app(
            [sys.executable, "-P", "-m", "auditor", *arguments], host=host, port=port, public_url=public_url
        )
        return
    open_by_audit: dict[str, int] = {}

    def on_decided(name: str) -> None:
        """Resume the audit after a decision, and keep how many of its conflicts are still open."""
        from auditor.run import resume_after_review

        open_by_audit[name] = resume_after_review(name, storage=url)

    second_share = DEFAULT_SECOND_RATER_SHARE if second_rater_share is None else second_rater_share
    if plain_text or needs_plain_text():
        run_plain_text_review(
            url, audit, rater=rater_name, blind=not open_book, second_rater_share=second_share, on_decided=on_decided
        )
    else:
        from auditor.tui.launch import run_review

        run_review(
            url, audit, rater=rater_name, blind=not open_book, second_rater_share=second_share, on_decided=on_decided
        )
    for name in (name for name, n_open in open_by_audit.items() if n_open == 0):
        print_message(
            f"All conflicts of '{name}' are resolved. To see the report: {format_command('report', name, storage=url)}"
        )
