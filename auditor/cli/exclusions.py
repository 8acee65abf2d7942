"""The command `exclude`: declare recorded answers invalid, and undo that."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.console.options import JsonOption, RequiredAuditArgument, StorageOption
from auditor.console.output import format_command, print_json, print_message, print_table

if TYPE_CHECKING:
    from auditor.domain.exclusions import AnswerSelection, Exclusion


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
    from auditor.domain.exclusions import AnswerSelection
    from auditor.errors import UsageError
    from auditor.run.exclusions import exclude_answers, undo_exclusion

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
    from auditor.run import open_stored_audit
    from auditor.storage.exclusions import load_exclusions

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
