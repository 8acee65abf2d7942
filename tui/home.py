"""Home screen: the audits of the database, updated while they run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from auditor.reports.number_format import format_count, format_share, format_usd, pluralize
from auditor.storage.conflict_status import UNSETTLED
from auditor.storage.overview import AuditOverview, load_overviews
from auditor.tui.formatting import (
    STATUS_LABELS,
    STATUS_SYMBOLS,
    draw_progress_bar,
    fit_width,
    to_content,
    to_single_line,
)
from auditor.tui.key_bindings import bindings_for
from auditor.tui.screen import ReviewScreen

REFRESH_INTERVAL_S = 2.0
PROGRESS_BAR_WIDTH = 24
LIST_MARGIN_WIDTH = 5
"""Columns for the border, padding and scrollbar of the list."""
NO_AUDITS_TEXT = """This database has no audit yet

auditor init audit.toml      writes a configuration
auditor run audit.toml       runs the audit, which then appears here
auditor import scores …      imports scores from a file"""


class AuditList(OptionList, inherit_bindings=False):
    """The list of audits; without key bindings of its own, since the screen's bindings can be configured."""


class HomeScreen(ReviewScreen):
    """Screen to choose an audit."""

    screen_name = "home"
    leads_back = False
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("home")

    def __init__(self) -> None:
        super().__init__()
        self.audit_overviews: list[AuditOverview] = []

    def compose_body(self) -> ComposeResult:
        with Vertical(id="home"):
            yield AuditList(id="audits", markup=False)
            yield Static(id="home-empty")

    def on_mount(self) -> None:
        self.reload_audits()
        self.set_interval(REFRESH_INTERVAL_S, self.reload_audits)

    def on_screen_resume(self) -> None:
        self.reload_audits()

    def refresh_title_bar(self) -> None:
        self.set_title_bar("audits")
        self._update_list()

    def reload_audits(self) -> None:
        """Read the audits again, in a thread, without blocking a run that writes.

        Skipped while another screen is on top or a read is still running.
        """
        if self.is_current and not any(worker.is_running for worker in self.workers):
            self.submit_read("overviews", lambda: load_overviews(self.review_app.db), self._show_overviews)

    def _show_overviews(self, audit_overviews: list[AuditOverview]) -> None:
        self.audit_overviews = audit_overviews
        self._update_list()

    def _update_list(self) -> None:
        """Show the loaded audits: update the cards in place if the audits are the same, else fill the list anew."""
        audit_list = self.query_one(AuditList)
        audit_list.display = bool(self.audit_overviews)
        empty_notice = self.query_one("#home-empty", Static)
        empty_notice.display = not self.audit_overviews
        empty_notice.update(self._format_empty_notice())
        n_open = sum(overview.conflicts[status] for overview in self.audit_overviews for status in UNSETTLED)
        audit_list.border_title = to_content(pluralize(len(self.audit_overviews), "audit"))
        audit_list.border_subtitle = to_content(f"{pluralize(n_open, 'conflict')} not settled")
        width = max(self.size.width - LIST_MARGIN_WIDTH, 40)
        names = [overview.audit.name for overview in self.audit_overviews]
        if [option.id for option in audit_list.options] == names:
            for overview in self.audit_overviews:
                audit_list.replace_option_prompt(overview.audit.name, render_audit_card(overview, width))
            return
        audit_list.clear_options()
        audit_list.add_options(
            [Option(render_audit_card(overview, width), id=overview.audit.name) for overview in self.audit_overviews]
        )
        audit_list.highlighted = 0 if self.audit_overviews else None
        audit_list.focus()

    def _format_empty_notice(self) -> Content:
        """Return the notice for a database without audits: what to do, and the path of the database."""
        heading, _, instructions = NO_AUDITS_TEXT.partition("\n")
        path = self.review_app.db.path
        database_note = to_content(
            f"\n\nDatabase: {to_single_line(str(path.resolve()))}" if path else "", "$text-muted"
        )
        return Content.assemble((heading, "bold"), "\n", instructions, database_note)

    @property
    def selected_audit(self) -> str | None:
        """Name of the audit under the cursor; None if there is none."""
        audit_list = self.query_one(AuditList)
        return None if audit_list.highlighted is None else audit_list.get_option_at_index(audit_list.highlighted).id

    @on(OptionList.OptionSelected)
    def action_open(self) -> None:
        if self.selected_audit:
            self.review_app.open_queue(self.selected_audit)

    def action_people(self) -> None:
        if self.selected_audit:
            self.review_app.open_agreement(self.selected_audit)

    def action_errors(self) -> None:
        if self.selected_audit:
            self.review_app.open_errors(self.selected_audit)

    def action_move_by(self, lines: int) -> None:
        audit_list = self.query_one(AuditList)
        (audit_list.action_cursor_down if lines > 0 else audit_list.action_cursor_up)()


def render_audit_card(overview: AuditOverview, width: int) -> Content:
    """Render three lines about an audit, and an empty line as a separator."""
    audit = overview.audit
    state, style = _format_state(overview)
    updated_at = audit.updated_at[:16].replace("T", " ")
    name = fit_width(audit.name, max(width - len(state) - len(updated_at) - 3, 12))
    title_line = Content.assemble((name, "bold"), " ", (state, style), "  ", (updated_at, "$text-muted"))
    usable_note = [] if overview.usable_share is None else [f"{format_share(overview.usable_share)} usable"]
    progress_text = f" {' · '.join([*_format_answer_counts(overview), *usable_note, _format_cost(overview)])}"
    return Content("\n").join(
        [
            title_line,
            Content.assemble(
                (draw_progress_bar(overview.progress, PROGRESS_BAR_WIDTH), "$text-primary"), to_content(progress_text)
            ),
            _render_conflict_counts(overview),
            Content(""),
        ]
    )


def _format_state(overview: AuditOverview) -> tuple[str, str]:
    """Return the state of an audit, such as `✓ done`, and the style in which to show it."""
    if overview.is_finished:
        return "✓ done", "$text-success"
    is_running = overview.runner is not None
    return (
        f"▶ {to_single_line(overview.audit.stage)}"
        if is_running
        else f"‖ stopped at {to_single_line(overview.audit.stage)}"
    ), "$text-warning"


def _format_answer_counts(overview: AuditOverview) -> Iterator[str]:
    """Yield the number of recorded answers of each kind that the audit contains."""
    if overview.planned_samples != 0 or overview.traces.n:
        planned_text = "" if overview.planned_samples is None else f"/{format_count(overview.planned_samples)}"
        yield f"{format_count(overview.traces.n)}{planned_text} samples"
    yield from overview.describe_probe_answers()


def _format_cost(overview: AuditOverview) -> str:
    """Format the cost in US dollars; with "≥" if some calls have no known price."""
    if overview.cost_usd is None:
        return "cost unknown"
    return format_usd(overview.cost_usd, lower_bound=overview.unpriced > 0)


def _render_conflict_counts(overview: AuditOverview) -> Content:
    """Render a line with the number of conflicts by status, and of all."""
    if not overview.n_conflicts:
        return Content.styled("no conflicts", "$text-muted")
    pieces = [
        symbol.with_text(f"{format_count(overview.conflicts[status])} {STATUS_LABELS[status]}")
        for status, symbol in STATUS_SYMBOLS.items()
        if overview.conflicts[status]
    ]
    return Content("   ").join(
        [*pieces, to_content(f"of {pluralize(overview.n_conflicts, 'conflict')}", "$text-muted")]
    )
