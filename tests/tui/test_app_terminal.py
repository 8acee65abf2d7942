"""The program in a real terminal: a complete review in tmux, killed midway."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.storage import rating_log
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.database import open_database
from auditor.storage.review_queue import ConflictQueue
from tests.support.review_audit import save_review_audit
from tests.support.tmux import Tmux

STARTS_EMPTY = True
PROGRAM = "import sys; from auditor.tui.app import run_review; run_review(sys.argv[1], 'moral', rater='ada')"


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    terminal = Tmux(tmp_path)
    yield terminal
    terminal.stop()


def test_a_review_killed_midway_loses_no_saved_decision(tmux: Tmux, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/audits.db"
    with open_database(url) as db:
        audit = save_review_audit(db, conflicts=5)
    command = shlex.join([sys.executable, "-c", PROGRAM, url])
    keys = "12341"

    def review(begin: int, end: int) -> None:
        tmux.wait_for(r"of 5 · by information")
        tmux.press("Space")
        for number in range(begin, end):
            tmux.wait_for("not decided by you")
            tmux.press(keys[number])
            tmux.wait_for("✓ saved: ")
            if number < end - 1:
                tmux.press("Space")

    tmux.start(command)
    review(0, 2)
    os.kill(tmux.pid(), signal.SIGKILL)
    tmux.stop()
    with open_database(url) as db:
        assert len(rating_log.load_entries(db, audit.id)) == 2, "what was shown as saved is there"

    tmux.start(command)
    tmux.wait_for(r"○ 3 open   ● 2 decided by people")
    review(2, 5)
    tmux.press("Escape")
    tmux.wait_for(r"● 5 decided by people")
    tmux.press("Escape")
    tmux.wait_for(r"✓ done")
    tmux.press("q")
    with open_database(url) as db:
        log = rating_log.load_entries(db, audit.id)
        counts = ConflictQueue(db, audit.id, "ada").count_by_status()
    assert len(log) == len({entry.key for entry in log}) == 5
    assert counts[ConflictStatus.PERSON] == 5


def test_a_kill_before_saving_leaves_the_conflict_undecided(tmux: Tmux, tmp_path: Path) -> None:
    """A decision that was not shown as saved is not stored."""
    url = f"sqlite:///{tmp_path}/audits.db"
    with open_database(url) as db:
        audit = save_review_audit(db, conflicts=1)
        tmux.start(shlex.join([sys.executable, "-c", PROGRAM, url]))
        tmux.wait_for("1 of 1")
        tmux.press("Enter")
        tmux.wait_for("not decided by you")
        with db.engine.begin() as lock_connection:
            lock_connection.exec_driver_sql("select 1")
            tmux.press("1")
            tmux.wait_for("… saving")
            os.kill(tmux.pid(), signal.SIGKILL)
        assert rating_log.load_entries(db, audit.id) == []


def test_a_decision_and_quit_in_one_write_end_the_review_with_the_decision_saved(tmux: Tmux, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/audits.db"
    with open_database(url) as db:
        audit = save_review_audit(db)
    tmux.start(f"{shlex.join([sys.executable, '-c', PROGRAM, url])}; echo exit code $?; cat")
    tmux.wait_for("1 of 20")
    tmux.press("Enter")
    tmux.wait_for("not decided by you")
    tmux.press("-l", "1q")
    tmux.wait_for("● 1 decided by people")
    tmux.press("-l", "qq")
    tmux.wait_for("exit code 0")
    with open_database(url) as db:
        assert len(rating_log.load_entries(db, audit.id)) == 1
