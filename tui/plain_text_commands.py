"""The commands of the plain-text interface for reviews, each with its help text."""

from __future__ import annotations

from collections.abc import Callable

from auditor.domain import Decision
from auditor.tui.actions import command_help
from auditor.tui.plain_text_loop import Commands
from auditor.tui.plain_text_review import PlainTextReview

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
"""Method and help text by command; `auditor.tui.actions` names these commands as `plain_text_command`."""
RENAMED_COMMANDS = {"disputed": "contested"}
"""New name of each command that earlier versions had under another name."""
