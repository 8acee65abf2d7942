"""Plain-text interface for reviews: one command per line, output as sentences."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from auditor.domain import Decision
from auditor.domain.labels import LabelKind
from auditor.review.conflict_list import DEFAULT_SECOND_RATER_SHARE
from auditor.review.labelling import LabelQueue, open_labelling_session
from auditor.review.session import CompletionNotifier, OnDecided, ReviewSession
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.tui.formatting import describe_unsaved_drafts, to_single_line
from auditor.tui.key_bindings import command_help
from auditor.tui.plain_text import Commands, make_line_writer, run_commands
from auditor.tui.plain_text_labelling import LABEL_COMMANDS, PlainTextLabelling
from auditor.tui.plain_text_review import PlainTextReview
from auditor.tui.settings import load_review_settings

Command = Callable[[PlainTextReview, str], None]


def _make_decide_command(decision: Decision) -> tuple[Command, str]:
    """Build the command that makes a decision, with its help text."""
    example = f", as in: {decision} -0.4" if decision.needs_score else "."
    help_text = f"{decision.spec.help[0].lower()}{decision.spec.help[1:]}{example}"
    return lambda review, argument: review.run_decision(decision, argument), help_text


COMMANDS: Commands[PlainTextReview] = {
    "audits": (PlainTextReview.list_audits, "list the audits."),
    "open": (
        PlainTextReview.open_selection,
        "open an audit by its number or name, or a conflict by its number in the list.",
    ),
    "list": (PlainTextReview.list_conflicts, "list the conflicts, 20 at a time."),
    "todo": (PlainTextReview.show_progress, "show what is done and left, your pace and the time to go."),
    "next": (PlainTextReview.show_next, command_help("next")),
    "show": (PlainTextReview.show_current, "show the open conflict again."),
    **{decision.value: _make_decide_command(decision) for decision in Decision},
    "cell": (PlainTextReview.preview_cell, "show what a custom score settles in the whole cell, as in: cell -0.4"),
    "confirm": (PlainTextReview.confirm_cell, "save what 'cell' showed."),
    "note": (PlainTextReview.save_note, "write a note on the conflict, as in: note translation looks wrong"),
    "flag": (PlainTextReview.toggle_flag, "flag the conflict, or remove the flag."),
    "reveal": (PlainTextReview.reveal, command_help("reveal")),
    "undo": (PlainTextReview.undo, command_help("undo")),
    "redo": (PlainTextReview.redo, command_help("redo")),
    "history": (PlainTextReview.show_history, "show your actions on the open conflict."),
    "sample": (PlainTextReview.show_sample, "read the next sample of both sides, or the one with a number."),
    "open-next": (
        PlainTextReview.toggle_open_next,
        "turn automatic opening of the next conflict on or off, as in: open-next off",
    ),
    "filter": (PlainTextReview.apply_filter, "filter the list, as in: filter kind:binary gap:>0.5 is:todo divorce"),
    "clear": (lambda review, argument: review.apply_filter(""), "clear the filter."),
    "contested": (
        lambda review, argument: review.apply_filter("state:contested"),
        "list only the contested conflicts.",
    ),
    "agreement": (PlainTextReview.show_agreement, command_help("agreement")),
    "errors": (PlainTextReview.show_errors, command_help("errors")),
    "sort": (PlainTextReview.change_sort, "change the sort order, as in: sort gap"),
    "reverse": (PlainTextReview.reverse_sort, command_help("reverse")),
    "filters": (
        PlainTextReview.manage_filters,
        "list saved filters; filters NAME uses one; filters save NAME; filters delete NAME.",
    ),
}
"""Method and help text by command; `auditor.tui.key_bindings` names these commands as `plain_text_command`."""


def needs_plain_text() -> bool:
    """Whether stdin or stdout is no terminal, or the terminal cannot show a full screen (TERM is `dumb` or unset).

    Not if another driver than the terminal's draws the screen, as in a browser.
    """
    if os.environ.get("TEXTUAL_DRIVER"):
        return False
    return not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "dumb") == "dumb"


def run_plain_text_review(
    storage_url: str,
    audit: str | None = None,
    *,
    rater: str,
    blind: bool = True,
    second_rater_share: float = DEFAULT_SECOND_RATER_SHARE,
    on_decided: OnDecided | None = None,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
) -> None:
    """Review in plain text, with commands from `stdin` until it ends or the command `quit`.

    Args and Raises: as for `auditor.tui.app.run_review`.
    """
    write_line = make_line_writer(stdout or sys.stdout)
    with open_database(storage_url, create=False) as db:

        def create_session(name: str) -> ReviewSession:
            audit_record = audits.get_audit(db, name)
            return ReviewSession(db, audit_record, rater, blind=blind, second_rater_share=second_rater_share)

        completion_notifier = CompletionNotifier(on_decided)
        settings = load_review_settings()
        review = PlainTextReview(db, create_session, settings, write_line, completion_notifier)
        write_line(
            f"You rate as {to_single_line(rater)}{', blind' if blind else ', open book'}. 'help' lists the commands."
        )
        if audit is None:
            review.list_audits("")
        else:
            review.open_audit(audit)
        run_commands(review, stdin or sys.stdin, COMMANDS)
        completion_notifier.notify_remaining(review.sessions.values())


def run_plain_text_labelling(
    storage_url: str,
    audit: str,
    *,
    rater: str,
    kind: LabelKind = LabelKind.TRACE,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
    **options: Any,
) -> None:
    """Label a sample in plain text, with commands from `stdin` until it ends or the command `quit`.

    Args and Raises: as for `auditor.tui.app.run_labelling`.
    """
    write_line = make_line_writer(stdout or sys.stdout)
    settings = load_review_settings()
    with open_database(storage_url, create=False) as db:
        queue = LabelQueue(open_labelling_session(db, audit, rater, kind, **options))
        labelling = PlainTextLabelling(queue, settings, write_line)
        write_line(f"You label as {to_single_line(queue.session.rater)}. 'help' lists the commands.")
        labelling.show_progress("")
        labelling.show_next("")
        run_commands(labelling, stdin or sys.stdin, LABEL_COMMANDS)
        if drafts := queue.list_unsaved_drafts():
            write_line(describe_unsaved_drafts(len(drafts)))
