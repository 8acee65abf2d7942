"""Commands that change a recorded audit: `rename`, `delete`, `exclude` and `reread`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.console.options import JsonOption, RequiredAuditArgument, StorageOption
from auditor.console.output import can_ask, format_command, print_json, print_message, print_table
from auditor.domain.audit_records import AnswerSelection
from auditor.errors import UsageError
from auditor.reports.number_format import pluralize
from auditor.run import open_stored_audit
from auditor.run.audit_changes import delete_audit, exclude_answers, rename_audit, undo_exclusion
from auditor.run.rederivation import reread_audit, undo_reread
from auditor.storage.audits import count_contents
from auditor.storage.exclusions import load_exclusions

if TYPE_CHECKING:
    from auditor.domain.audit_records import Exclusion
    from auditor.storage.audits import AuditContents


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
    with open_stored_audit(audit, storage) as (db, stored_audit):
        return count_contents(db, stored_audit.id)


def _describe_deletion(audit: str, contents: AuditContents, storage: str | None) -> Iterator[str]:
    """Yield lines on what a deletion removes and what stays."""
    counts = (
        (contents.samples, "sample"),
        (contents.verdicts, "verdict"),
        *((n, noun) for noun, n in contents.probe_answers.items()),
        (contents.conflicts, "conflict"),
    )
    parts = ["the configuration", *(pluralize(n, noun) for n, noun in counts if n)]
    yield f"This deletes from '{audit}': {', '.join(parts)}, and all scores."
    yield "This keeps the recorded answers of models, which other audits share and a new run would use again."
    for n, noun, table in ((contents.decisions, "human decision", "ratings"), (contents.labels, "label", "labels")):
        if n:
            export = format_command("export", table, audit, storage=storage)
            yield (
                f"This keeps, but no longer shows, {pluralize(n, noun)}, because the hash chain covers them. "
                f"To save them first: {export}"
            )
    if contents.open_batches:
        yield (
            f"This loses {pluralize(contents.open_batches, 'batch', 'batches')} at the provider, whose answers were "
            "not collected yet. They are charged all the same."
        )


def exclude(
    audit: RequiredAuditArgument,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why the answers are invalid; the report quotes it.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="Only answers of this model.")] = None,
    country: Annotated[
        str | None, typer.Option("--country", metavar="NAME", help="Only answers about this country.")
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", metavar="NAME", help="Only answers about this topic, question, or item of a task."),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option("--sample", metavar="N", min=1, help="Only the direct answer with this number, from 1."),
    ] = None,
    probe: Annotated[
        str | None,
        typer.Option("--probe", metavar="NAME", help='Only answers of this probe; "direct" for direct answers.'),
    ] = None,
    undo: Annotated[
        int | None, typer.Option("--undo", metavar="ID", help="Undo this exclusion: its answers count again as before.")
    ] = None,
    is_list: Annotated[bool, typer.Option("--list", help="List the exclusions in force.")] = False,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Declare recorded answers invalid, or undo that.

    They leave all figures, with everything derived from them: judges' verdicts and conflicts, and comparisons that
    show them. In coverage, bounds and gates they stay planned, and are lost with the cause "excluded". Page one of the
    report says how many there are, and why. The declaration is part of the hash chain. It also holds for matching
    answers that are recorded later.

    Without --probe, answers of all probes match. Those of the probe semantic are about a question, which --topic names
    by its id. Those of the probe logic are about a country's topics, an item or a set of items.

    Example: auditor exclude my-audit --model gpt --country Japan --reason "Wrong system prompt."
    """
    selection = AnswerSelection(model, country, topic, None if sample is None else sample - 1, probe)
    if is_list:
        _list_exclusions(audit, storage, as_json=as_json)
    elif undo is not None:
        if selection != AnswerSelection():
            raise UsageError(
                "--undo takes no selection.", "Leave out --model, --country, --topic, --sample and --probe."
            )
        undo_exclusion(audit, undo, reason or "", storage=storage)
        print_message(f"Exclusion {undo} is undone: its answers count again.")
    elif reason is None:
        raise UsageError("no reason is given.", 'Say why the answers are invalid: --reason "…"')
    else:
        exclusion = exclude_answers(audit, selection, reason, storage=storage)
        if as_json:
            print_json(_to_json(exclusion))
        undo_command = format_command("exclude", audit, "--undo", str(exclusion.id), storage=storage)
        noun = "answer" if exclusion.n_answers == 1 else "answers"
        print_message(
            f"Excluded: {exclusion.n_answers} {noun}, with the verdicts and conflicts about them. To undo: "
            f"{undo_command}"
        )


def _list_exclusions(audit: str, storage: str | None, *, as_json: bool) -> None:
    """Print the exclusions in force."""
    with open_stored_audit(audit, storage) as (db, stored_audit):
        exclusions = load_exclusions(db, stored_audit.id)
    if as_json:
        print_json([_to_json(exclusion) for exclusion in exclusions])
    elif not exclusions:
        print_message(f"No answers of '{audit}' are excluded.")
    else:
        columns = ["id", "model", "country", "topic", "sample", "probe", "answers", "since", "reason"]
        print_table(
            columns,
            [
                [
                    exclusion.id,
                    *("all" if value is None else value for value in _to_words(exclusion.selection)),
                    exclusion.n_answers,
                    exclusion.excluded_at[:10],
                    exclusion.reason,
                ]
                for exclusion in exclusions
            ],
        )


def _to_words(selection: AnswerSelection) -> list[str | int | None]:
    """What a selection names, in the order of the table; samples are numbered from 1."""
    sample = None if selection.sample is None else selection.sample + 1
    return [selection.model, selection.country, selection.topic, sample, selection.probe]


def _to_json(exclusion: Exclusion) -> dict[str, object]:
    """An exclusion as printed with --json; samples are numbered from 0, as in the report's JSON."""
    return {
        "id": exclusion.id,
        **asdict(exclusion.selection),
        "reason": exclusion.reason,
        "excluded_at": exclusion.excluded_at,
        "answers": exclusion.n_answers,
    }


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
    if undo:
        n_restored = undo_reread(audit, storage=storage)
        print_message(f"Restored as before the last rereading of '{audit}': {pluralize(n_restored, 'result')}.")
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
        print_message(f"{table}: {pluralize(n_rows, 'result')} {'would change' if preview else 'changed'}.")
    if not rereading.readers and not rereading.n_by_table:
        others = "other results" if rereading.missing_probes else "results"
        print_message(f"All {others} of '{audit}' were read by the present readers: nothing changed.")
    elif not preview:
        print_message(f"To undo: {format_command('reread', audit, '--undo', storage=storage)}")
