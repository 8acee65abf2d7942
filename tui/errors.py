"""Screen with the reasons why requests of an audit failed, and how to fix the known ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.content import Content

from auditor.storage import audits
from auditor.tui.actions import bindings_for
from auditor.tui.formatting import to_content, to_single_line
from auditor.tui.text_screen import TextScreen

if TYPE_CHECKING:
    from auditor.reports.data.failures.schema import FailureGroup

NO_FAILURES_TEXT = "No request failed."
LEGEND = "Most calls without a usable answer first; also requests that succeeded when they were sent again."


class ErrorsScreen(TextScreen):
    """Failed requests by model, HTTP status and message."""

    screen_name = "errors"
    loading_text = "Reading the failed requests …"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("errors")

    def __init__(self, audit_name: str) -> None:
        super().__init__()
        self.audit_name = audit_name

    def on_mount(self) -> None:
        """Load the failures in a thread, and show them when they are there."""
        self.submit_read("errors", self._load_failures, self._show_failures)

    def _load_failures(self) -> list[FailureGroup]:
        """Load and group the failures; runs in a thread."""
        from auditor.reports.data.failures.build import load_failure_groups  # loads pydantic models of the report

        db = self.review_app.db
        return load_failure_groups(db, audits.get_audit(db, self.audit_name).id)

    def _show_failures(self, failures: list[FailureGroup]) -> None:
        parts = [Content.styled(LEGEND, "$text-muted"), *map(render_failure, failures)]
        self.show_text(Content("\n\n").join(parts) if failures else Content(NO_FAILURES_TEXT))

    def refresh_title_bar(self) -> None:
        self.set_title_bar(self.audit_name, "errors")


def render_failure(failure: FailureGroup) -> Content:
    """Render failures of one kind in lines: model, status and counts; the message; purposes and times; the fix."""
    from auditor.review.failure_text import describe_failure

    heading, message, *details = map(to_single_line, describe_failure(failure, full=True))
    style = "bold $text-error" if failure.unusable else "bold"
    return Content("\n").join(
        [to_content(heading, style), to_content(message), *(to_content(line, "$text-muted") for line in details)]
    )
