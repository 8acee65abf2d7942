"""`auditor reread`: apply the present readers to recorded answers, and undo that."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from auditor.console.options import JsonOption, RequiredAuditArgument, StorageOption
from auditor.console.output import format_command, print_json, print_message


def reread(
    audit: RequiredAuditArgument,
    preview: Annotated[bool, typer.Option("--preview", help="Only say what would change.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Restore the results before the last rereading.")] = False,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read recorded answers again by the present version of auditor.

    A newer version of auditor, or of a probe, may read some answers better. `auditor verify` says so. This command
    replaces the results that change, without calling a model, and says how many there are. It is recorded in the hash
    chain. Human decisions stay as they are.

    Example: auditor reread my-audit --preview
    """
    from auditor.run.rereading import reread_audit, undo_reread

    if undo:
        n_restored = undo_reread(audit, storage=storage)
        print_message(f"{n_restored} results of '{audit}' are as they were before the last rereading.")
        return
    rereading = reread_audit(audit, storage=storage, is_preview=preview)
    if as_json:
        print_json(asdict(rereading))
        return
    for reason in rereading.missing_probes.values():
        print_message(f"{reason[0].upper()}{reason[1:]} Its results stay as they are.")
    for name, (earlier, present) in rereading.readers.items():
        print_message(f"{name}: read by reader version {earlier}; the present one is {present}.")
    for table, n_rows in rereading.n_by_table.items():
        print_message(f"{table}: {n_rows} results {'would change' if preview else 'changed'}.")
    if not rereading.readers and not rereading.n_by_table:
        others = "other results" if rereading.missing_probes else "results"
        print_message(f"All {others} of '{audit}' were read by the present readers: nothing changed.")
    elif not preview:
        print_message(f"To undo: {format_command('reread', audit, '--undo', storage=storage)}")
