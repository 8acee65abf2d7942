"""Three raters in three terminals review one audit on PostgreSQL at once: nothing is lost, no screen is stale.

`AUDITOR_TEST_CONFLICTS=500` runs it with more conflicts than the default.
"""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from auditor.domain import RatingAction
from auditor.storage import hash_chain, rating_log
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.database import open_database
from auditor.storage.review_queue import ConflictQueue
from tests.support.postgres_server import Postgres
from tests.support.review_audit import COUNTRIES, save_review_audit
from tests.support.tmux import Tmux

RATERS = ("ada", "grace", "mary")
N_CONFLICTS = int(os.environ.get("AUDITOR_TEST_CONFLICTS", "12"))
LIMIT_S = 120 + 4 * N_CONFLICTS
PROGRAM = (
    "import sys; from auditor.tui.app import run_review; "
    "run_review(sys.argv[1], 'moral', rater=sys.argv[2], second_rater_share=0.0)"
)
NOTHING_LEFT = "No conflict of this list is left"


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[dict[str, Tmux]]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    started = {}
    for rater in RATERS:
        (tmp_path / rater).mkdir()
        started[rater] = Tmux(tmp_path / rater, settings="open_next = true")
    yield started
    for terminal in started.values():
        terminal.stop()


def decide_all(terminal: Tmux) -> None:
    terminal.wait_for(f"of {N_CONFLICTS} · by information")
    terminal.press("Space")
    deadline = time.monotonic() + LIMIT_S
    for key in itertools.cycle("1234"):
        if NOTHING_LEFT in terminal.text():
            return
        assert time.monotonic() < deadline, terminal.text()
        terminal.press(key)
        time.sleep(0.1)


def test_three_raters_at_once_lose_nothing_and_see_the_same(postgres: Postgres, terminals: dict[str, Tmux]) -> None:
    url = postgres.url(postgres.database())
    topics = [f"topic {i}" for i in range(-(-N_CONFLICTS // len(COUNTRIES)))]
    with open_database(url) as db:
        audit = save_review_audit(db, conflicts=N_CONFLICTS, topics=topics, samples=1)
    for rater, terminal in terminals.items():
        terminal.start(shlex.join([sys.executable, "-c", PROGRAM, url, rater]))
    with ThreadPoolExecutor(len(RATERS)) as executor:
        list(executor.map(decide_all, terminals.values()))

    with open_database(url) as db:
        entries = rating_log.load_entries(db, audit.id)
        counts = ConflictQueue(db, audit.id, "ada").count_by_status()
        assert not hash_chain.verify_chain(db).breaks
    decided = Counter(entry.rating.rater for entry in entries if entry.rating.act is RatingAction.DECIDE)
    by_conflict = Counter(entry.key for entry in entries)
    print(f"{len(entries)} decisions on {N_CONFLICTS} conflicts, by rater {dict(decided)}")
    assert counts[ConflictStatus.OPEN] == 0
    assert len(by_conflict) == N_CONFLICTS
    n_contested = counts[ConflictStatus.DISPUTED]
    for rater, terminal in terminals.items():
        terminal.press("Escape")
        n_own = len({entry.key for entry in entries if entry.rating.rater == rater})
        terminal.wait_for(rf"\({n_own} by you\)")
        terminal.wait_for(f"● {N_CONFLICTS - n_contested} decided by people")
