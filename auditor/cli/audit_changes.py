"""The commands `rename` and `delete`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.console.options import RequiredAuditArgument, StorageOption
from auditor.console.output import can_ask, format_command, print_message

if TYPE_CHECKING:
    from auditor.storage.audit_changes import AuditContents


def rename(
    audit: RequiredAuditArgument,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="The new name.")],
    storage: StorageOption = None,
) -> None:
    """Give an audit another name.

    Its results and human decisions stay as they are. Set the new name in the audit's configuration file too: a run with
    the old name would start another audit.

    Example: auditor rename my-audit moral-alignment
    """
    from auditor.run.audit_changes import rename_audit

    n_decisions = _load_contents(audit, storage).decisions
    rename_audit(audit, new_name, storage=storage)
    if n_decisions:
        print_message(
            "Two random draws of the review depend on the audit's name and change now: which answer is shown first, "
            "and which conflicts a second rater decides. Decisions stay as they are."
        )
    print_message(f"Renamed '{audit}' to '{new_name}'. To resume it, set name = \"{new_name}\" in its configuration.")


def delete(
    audit: RequiredAuditArgument,
    confirmed: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    storage: StorageOption = None,
) -> None:
    """Delete an audit, after asking for confirmation.

    Its configuration, scores, verdicts and conflicts are deleted. Recorded answers stay, since other audits may share
    them and a new run would use them again. Human decisions stay too: they are part of the hash chain.

    Example: auditor delete my-audit --yes
    """
    from auditor.errors import UsageError
    from auditor.run.audit_changes import delete_audit

    for line in _describe_deletion(audit, _load_contents(audit, storage), storage):
        print_message(line)
    if not confirmed:
        if not can_ask():
            raise UsageError("delete asks for confirmation, but there is no terminal.", "Add --yes to delete.")
        if not typer.confirm(f"Delete the audit '{audit}'?", err=True):
            print_message("Nothing was deleted.")
            raise typer.Exit(1)
    delete_audit(audit, storage=storage)
    print_message(f"Deleted the audit '{audit}'.")


def _load_contents(audit: str, storage: str | None) -> AuditContents:
    """Count what an audit has; raises StorageError if there is no such audit."""
    from auditor.run import open_stored_audit
    from auditor.storage.audit_changes import count_contents

    with open_stored_audit(audit, storage) as (db, stored_audit):
        return count_contents(db, stored_audit.id)


def _describe_deletion(audit: str, contents: AuditContents, storage: str | None) -> Iterator[str]:
    """Yield lines on what a deletion removes and what stays."""
    from auditor.reports.number_format import pluralize

    counts = (
        (contents.samples, "sample"),
        (contents.verdicts, "verdict"),
        *((n, noun) for noun, n in contents.probe_answers.items()),
        (contents.conflicts, "conflict"),
    )
    parts = ["the configuration", *(pluralize(n, noun) for n, noun in counts if n)]
    yield f"Deleted from '{audit}': {', '.join(parts)}, and all scores."
    yield "Kept: the recorded answers of models, which other audits share and a new run would use again."
    for n, noun, table in ((contents.decisions, "human decision", "ratings"), (contents.labels, "label", "labels")):
        if n:
            export = format_command("export", table, audit, storage=storage)
            yield (
                f"Kept, but no longer shown: {pluralize(n, noun)}, because the hash chain covers them. "
                f"To save them first: {export}"
            )
    if contents.open_batches:
        yield (
            f"Lost: {pluralize(contents.open_batches, 'batch', 'batches')} at the provider, whose answers were not "
            "collected yet. They are charged all the same."
        )
