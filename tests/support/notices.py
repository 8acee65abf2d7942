"""The notices of a run, in place of a terminal."""

from __future__ import annotations

from auditor.agents.run_context import SilentProgress


class NoticeRecorder(SilentProgress):
    """Progress that records all notices."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def on_notice(self, text: str) -> None:
        self.notes.append(text)
