"""The app's twin in plain text: one command a line, answers as sentences. For screen readers, pipes and scripts.

There is no box, no colour and no cursor; every action of the screen that is not about the screen has a word here.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO

from auditor.review.completion import Afterwards, OnDecided
from auditor.review.session import SECOND_SHARE, Desk
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.tui.formatting import line
from auditor.tui.plain_text_commands import Session
from auditor.tui.settings import load_settings


def needs_plain() -> bool:
    """Whether there is no terminal that a full screen could be shown on."""
    return not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "dumb") == "dumb"


def run_plain(
    storage_url: str,
    audit: str | None = None,
    *,
    rater: str,
    blind: bool = True,
    second_share: float = SECOND_SHARE,
    on_decided: OnDecided | None = None,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
) -> None:
    """Review in plain text, reading commands from `stdin` until it ends or says quit.

    Args and Raises: as `auditor.tui.app.run_review`.
    """
    stdin, stdout = stdin or sys.stdin, stdout or sys.stdout

    def say(text: str) -> None:
        encoding = stdout.encoding or "utf-8"
        print(text.encode(encoding, "backslashreplace").decode(encoding), file=stdout, flush=True)

    with open_database(storage_url, create=False) as db:

        def make_desk(name: str) -> Desk:
            found = audits.get(db, name)
            return Desk(db, found, rater, blind=blind, second_share=second_share)

        afterwards = Afterwards(on_decided)
        session = Session(db, make_desk, load_settings(), say, afterwards)
        say(f"You rate as {line(rater)}{', blind' if blind else ', open book'}. 'help' lists the commands.")
        if audit is None:
            session.audits("")
        else:
            session.enter(audit)
        while (command := stdin.readline()) and session.do(command):
            pass
        afterwards.leave(session.desks.values())
