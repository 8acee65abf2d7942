"""`auditor verify`: whether an audit's records add up, and are as they were written."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli.options import JsonOption, StorageOption
from auditor.cli.output import print_json, print_message, print_table

if TYPE_CHECKING:
    from auditor.reports.verification import AuditVerification


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(verify)


def verify(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    head: Annotated[
        str | None, typer.Option("--head", metavar="HASH", help="A head noted earlier: must be in the chain still.")
    ] = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prove that nothing is lost or counted twice, and that no answer or decision was changed since it was written.

    Exits with 1 where anything does not hold. Note the head that is printed: who has it can check later, with --head,
    that everything up to it is still there and untouched.

    Example: auditor verify moral-alignment
    """
    from auditor.reports.verification import verify_audit as check
    from auditor.run import resolve_storage_url
    from auditor.storage import hash_chain
    from auditor.storage.database import open_database

    with open_database(resolve_storage_url(storage), create=False) as db:
        found = check(db, audit)
        is_known = head is None or hash_chain.contains_head(db, head)
    if as_json:
        print_json(asdict(found) | {"holds": found.is_consistent and is_known})
    else:
        _print_verification(found)
        if not is_known:
            print_message(f"The head {head} is in no link of this chain: what it stood for is not here any more.")
    if not (found.is_consistent and is_known):
        raise typer.Exit(1)


def _print_verification(verification: AuditVerification) -> None:
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
            "yes" if b.is_consistent else f"NO: {b.stray} stray",
        ]
        for b in verification.balances
    ]
    print_table(columns, rows)
    if verification.unfounded:
        print_message(f"{verification.unfounded} usable traces or verdicts have no recorded answer.")
    for broken in verification.records.breaks:
        print_message(f"{broken.record_kind} {broken.row_id} {broken.problem}.")
    if not verification.records.breaks:
        print_message(
            f"{verification.records.n_links} answers and decisions are as they were written. Head: "
            f"{verification.records.head}"
        )
