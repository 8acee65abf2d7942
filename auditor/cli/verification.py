"""`auditor verify`: check that an audit's records are complete and unchanged since they were written."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli.options import AuditArgument, JsonOption, StorageOption
from auditor.cli.output import print_json, print_message, print_missing_probes, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from auditor.agents.probe_questions import Rereading
    from auditor.reports.data.verification import AuditVerification


def verify(
    audit: AuditArgument,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="HASH",
            help="Checksum that this command printed earlier, to check that the records up to that point are "
            "unchanged.",
        ),
    ] = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that an audit's records are complete and unchanged.

    Checks that no call is lost or counted twice, and that no answer or decision was changed since it was written. The
    answers to probes of other packages are read again, and compared with the stored results. Exit code 1: a check
    failed. Keep the checksum (the head of the hash chain) that this command prints. With --head, anyone
    can check later that all records up to that point are still there and unchanged.

    Example: auditor verify moral-alignment
    """
    from auditor.agents.probe_questions import reread_results  # loads numpy, as the other check does
    from auditor.reports.data.verification import verify_audit
    from auditor.run import open_stored_audit
    from auditor.storage import hash_chain

    with open_stored_audit(audit, storage) as (db, stored_audit):
        verification = verify_audit(db, stored_audit.name)
        rereadings = reread_results(db, stored_audit)
        is_known = head is None or hash_chain.contains_head(db, head)
    print_missing_probes(stored_audit.config)
    holds = verification.is_consistent and is_known and not any(rereading.changed for rereading in rereadings)
    if as_json:
        reread = {"reread": [asdict(rereading) for rereading in rereadings]} if rereadings else {}
        print_json(asdict(verification) | reread | {"holds": holds})
    else:
        _print_verification(verification)
        _print_rereadings(rereadings)
        if not is_known:
            print_message(
                f"The checksum {head} is not among this audit's records: some were deleted or changed since it was "
                "printed. Restore a backup of the database, or do not rely on this audit."
            )
    if not holds:
        raise typer.Exit(1)


def _print_rereadings(rereadings: Sequence[Rereading]) -> None:
    """Print how many results of each probe of another package were read again from the recorded answers."""
    for rereading in rereadings:
        earlier = f"; {rereading.earlier} of other reader versions were not read" if rereading.earlier else ""
        print_message(
            f"{rereading.probe}: {rereading.read} answers were read again, and {len(rereading.changed)} say something "
            f"else than the stored result{earlier}."
        )


def _print_verification(verification: AuditVerification) -> None:
    """Print planned and recorded results by stage and model, changed records, and the head of the hash chain."""
    # A balance is of one stage and model: planned = done + failed + cancelled + pending, and no stray records.
    columns = ["stage", "model", "planned", "done", "failed", "cancelled", "pending", "adds up"]
    rows = [
        [
            balance.stage,
            balance.model,
            balance.planned,
            balance.done,
            balance.failed,
            balance.cancelled,
            balance.pending,
            "yes" if balance.is_consistent else f"NO: {balance.stray} stray",
        ]
        for balance in verification.balances
    ]
    print_table(columns, rows)
    if verification.unfounded:
        print_message(
            f"{verification.unfounded} usable answers or verdicts in the results have no recorded answer of a model "
            "behind them: do not rely on them."
        )
    for chain_break in verification.records.breaks:
        print_message(f"{chain_break.record_kind} {chain_break.row_id} {chain_break.problem}.")
    if not verification.records.breaks:
        print_message(
            f"{verification.records.n_links} answers and decisions are unchanged. To check them again later, keep "
            f"this checksum for --head: {verification.records.head}"
        )
