"""Describe failed requests in lines of text, for the command line and the terminal app."""

from __future__ import annotations

from auditor.redaction import redact
from auditor.reports.data.failures import FailureGroup
from auditor.reports.number_format import pluralize
from auditor.text_safety import escape_invisible, truncate_text

MAX_SHOWN_MESSAGE_CHARS = 200
"""Characters of a message that are shown unless all of it is asked for."""


def describe_failure(failure: FailureGroup, *, full: bool = False) -> list[str]:
    """Lines on failures of one kind: model, status and counts; the message; purposes and times; how to fix it.

    Args:
        failure: the failures.
        full: whether the whole message is shown.
    """
    message = failure.message if full else truncate_text(failure.message, MAX_SHOWN_MESSAGE_CHARS)
    counts = f"{pluralize(failure.requests, 'request')}, {pluralize(failure.unusable, 'call')} without a usable answer"
    first, last = (moment[:19].replace("T", " ") for moment in (failure.first_at, failure.last_at))
    return [
        f"{failure.name} ({failure.model}): {format_failure_status(failure)}, {counts}",
        escape_invisible(redact(message)),
        f"{', '.join(failure.purposes)}; {first}{f' to {last}' if last != first else ''} UTC",
        *([f"How to fix: {failure.how_to_fix}"] if failure.how_to_fix else []),
    ]


def summarize_failure(failure: FailureGroup) -> str:
    """A sentence on calls without a usable answer: their number, the model, the status, the message and the fix."""
    message = truncate_text(failure.message, MAX_SHOWN_MESSAGE_CHARS)
    return (
        f"{pluralize(failure.unusable, 'call')} to '{failure.name}' failed ({format_failure_status(failure)}): "
        f"{message}{'' if message[-1] in '.!?…' else '.'}"
        f"{f' How to fix: {failure.how_to_fix}' if failure.how_to_fix else ''}"
    )


def format_failure_status(failure: FailureGroup) -> str:
    """The HTTP status of failures, else their outcome in words."""
    return f"HTTP {failure.status}" if failure.status else failure.outcome.replace("_", " ")
