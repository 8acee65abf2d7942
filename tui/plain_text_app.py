"""Plain-text interface for reviews: one command per line, output as sentences. For screen readers, pipes and scripts.

It prints no boxes, colours or cursor movements. All actions of the app that do not concern the screen have a command.
"""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO

from auditor.domain.labels import LabelKind
from auditor.review.completion import CompletionNotifier, OnDecided
from auditor.review.conflict_list import DEFAULT_SECOND_RATER_SHARE
from auditor.review.label_queue import LabelQueue, open_labelling_session
from auditor.review.session import ReviewSession
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.tui.formatting import to_single_line
from auditor.tui.plain_text_commands import COMMANDS, RENAMED_COMMANDS
from auditor.tui.plain_text_labelling import LABEL_COMMANDS, PlainTextLabelling
from auditor.tui.plain_text_loop import make_line_writer, run_commands
from auditor.tui.plain_text_review import PlainTextReview
from auditor.tui.settings import load_review_settings


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

    Args and Raises: as for `auditor.tui.launch.run_review`.
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
        review.write_lines(map(to_single_line, settings.notices))
        if audit is None:
            review.list_audits("")
        else:
            review.open_audit(audit)
        run_commands(review, stdin or sys.stdin, COMMANDS, RENAMED_COMMANDS)
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

    Args and Raises: as for `auditor.tui.launch.run_labelling`.
    """
    write_line = make_line_writer(stdout or sys.stdout)
    settings = load_review_settings()
    with open_database(storage_url, create=False) as db:
        queue = LabelQueue(open_labelling_session(db, audit, rater, kind, **options))
        labelling = PlainTextLabelling(queue, settings, write_line)
        write_line(f"You label as {to_single_line(rater)}. 'help' lists the commands.")
        for notice in settings.notices:
            write_line(to_single_line(notice))
        labelling.show_progress("")
        labelling.show_next("")
        run_commands(labelling, stdin or sys.stdin, LABEL_COMMANDS)
