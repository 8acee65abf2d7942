"""Base class of the screens that show one text, which scrolls."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from auditor.tui.formatting import to_content
from auditor.tui.screen import ReviewScreen

MIN_TEXT_WIDTH = 40


class TextScreen(ReviewScreen):
    """A screen with one text that scrolls by keys."""

    loading_text = "Reading …"

    def compose_body(self) -> ComposeResult:
        with VerticalScroll(id="text-page", can_focus=False):
            yield Static(to_content(self.loading_text), id="text")

    @property
    def _page(self) -> Widget:
        return self.query_one("#text-page")

    @property
    def text_width(self) -> int:
        """Columns of a line."""
        return max(self._page.scrollable_content_region.width, MIN_TEXT_WIDTH)

    def show_text(self, text: Content) -> None:
        """Replace the text."""
        self.query_one("#text", Static).update(text)

    @property
    def page_height(self) -> int:
        return self._page.size.height - 1

    def action_move_by(self, lines: int) -> None:
        self._page.scroll_relative(y=lines, animate=False)
