"""`auditor verify`: whether an audit's records add up, and are as they were written."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli.options import AsJson, Storage
from auditor.cli.output import put_json, say, table

if TYPE_CHECKING:
    from auditor.reports.verification import Verification


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(verify)


def verify(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    head: Annotated[
        str | None, typer.Option("--head", metavar="HASH", help="A head noted earlier: must be in the chain still.")
    ] = None,
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Prove that nothing is lost or counted twice, and that no answer or decision was changed since it was written.

    Exits with 1 where anything does not hold. Note the head that is printed: who has it can check later, with --head,
    that everything up to it is still there and untouched.

    Example: auditor verify moral-alignment
    """
    from auditor.reports.verification import verify as check
    from auditor.run import storage_url
    from auditor.storage import hash_chain
    from auditor.storage.database import open_database

    with open_database(storage_url(storage), create=False) as db:
        found = check(db, audit)
        is_known = head is None or hash_chain.has(db, head)
    if as_json:
        put_json(asdict(found) | {"holds": found.holds and is_known})
    else:
        _show(found)
        if not is_known:
            say(f"The head {head} is in no link of this chain: what it stood for is not here any more.")
    if not (found.holds and is_known):
        raise typer.Exit(1)


def _show(found: Verification) -> None:
    columns = ["stage", "model", "planned", "done", "failed", "cancelled", "pending", "adds up"]
    rows = [
        [
            b.stage,
            b.model,
            b.planned,
            b.done,
            b.failed,
            b.cancelled,
            b.pending,
            "yes" if b.holds else f"NO: {b.stray} stray",
        ]
        for b in found.balances
    ]
    table(columns, rows)
    if found.unfounded:
        say(f"{found.unfounded} usable traces or verdicts have no recorded answer.")
    for broken in found.records.broken:
        say(f"{broken.kind} {broken.row} {broken.what}.")
    if not found.records.broken:
        say(f"{found.records.links} answers and decisions are as they were written. Head: {found.records.head}")
