"""Commands of the plain-text interface for reviews, with their help."""

from __future__ import annotations

from collections.abc import Callable

from auditor.domain import Decision
from auditor.errors import AuditorError, did_you_mean
from auditor.tui.formatting import to_single_line
from auditor.tui.plain_text_review import PlainTextReview


def run_command(review: PlainTextReview, command_line: str) -> bool:
    """Run one command line; return False if it ends the review. Errors are printed, not raised."""
    command, _, argument = command_line.strip().partition(" ")
    if not command:
        return True
    if command in ("quit", "q", "exit"):
        return False
    if command not in COMMANDS:
        review.write_line(
            f"Unknown command '{to_single_line(command)}'. {did_you_mean(command, COMMANDS, 'Try help.')}"
        )
        return True
    try:
        # The first of the pair is the method, the second its help text.
        COMMANDS[command][0](review, argument.strip())
    except AuditorError as error:
        review.write_line(to_single_line(str(error)))
    return True


def _show_help(review: PlainTextReview, argument: str) -> None:
    review.write_lines(f"{command}: {text}" for command, (_, text) in COMMANDS.items())


def _make_decide_command(decision: Decision) -> tuple[Command, str]:
    """Build the command that makes a decision, with its help text."""
    example = f", as in: {decision} -0.4" if decision.needs_score else "."
    help_text = f"{decision.spec.help[0].lower()}{decision.spec.help[1:]}{example}"
    return lambda review, argument: review.run_decision(decision, argument), help_text


Command = Callable[[PlainTextReview, str], None]
COMMANDS: dict[str, tuple[Command, str]] = {
    "audits": (PlainTextReview.list_audits, "list the audits."),
    "open": (
        PlainTextReview.open_selection,
        "open an audit by its number or name, or a conflict by its number in the list.",
    ),
    "list": (PlainTextReview.list_conflicts, "list the conflicts, 20 at a time."),
    "next": (PlainTextReview.show_next, "show the undecided conflict that teaches most."),
    "show": (PlainTextReview.show_current, "show the open conflict again."),
    **{decision.value: _make_decide_command(decision) for decision in Decision},
    "note": (PlainTextReview.save_note, "write a note on the conflict, as in: note translation looks wrong"),
    "flag": (PlainTextReview.toggle_flag, "mark the conflict for attention, or take the mark off."),
    "reveal": (PlainTextReview.reveal, "show what is hidden before deciding; it is logged."),
    "undo": (PlainTextReview.undo, "take back your last decision, note or flag."),
    "redo": (PlainTextReview.redo, "bring back what was taken back."),
    "history": (PlainTextReview.show_history, "all that you did to the open conflict."),
    "sample": (PlainTextReview.show_sample, "read the next sample of both sides, or the one of a number."),
    "filter": (PlainTextReview.apply_filter, "show only some, as in: filter kind:binary gap:>0.5 is:todo divorce"),
    "clear": (lambda review, argument: review.apply_filter(""), "take the filter off."),
    "disputed": (
        lambda review, argument: review.apply_filter("state:disputed"),
        "show the conflicts on which people disagree.",
    ),
    "agreement": (PlainTextReview.show_agreement, "how raters agree, and judges with people."),
    "errors": (PlainTextReview.show_errors, "why requests failed, and how to fix it."),
    "sort": (PlainTextReview.change_sort, "change the order, as in: sort gap"),
    "reverse": (PlainTextReview.reverse_sort, "turn the order round."),
    "filters": (
        PlainTextReview.manage_filters,
        "list saved filters; filters NAME uses one; filters save NAME; filters delete NAME.",
    ),
    "help": (_show_help, "this list."),
    "quit": (lambda review, argument: None, "leave; everything is saved already."),
}
"""Method and help text by command; `auditor.tui.actions` names these commands as `plain_text_command`."""
