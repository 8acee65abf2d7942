"""How raters agree with each other, and how judges agree with people."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from auditor.review.desk import Desk
from auditor.tui.actions import bindings
from auditor.tui.chrome import Page


class PeoplePage(Page):
    """Agreement between raters, and between judges and people."""

    where = "people"
    BINDINGS: ClassVar[list[BindingType]] = bindings("people")

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk

    def body(self) -> ComposeResult:
        with VerticalScroll(id="people", can_focus=False):
            yield Static(id="people-text")

    def refresh_bar(self) -> None:
        self.set_bar(self.desk.audit.name, "agreement")

    def action_leave(self) -> None:
        self.review.back()
