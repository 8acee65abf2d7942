"""What all screens share: the bar at the top, the footer, and the way to the app."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static

from auditor.tui.actions import Where
from auditor.tui.paint import line

if TYPE_CHECKING:
    from auditor.tui.app import ReviewApp


class Page(Screen[None]):
    """A full screen: a bar, a body, the footer."""

    where: ClassVar[Where] = "everywhere"

    @property
    def review(self) -> ReviewApp:
        """The app, with what is ours."""
        from auditor.tui.app import ReviewApp

        return cast(ReviewApp, self.app)

    def compose(self) -> ComposeResult:
        yield Static(id="bar")
        yield from self.body()
        yield Footer(show_command_palette=False)

    def body(self) -> ComposeResult:
        """What stands between bar and footer."""
        yield from ()

    def set_bar(self, *path: str, right: Content | None = None) -> None:
        """Show where we are, and on the right who rates how."""
        trail = Content(" › ").join([Content.styled(line(part), "bold") for part in ("auditor", *path)])
        bar = self.query_one("#bar", Static)
        right = right or self.review.badge
        space = max((self.size.width or 80) - 2 - trail.cell_length - right.cell_length, 1)
        bar.update(Content.assemble(trail, " " * space, right))

    def on_resize(self) -> None:
        self.call_after_refresh(self.refresh_bar)

    def refresh_bar(self) -> None:
        """Show the bar anew; each screen says what is in it."""
