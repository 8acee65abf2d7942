"""Time the review app at a real terminal: from start to the first screen, and from a key to its answer.

    python benchmarks/bench_tui.py [--ratings 2000] [--width 120] [--height 40]

Makes a database of more than 10,000 conflicts, of which some are decided, starts the program at a pseudo-terminal and
prints JSON. `first_screen` is counted from the opening of the database in the program; `from_start` is all of it, the
interpreter and imports included. For each key: `answer`, until the first output after it, and `rest`, until the last
output before 60 ms of silence, both in milliseconds as median, 95th percentile and most.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import select
import statistics
import struct
import sys
import tempfile
import termios
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from auditor.domain import Conflict, Decision, Rating
from auditor.storage import results
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from tests.support.synthetic_audit import populate

QUIET_S = 0.06
KEYS = {
    "down": ["j"] * 60,
    "page down": ["\x1b[6~"] * 20,
    "last and first": ["G", "g"] * 8,
    "open and leave": ["\r", "q"] * 8,
    "into one": ["\r"],
    "next in the queue": ["]"] * 20,
    "decide": ["1", "2", "3"] * 5,
    "decide and next": ["1", " "] * 15,
    "undo and redo": ["u", "r"] * 8,
}
PROGRAM = """
import sys, time
from auditor.tui.app import run_review
open(sys.argv[2], "w").write(str(time.monotonic()))
run_review(sys.argv[1], "bench", rater="ada")
"""


def make(db: Database, ratings: int) -> int:
    """An audit of more than 10,000 conflicts; returns how many."""
    audit = populate(db, models=8, countries=60, topics=20, samples=1, name="bench")
    conflicts = results.load_conflicts(db, audit.id)
    for number in range(ratings):
        rate(db, audit, conflicts[number % len(conflicts)], ("ada", "grace")[number % 2])
    return len(conflicts)


def rate(db: Database, audit: Audit, conflict: Conflict, rater: str) -> None:
    """One more decision."""
    now = datetime.now(UTC)
    sides = (conflict.left, conflict.right, conflict.score_left, conflict.score_right)
    results.add_rating(db, audit.id, Rating(conflict.cell, *sides, rater, Decision.LEFT, now))


class Terminal:
    """A program at a pseudo-terminal."""

    def __init__(self, url: str, folder: Path, width: int, height: int) -> None:
        self.started = time.monotonic()
        self.imported = folder / "imported"
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", AUDITOR_REVIEW_DIR=str(folder))
            os.execv(sys.executable, [sys.executable, "-c", PROGRAM, url, str(self.imported)])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def wait(self, words: bytes = b"", limit_s: float = 30) -> tuple[float, float]:
        """When the first, and the last, output came of what is now to come, up to silence; it must hold the words."""
        first, last, seen = 0.0, 0.0, b""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if not select.select([self.fd], [], [], QUIET_S)[0]:
                if first and words in seen:
                    return first, last
                continue
            seen += os.read(self.fd, 1 << 20)
            last = time.monotonic()
            first = first or last
        raise TimeoutError(f"the program did not show {words!r}: {seen[-500:]!r}")

    def press(self, key: str) -> tuple[float, float]:
        """Seconds until the first and until the last output after a key."""
        sent = time.monotonic()
        os.write(self.fd, key.encode())
        first, last = self.wait()
        return first - sent, last - sent

    def stop(self) -> None:
        os.write(self.fd, b"\x11")
        while select.select([self.fd], [], [], 5)[0]:
            try:
                os.read(self.fd, 1 << 20)
            except OSError:
                break
        os.waitpid(self.pid, 0)


def figures(seconds: list[float]) -> dict[str, float]:
    """Median, 95th percentile and most, in milliseconds."""
    ordered = sorted(1000 * s for s in seconds)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    return {"median": round(statistics.median(ordered), 1), "p95": round(p95, 1), "most": round(ordered[-1], 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=2000)
    parser.add_argument("--width", type=int, default=120)
    parser.add_argument("--height", type=int, default=40)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = f"sqlite:///{folder}/audits.db"
        with open_database(url) as db:
            conflicts = make(db, arguments.ratings)
        terminal = Terminal(url, folder, arguments.width, arguments.height)
        _, shown = terminal.wait(f"1 of {conflicts:,}".encode())
        imported = float(terminal.imported.read_text())
        keys = {}
        for what, pressed in KEYS.items():
            times = [terminal.press(key) for key in pressed]
            keys[what] = {"answer": figures([a for a, _ in times]), "rest": figures([b for _, b in times])}
        terminal.stop()
    found = {
        "conflicts": conflicts,
        "ratings": arguments.ratings,
        "first_screen_s": round(shown - imported, 3),
        "from_start_s": round(shown - terminal.started, 3),
        "keys_ms": keys,
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
