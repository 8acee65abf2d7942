"""`auditor review --serve` in a real browser: the command as people start it, with keys, with a mouse, and stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from auditor.storage import audits, rating_log
from auditor.storage.database import open_database
from auditor.tui.settings import SETTINGS_FOLDER_VARIABLE
from tests.support.chromium import Chromium, require_browser
from tests.support.review_audit import save_review_audit

pytest.importorskip("textual_serve")
MISSING = require_browser(needs_axe=False)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=str(MISSING))

WAIT_S = 90.0
"""Upper bound of every wait; what the tests wait for comes sooner."""
KEY_WAIT_S = 3.0
"""Time after which a decision is made again: one that comes too soon after the next conflict has opened is ignored."""
TABLET_WIDTH = 768
RECORD_SCRIPT = """(() => {
  const Original = WebSocket;
  window.received = '';
  const decoder = new TextDecoder();
  window.WebSocket = class extends Original {
    constructor(url) {
      super(url);
      const size = new URL(url).searchParams;
      window.terminalSize = [+size.get('width'), +size.get('height')];
      this.addEventListener('message', event => {
        if (typeof event.data !== 'string') window.received += decoder.decode(event.data, {stream: true});
      });
    }
    send(text) {
      const [kind, value] = JSON.parse(text);
      if (kind === 'resize') window.terminalSize = [value.width, value.height];
      super.send(text);
    }
  };
})()"""
"""Records what the terminal in the page is sent, since it draws on a canvas, and its size."""
ESCAPE_SEQUENCES = r"/\x1b\[[0-9;?]*[a-zA-Z]/g"


@dataclass
class Review:
    """The command, which serves, and its database."""

    process: subprocess.Popen[str]
    address: str
    storage: str
    known_ids: set[str] = field(default_factory=set)

    @property
    def n_decided(self) -> int:
        """Conflicts with a decision in the database."""
        with open_database(self.storage, create=False) as db:
            entries = rating_log.load_entries(db, audits.get_audit(db, "moral").id)
        return len({entry.key for entry in entries})

    def session_ids(self) -> set[int]:
        """Ids of the processes of visitors that run: processes that the command is or was the parent of."""
        running = set()
        for entry in Path("/proc").iterdir():
            try:
                state, parent, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(parent) == self.process.pid:
                self.known_ids.add(entry.name)
            if entry.name in self.known_ids and state != "Z":
                running.add(int(entry.name))
        return running


@pytest.fixture
def review(tmp_path: Path) -> Iterator[Review]:
    storage = f"sqlite:///{tmp_path}/audits.db"
    with open_database(storage) as db:
        save_review_audit(db)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "auditor", "review", "moral", "--rater", "ada", "--storage", storage]
    process = subprocess.Popen(
        [*command, "--serve", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {SETTINGS_FOLDER_VARIABLE: str(tmp_path / "settings")},
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    match = re.search(r"as ada in a browser: (http://127\.0\.0\.1:\d+/\?token=\S+)", line)
    assert match, line + process.stderr.read()
    served = Review(process, match[1], storage)
    yield served
    process.kill()
    process.communicate()
    for pid in served.session_ids():
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Chromium]:
    with Chromium(tmp_path / "chromium") as chromium:
        chromium.call("Page.enable")
        chromium.call("Page.addScriptToEvaluateOnNewDocument", source=RECORD_SCRIPT)
        chromium.record_requests()
        yield chromium


def wait_until(condition: Callable[[], bool], limit_s: float = WAIT_S) -> bool:
    """Whether a condition becomes true within the limit."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def wait_for_text(browser: Chromium, text: str) -> None:
    """Wait until the terminal in the page has been sent a text."""
    browser.wait_for(
        f"window.received.replace({ESCAPE_SEQUENCES}, '').includes({json.dumps(text)})",
        WAIT_S,
    )


def click_cell(browser: Chromium, column: int, row: int, n_clicks: int = 1) -> None:
    """Click a cell of the terminal; a negative row counts from the last."""
    x, y = browser.evaluate(f"""(() => {{
      const box = document.querySelector('.xterm-screen').getBoundingClientRect();
      const [columns, rows] = window.terminalSize;
      const row = {row} < 0 ? rows + {row} : {row};
      return [box.left + ({column} + 0.5) * box.width / columns, box.top + (row + 0.5) * box.height / rows];
    }})()""")
    browser.click(x, y, n_clicks)


def decide(review: Review, n_decisions: int, choose: Callable[[int], None]) -> None:
    """Make decisions, each once the one before is in the database."""
    target = review.n_decided + n_decisions
    number = 0
    deadline = time.monotonic() + WAIT_S
    while (before := review.n_decided) < target:
        assert time.monotonic() < deadline, f"{before} decisions are in the database"
        choose(number)
        number += wait_until(lambda: review.n_decided > before, KEY_WAIT_S)


def sessions_end(review: Review) -> bool:
    return wait_until(lambda: not review.session_ids())


def test_ten_conflicts_are_decided_by_keys_and_by_mouse(review: Review, browser: Chromium) -> None:
    browser.open(review.address, 1280)
    wait_for_text(browser, "1 of 20")
    assert urlsplit(browser.evaluate("location.href")).query == "", "the token is in no address that is shown"
    assert browser.evaluate("document.cookie") == ""
    browser.type("\r")
    wait_for_text(browser, "not decided by you")
    decide(review, 5, lambda number: browser.type("12345"[number % 4]))
    columns = {"1 left": 2, "2 right": 10, "3 both": 19}
    decide(review, 5, lambda number: click_cell(browser, list(columns.values())[number % 3], -1))
    assert review.n_decided == 10

    browser.call("Page.reload")
    browser.wait_for("document.body.classList.contains('-first-byte')", WAIT_S)
    wait_for_text(browser, "10 settled by people")
    hosts = {urlsplit(url).netloc for url in browser.requested_urls if not url.startswith("data:")}
    assert hosts == {urlsplit(review.address).netloc}, "nothing foreign is requested"

    assert review.session_ids()
    browser.open("about:blank", 1280)
    assert sessions_end(review)
    assert review.process.poll() is None


def test_a_tablet_shows_eighty_columns_and_a_conflict_opens_by_mouse(review: Review, browser: Chromium) -> None:
    browser.open(review.address, TABLET_WIDTH, height=1024)
    wait_for_text(browser, "1 of 20")
    assert browser.evaluate("window.terminalSize[0]") >= 80
    assert browser.evaluate("document.documentElement.scrollWidth") <= TABLET_WIDTH
    click_cell(browser, 20, 6, n_clicks=2)
    wait_for_text(browser, "not decided by you")
    decide(review, 1, lambda _: click_cell(browser, 2, -1))


@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_a_review_ends_with_its_server(review: Review, browser: Chromium, name: str) -> None:
    browser.open(review.address, 1280)
    wait_for_text(browser, "1 of 20")
    assert len(review.session_ids()) == 1
    review.process.send_signal(signal.Signals[name])
    assert review.process.wait(WAIT_S) == (0 if name == "SIGINT" else -signal.SIGKILL)
    assert sessions_end(review)
    browser.wait_for("getComputedStyle(document.getElementById('notice')).display === 'flex'", WAIT_S)
    assert "The review has ended" in browser.evaluate("document.getElementById('message').textContent")
