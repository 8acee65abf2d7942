"""`auditor verify`: check that an audit's records are complete and unchanged since they were written."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.console.options import AuditArgument, JsonOption, StorageOption
from auditor.console.output import print_json, print_message, print_table
from auditor.errors import UsageError
from auditor.reports.number_format import pluralize
from auditor.run import open_stored_audit
from auditor.run.derivation_workers import start_verification
from auditor.run.rederivation import derive_again
from auditor.storage import hash_chain
from auditor.storage.database import require_not_running
from auditor.text_safety import truncate_text

if TYPE_CHECKING:
    from auditor.exports.evidence import EvidenceCheck
    from auditor.reports.data.verification import AuditVerification
    from auditor.run.rederivation import Rederivation

MAX_VALUE_LENGTH = 60


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
    """Check that records are complete, and results follow from them.

    Checks that no call is lost or counted twice, and that no answer or decision was changed since it was written. Then
    all results are derived again from the recorded answers, by the code of the run and without any model: scores,
    verdicts, conflicts, votes and what probes read. Exit code 1: a check failed. Keep the checksum (the head of the
    hash chain) that this command prints. With --head, anyone can check later that all records up to that point are
    still there and unchanged. Exit code 4: some results could not be derived, for a reason that is named, such as a
    probe that is not installed.

    AUDIT can also be a file that `auditor export evidence` wrote. Then no database is needed, and all figures of its
    report are computed again. Exit code 4: some could not be, or differ, for a reason that is named, such as another
    version of auditor.

    Example: auditor verify moral-alignment
    """
    if head is not None:
        head = head.strip().lower()
        if re.fullmatch(f"[0-9a-f]{{{len(hash_chain.START_DIGEST)}}}", head) is None:
            raise UsageError(
                f"--head: '{truncate_text(head)}' is not a checksum that this command printed.",
                f"Give all of its {len(hash_chain.START_DIGEST)} hexadecimal digits.",
            )
    if Path(audit).suffix.lower() == ".zip":
        _verify_evidence(Path(audit), head, as_json=as_json)
        return
    with open_stored_audit(audit, storage) as (db, stored_audit):
        require_not_running(db, stored_audit.name)
        with start_verification(db, stored_audit) as (unknown, get_verification):
            derivation = derive_again(db, stored_audit, unknown=unknown)
            verification = get_verification()
        is_known = head is None or hash_chain.contains_head(db, head)
    is_consistent = verification.is_consistent and derivation.is_consistent and is_known
    exit_code = 1 if not is_consistent else 4 if derivation.lacks_results else 0
    if as_json:
        print_json(asdict(verification) | {"derived": asdict(derivation), "holds": exit_code == 0})
    else:
        _print_verification(verification, is_unchanged=head is not None and is_known)
        _print_derivation(derivation)
        if not is_known:
            print_message(
                f"The checksum {head} is not among this audit's records: some were deleted or changed since it was "
                "printed. Restore a backup of the database, or do not rely on this audit."
            )
    if exit_code:
        raise typer.Exit(exit_code)


def _verify_evidence(path: Path, head: str | None, *, as_json: bool) -> None:
    """Check an archive of evidence, and exit with its code if not everything is equal."""
    from auditor.exports.evidence import check_evidence  # loads what reports need

    check = check_evidence(path, head)
    if as_json:
        print_json(asdict(check) | {"holds": check.exit_code == 0})
    else:
        _print_evidence(check, has_head=head is not None)
    if check.exit_code:
        raise typer.Exit(check.exit_code)


def _print_evidence(check: EvidenceCheck, *, has_head: bool) -> None:
    """Print what an archive says, and what differs from what its records give."""
    is_unchanged = has_head and check.is_head_known
    if check.verification is not None:
        _print_verification(check.verification, is_unchanged=is_unchanged)
    if check.derivation is not None:
        _print_derivation(check.derivation)
    for problem in check.problems:
        print_message(problem)
    for difference in check.differences:
        reported = f"{difference.figure} is {_shorten(difference.reported)} in the report"
        is_computed = difference.computed is not None
        by_records = f"{_shorten(difference.computed)} by the records" if is_computed else "is not computed here"
        print_message(f"{reported}, and {by_records}.")
    for reason in check.reasons:
        print_message(f"Reason why results or figures can differ: {reason}")
    if not check.is_head_known:
        print_message(
            "The given checksum is not in the hash chain: records were changed or deleted since it was printed."
        )
    if check.n_figures:
        equal = _count_differing(check.n_different) if check.n_different else "all are equal"
        print_message(f"{check.n_figures} figures of the report were computed again from the records: {equal}.")
    if check.exit_code == 0 and not has_head:
        print_message(
            "Whether the whole file was written anew, with other records, only a signature or a published checksum "
            f"shows. Its checksum: {check.head}"
        )


def _count_differing(n: int) -> str:
    return f"{n} differ{'s' if n == 1 else ''}"


def _shorten(value: object) -> str:
    text = "empty" if value is None else str(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"


def _print_derivation(derivation: Rederivation) -> None:
    """Print which results were derived again from the recorded answers, and which of them say something else."""
    check = derivation.check
    if check is None:
        print_message(f"Results were not derived again: {str(derivation.reason).rstrip('.')}.")
        return
    for name, reason in derivation.missing_probes.items():
        n_left_out = pluralize(check.left_out.get(name, 0), "result")
        print_message(f"{reason[0].upper()}{reason[1:]} Not derived again, and not checked: {n_left_out} of {name}.")
    for name, counts in check.by_probe.items():
        earlier = f"; {counts['earlier']} of other reader versions were not read" if counts.get("earlier") else ""
        print_message(
            f"{name}: {counts.get('read', 0)} answers were read again, and {counts.get('changed', 0)} say something "
            f"else than the stored result{earlier}."
        )
    for difference in check.differences:
        print_message(f"{difference.table} {difference.row} {difference.problem}.")
    if check.reread:
        print_message(
            f"Note: {sum(check.reread.values())} results were read by another version of a reader, and the present one "
            "reads them otherwise, so they are not checked. To see the new readings: auditor reread AUDIT --preview"
        )
    n_compared, n_changed = sum(check.compared.values()), sum(check.changed.values())
    if not n_compared:
        print_message("No result was derived again from the recorded answers.")
        return
    described = (
        f", of which the first {len(check.differences)} are listed" if n_changed > len(check.differences) else ""
    )
    print_message(
        f"{n_compared} results were derived again from the recorded answers: {_count_differing(n_changed)}{described}."
        if n_changed
        else f"{n_compared} results were derived again from the recorded answers, and all "
        f"{'others ' if check.reread else ''}are equal."
    )


def _print_verification(verification: AuditVerification, *, is_unchanged: bool) -> None:
    """Print planned and recorded results by stage and model, changed records, and the head of the hash chain.

    Args:
        is_unchanged: whether a head that was noted earlier is among the records: only then they are known to be
            unchanged, since a chain that was written anew is consistent, too.
    """
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
    for difference in verification.unknown:
        print_message(f"{difference.table} {difference.row} {difference.problem}.")
    if verification.unfounded:
        print_message(
            f"{verification.unfounded} usable answers or verdicts in the results have no recorded answer of a model "
            "behind them: do not rely on them."
        )
    for chain_break in verification.records.breaks:
        print_message(f"{chain_break.record_kind} {chain_break.row_id} {chain_break.problem}.")
    for name, n_rows in verification.uncovered.items():
        print_message(f"Not checked: {pluralize(n_rows, 'row')} of the table {name}.")
    for act in verification.records.acts:
        if act.get("act") == "cover":
            print_message(
                f"Covered since {str(act.get('at'))[:10]}: the rows of an earlier version that were not in the chain."
            )
    if verification.records.n_replaced:
        print_message(
            "Replaced or deleted by runs and commands, such as the stage of an audit: "
            f"{pluralize(verification.records.n_replaced, 'record')}."
        )
    if not verification.records.breaks:
        print_message(
            f"{verification.records.n_links} records are "
            f"{'consistent, and unchanged up to the given checksum' if is_unchanged else 'consistent'}. To check "
            f"later that they are unchanged, keep this checksum for --head: {verification.records.head}"
        )
