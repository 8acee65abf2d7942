"""Time the review app at a real terminal: from start to the first screen, and from a key to its answer.

    python benchmarks/bench_tui.py [--models 20] [--ratings 2000] [--turns 7] [--width 120] [--height 40]

Makes a database of about 100,000 conflicts (10,000 with 8 models), of which some are decided, starts the program at a
pseudo-terminal and prints JSON. `beside_textual_s` is the time from the start of the process to the first conflict on
the screen, less that of a process that only imports textual: of the shortest of the turns, and as their median. Each
turn makes ten decisions; `decision_to_next_ms` is the time from each until the next conflict is on the screen, of all
turns. In the last turn, for each key: `answer`, until the first output after it, and `rest`, until the last output
before 60 ms of silence. Times of keys and decisions in milliseconds as median, 95th percentile and most.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))  # for `tests`; auditor is the installed one

from auditor.domain import Conflict, Decision, Rating
from auditor.storage import results
from auditor.storage.audits import Audit
from auditor.storage.database import Database, open_database
from tests.support.stored_rows import add_rating
from tests.support.synthetic_audit import populate

QUIET_S = 0.06
KEYS = {
    "down": ["j"] * 60,
    "page down": ["\x1b[6~"] * 20,
    "last and first": ["G", "g"] * 8,
    "open and leave": ["\r", "q"] * 8,
    "into one": ["\r"],
    "next in the queue": ["]"] * 20,
    "undo and redo": ["u", "r"] * 8,
}
N_DECISIONS, DECISION_PAUSE_S = 10, 0.6
"""A decision key acts only when the conflict has been on the screen for a while."""
FIRST_CONFLICT = b"1 of"
"""Beside the list's first conflicts."""
PROGRAM = """
import sys, time
from auditor.tui.app import run_review
open(sys.argv[2], "w").write(str(time.monotonic()))
run_review(sys.argv[1], "bench", rater="ada")
"""


def make_database(db: Database, models: int, ratings: int) -> int:
    """Store an audit with some ratings; return the number of its conflicts."""
    audit = populate(db, models=models, countries=62, topics=23, samples=1, judges=1, name="bench")
    conflicts = results.load_conflicts(db, audit.id)
    for index in range(ratings):
        add_decision(db, audit, conflicts[index % len(conflicts)], ("ada", "grace")[index % 2])
    return len(conflicts)


def add_decision(db: Database, audit: Audit, conflict: Conflict, rater: str) -> None:
    """Store one rating of a conflict."""
    now = datetime.now(UTC)
    sides = (conflict.left, conflict.right, conflict.score_left, conflict.score_right)
    add_rating(db, audit.id, Rating(conflict.cell, *sides, rater, Decision.LEFT, now))


class Terminal:
    """A program at a pseudo-terminal."""

    def __init__(self, url: str, folder: Path, width: int, height: int) -> None:
        self.started = time.monotonic()
        self.matched = b""
        self.imported = folder / "imported"
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", AUDITOR_REVIEW_DIR=str(folder))
            os.execv(sys.executable, [sys.executable, "-c", PROGRAM, url, str(self.imported)])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def wait(
        self, expected: bytes = b"", *, unlike: bytes | None = None, limit_s: float = 30
    ) -> tuple[float, float, float]:
        """Read output until it matches, and then until `QUIET_S` of silence.

        Args:
            expected: regular expression that the output must match.
            unlike: a match that does not count.
            limit_s: maximum time in seconds.

        Returns:
            The times of the first and the last output, and of the first that matched `expected`.

        Raises:
            TimeoutError: the output did not contain `expected` within `limit_s` seconds.
        """
        first_at, last_at, expected_at, output = 0.0, 0.0, 0.0, b""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if not select.select([self.fd], [], [], QUIET_S)[0]:
                if expected_at:
                    return first_at, last_at, expected_at
                continue
            output += os.read(self.fd, 1 << 20)
            last_at = time.monotonic()
            first_at = first_at or last_at
            matches = [match for match in re.findall(expected, output) if match != unlike]
            if matches and not expected_at:
                self.matched, expected_at = matches[-1], last_at
        raise TimeoutError(f"the program did not show {expected!r}: {output[-500:]!r}")

    def measure_start(self) -> dict[str, float]:
        """Wait for the first conflict; seconds from the start of the process, and from the end of its imports."""
        shown_at = self.wait(FIRST_CONFLICT)[2]
        imported_at = float(self.imported.read_text())
        return {"from_start_s": shown_at - self.started, "first_screen_s": shown_at - imported_at}

    def press(self, key: str) -> tuple[float, float]:
        """Seconds until the first and until the last output after a key."""
        sent_at = time.monotonic()
        os.write(self.fd, key.encode())
        first_at, last_at, _ = self.wait()
        return first_at - sent_at, last_at - sent_at

    def decide(self, position: bytes) -> float:
        """Seconds from a decision until the title bar shows another `position` in the list."""
        time.sleep(DECISION_PAUSE_S)
        while select.select([self.fd], [], [], 0)[0]:
            os.read(self.fd, 1 << 20)
        sent_at = time.monotonic()
        os.write(self.fd, b"1")
        return self.wait(position, unlike=self.matched)[2] - sent_at

    def decide_many(self, conflicts: int) -> list[float]:
        """Open the first conflict and decide; seconds of each decision."""
        position = rf"([\d,]+) of {conflicts:,}".encode()
        os.write(self.fd, b"\r")
        self.wait(position)
        return [self.decide(position) for _ in range(N_DECISIONS)]

    def stop(self) -> None:
        os.write(self.fd, b"\x11")
        while select.select([self.fd], [], [], 5)[0]:
            try:
                os.read(self.fd, 1 << 20)
            except OSError:
                break
        os.waitpid(self.pid, 0)


def summarize_times(seconds: list[float]) -> dict[str, float]:
    """Median, 95th percentile and most, in milliseconds."""
    ordered = sorted(1000 * delay for delay in seconds)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    return {"median": round(statistics.median(ordered), 1), "p95": round(p95, 1), "most": round(ordered[-1], 1)}


def summarize_starts(starts: list[dict[str, float]]) -> dict[str, Any]:
    """Minimum and median of each time of the starts, in seconds, and all of them."""
    figures: dict[str, Any] = {}
    for name in starts[0]:
        seconds = [start[name] for start in starts]
        figures |= {name: round(min(seconds), 3), f"median_{name}": round(statistics.median(seconds), 3)}
    figures["beside_textual_s"] = round(figures["from_start_s"] - figures["import_textual_s"], 3)
    differences = [start["from_start_s"] - start["import_textual_s"] for start in starts]
    return figures | {"median_beside_textual_s": round(statistics.median(differences), 3), "turns": starts}


def measure_import() -> float:
    """Seconds of a process that only imports textual."""
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", "import textual.app, textual.widgets"], check=True)
    return time.monotonic() - start


def measure_keys(terminal: Terminal) -> dict[str, dict[str, dict[str, float]]]:
    """Times of each action's keys."""
    delays_by_action = {}
    for action, key_sequence in KEYS.items():
        delays = [terminal.press(key) for key in key_sequence]
        delays_by_action[action] = {
            "answer": summarize_times([first_delay for first_delay, _ in delays]),
            "rest": summarize_times([last_delay for _, last_delay in delays]),
        }
    return delays_by_action


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--ratings", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=7, help="starts of the program")
    parser.add_argument("--width", type=int, default=120)
    parser.add_argument("--height", type=int, default=40)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        url = f"sqlite:///{folder}/audits.db"
        with open_database(url) as db:
            conflicts = make_database(db, arguments.models, arguments.ratings)
        starts, decisions = [], list[float]()
        for turn in range(arguments.turns):
            import_s = measure_import()
            terminal = Terminal(url, folder, arguments.width, arguments.height)
            starts.append(terminal.measure_start() | {"import_textual_s": import_s})
            terminal.wait(f"of {conflicts:,}".encode())
            if turn == arguments.turns - 1:
                delays_by_action = measure_keys(terminal)
            decisions += terminal.decide_many(conflicts)
            terminal.stop()
    figures = {
        "conflicts": conflicts,
        "ratings": arguments.ratings,
        **summarize_starts(starts),
        "decision_to_next_ms": summarize_times(decisions),
        "keys_ms": delays_by_action,
        "load": os.getloadavg()[0],
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
