"""`auditor review --serve` as people start it, and its page in a browser."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from auditor.tui.settings import SETTINGS_FOLDER_VARIABLE
from tests.support.chromium import Chromium
from tests.support.patience import PATIENCE_S

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
    process: subprocess.Popen[str]
    address: str
    known_ids: set[str] = field(default_factory=set)

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


@contextmanager
def serve_review(arguments: Sequence[str], settings: Path) -> Iterator[Review]:
    """Run `auditor` with arguments and `--serve` until the context ends.

    Args:
        settings: folder of the reviewer's settings.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "auditor", *arguments, "--serve", "--port", str(port)], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, env=os.environ | {SETTINGS_FOLDER_VARIABLE: str(settings)},
    )  # fmt: skip
    assert process.stderr is not None
    line = process.stderr.readline()
    match = re.search(r"as ada in a browser: (http://127\.0\.0\.1:\d+/\?token=\S+)", line)
    assert match, line + process.stderr.read()
    served = Review(process, match[1])
    try:
        yield served
    finally:
        process.kill()
        process.communicate()
        for pid in served.session_ids():
            os.kill(pid, signal.SIGKILL)


def record_terminal(browser: Chromium) -> None:
    browser.call("Page.enable")
    browser.call("Page.addScriptToEvaluateOnNewDocument", source=RECORD_SCRIPT)


def wait_until(condition: Callable[[], bool], limit_s: float = PATIENCE_S) -> bool:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def wait_for_text(browser: Chromium, text: str) -> None:
    browser.wait_for(_has_received(text))


def shows(browser: Chromium, text: str) -> bool:
    return bool(browser.evaluate(_has_received(text)))


def _has_received(text: str) -> str:
    return f"window.received.replace({ESCAPE_SEQUENCES}, '').includes({json.dumps(text)})"


def click_cell(browser: Chromium, column: int, row: int, n_clicks: int = 1) -> None:
    """Click a cell of the terminal; a negative row counts from the last."""
    x, y = browser.evaluate(f"""(() => {{
      const box = document.querySelector('.xterm-screen').getBoundingClientRect();
      const [columns, rows] = window.terminalSize;
      const row = {row} < 0 ? rows + {row} : {row};
      return [box.left + ({column} + 0.5) * box.width / columns, box.top + (row + 0.5) * box.height / rows];
    }})()""")
    browser.click(x, y, n_clicks)
