"""Drive a program in a real terminal, by tmux."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

from tests.support.patience import PATIENCE_S


class Tmux:
    """One terminal of 80 x 24 in a tmux server of its own."""

    def __init__(self, folder: Path, settings: str = "open_next = false") -> None:
        self.settings = settings
        self._folder = folder
        self._servers = 0
        self._command: list[str] = []
        self._environment = {
            **os.environ, "AUDITOR_REVIEW_DIR": str(folder), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8",
        }  # fmt: skip

    def start(self, command: str) -> None:
        """Run a command in a session of a new server, since the previous one may still be running."""
        self._servers += 1
        self._command = ["tmux", "-S", str(self._folder / f"tmux{self._servers}"), "-f", "/dev/null"]
        (self._folder / "review.toml").write_text(self.settings, encoding="utf-8")
        self._run("new-session", "-d", "-x", "80", "-y", "24", "-s", "review", command)

    def press(self, *keys: str) -> None:
        self._run("send-keys", "-t", "review", *keys)

    def pid(self) -> int:
        return int(self._run("list-panes", "-t", "review", "-F", "#{pane_pid}"))

    def text(self) -> str:
        return self._run("capture-pane", "-p", "-t", "review")

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until the screen matches a regular expression; returns the match."""
        deadline = time.monotonic() + PATIENCE_S
        while (match := re.search(pattern, self.text())) is None:
            assert time.monotonic() < deadline, f"no {pattern!r} in:\n{self.text()}"
            time.sleep(0.02)
        return match

    def stop(self) -> None:
        if self._command:
            subprocess.run([*self._command, "kill-server"], capture_output=True, check=False)

    def _run(self, *arguments: str) -> str:
        completed = subprocess.run(
            [*self._command, *arguments], env=self._environment, capture_output=True, text=True, check=True
        )
        return completed.stdout
