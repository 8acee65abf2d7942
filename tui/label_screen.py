"""Labelling: the app of one rater, and the screen of one unit, with one key for each answer."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from auditor.domain.decisions import REVIEW_ASPECTS
from auditor.domain.labels import LabelUnit
from auditor.errors import format_count
from auditor.review.conflict_list import ReviewProgress, format_pace
from auditor.review.labelling import LabelDraft, LabellingSession, LabelQueue, OpenUnit
from auditor.tui.formatting import (
    NOTHING_LEFT_TO_LABEL,
    describe_label,
    describe_missing,
    describe_open_next_unit,
    describe_own_agreement,
    describe_unsaved_drafts,
    to_content,
    to_single_line,
)
from auditor.tui.key_bindings import Action, bindings_for
from auditor.tui.rater_app import RaterApp
from auditor.tui.rating_screen import SavingScreen
from auditor.tui.settings import ReviewSettings

FENCE = re.compile(r"^=== [0-9a-f]+ ===$", re.MULTILINE)
"""Marker lines around the text in a judge's request."""
ANSWER_SYMBOLS = {None: "–", True: "yes", False: "no"}


class LabelScreen(SavingScreen[OpenUnit]):
    """Screen to label the units of a sample, one after the other."""

    screen_name = "label"
    leads_back = False
    nothing_left = NOTHING_LEFT_TO_LABEL
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("label")

    def __init__(self, queue: LabelQueue) -> None:
        super().__init__()
        self.queue = queue
        self.progress: ReviewProgress | None = None
        self.agreement_text = ""
        self._n_reported_missing = 0
        self._reported_drafts: dict[LabelUnit, LabelDraft] = {}

    def compose_body(self) -> ComposeResult:
        with Container(id="label"):
            with VerticalScroll(id="material", can_focus=False):
                yield Static(id="material-text")
            with VerticalScroll(id="instructions", can_focus=False):
                yield Static(id="instructions-text")
        yield Static(id="choices")
        yield Static(id="aspects")
        yield Static(id="standing")

    def on_mount(self) -> None:
        """Open the first unit that is left; without one, the last of the sample."""
        opened = self.queue.load_next()
        if opened is None:
            self.notify(NOTHING_LEFT_TO_LABEL, markup=False)
            opened = self.queue.load(self.queue.session.sample[-1].unit)
        self.show_opened_item(opened)
        self.after_save()

    def offers(self, action: Action) -> bool:
        session = self.queue.session
        numbers = {f"label.choose.{number}" for number in range(1, 1 + len(session.kind.choices))}
        aspects = {f"label.aspect.{name}" for name in session.aspect_questions}
        return not action.id.startswith(("label.choose.", "label.aspect.")) or action.id in numbers | aspects

    # --- showing

    @property
    def open_key(self) -> LabelUnit | None:
        return None if self.item is None else self.item.unit

    def show_opened_item(self, item: OpenUnit) -> None:
        """Show another unit, scrolled to the top; say which units were passed over."""
        self.last_saved = ""
        self.show_item(item)
        for selector in ("#label", "#material", "#instructions"):
            self.query_one(selector).scroll_home(animate=False)
        if len(self.queue.missing) > self._n_reported_missing:
            self._n_reported_missing = len(self.queue.missing)
            self.notify(describe_missing(self.queue.missing), severity="warning", timeout=20, markup=False)

    def show_item(self, item: OpenUnit) -> None:
        """Show the current state of the open unit, such as after its label was saved."""
        self.item = item
        text = item.item
        self.query_one("#material", VerticalScroll).border_title = Content("What the judge was shown")
        self.query_one("#material-text", Static).update(_render_request(text.material or text.missing))
        self.query_one("#instructions", VerticalScroll).border_title = Content("What the judge was told")
        self.query_one("#instructions-text", Static).update(to_content(text.instructions, "$text-muted"))
        self.query_one("#choices", Static).update(self._render_choices(item), layout=False)
        self.query_one("#aspects", Static).update(self._render_aspects(item), layout=False)
        self.query_one("#aspects").display = bool(text.aspects)
        self.refresh_title_bar()

    def refresh_title_bar(self) -> None:
        """Show audit, position, what is left, pace and time to go, as far as the width allows; and the status line."""
        path = [self.queue.session.audit.name]
        if self.item is not None:
            path.append(
                f"{format_count(self.item.position)} of {format_count(self.queue.n_units)}"
                if self.item.position
                else "not in sample"
            )
        badge = self.rater_app.rater_badge
        free_width = self.size.width - 2 - badge.cell_length - len(" › ".join(("auditor", *path, " ")))
        forms = format_pace(self.progress) if self.progress is not None else []
        path += next(([form] for form in forms if len(form) < free_width), forms[-1:])
        self.set_title_bar(*path, right=badge)
        self.query_one("#material", VerticalScroll).border_subtitle = to_content(self.agreement_text)
        self.update_status_line()

    def _render_choices(self, item: OpenUnit) -> Content:
        """Render the question, and key and word of each answer, which can be clicked; the given one is marked."""
        parts = [to_content(item.item.question, "bold")]
        for number, choice in enumerate(item.unit.kind.choices, start=1):
            mark = "● " if choice is item.choice else ""
            key = self._key_of(f"label.choose.{number}")
            text = Content.assemble((key, "bold $text-accent"), f" {mark}{choice.label}")
            parts.append(text.stylize(Style.from_meta({"@click": f"screen.choose({number})"})))
        return Content("   ").join(parts)

    def _render_aspects(self, item: OpenUnit) -> Content:
        """Render key, name and answer of each aspect that the judge is asked about; each can be clicked."""
        parts = [Content.styled("optional:", "$text-muted")]
        for aspect in REVIEW_ASPECTS:
            if aspect.name in item.item.aspects:
                key = self._key_of(f"label.aspect.{aspect.name}")
                answer = ANSWER_SYMBOLS[item.draft.aspects.get(aspect.name)]
                text = Content.assemble((key, "bold $text-accent"), f" {aspect.label}: ", (answer, "bold"))
                parts.append(text.stylize(Style.from_meta({"@click": f"screen.aspect('{aspect.name}')"})))
        return Content("   ").join(parts)

    def _key_of(self, action_id: str) -> str:
        """Return the name of the first configured key of an action."""
        return self.rater_app.settings.key_names(action_id)[0]

    def update_status_line(self) -> None:
        """Show whether the label is saved, what was saved before, and the note."""
        item = self.item
        if item is None:
            return
        if self.n_pending_saves:
            parts = [Content.styled("… saving", "$text-warning")]
        elif item.choice is not None:
            parts = [to_content(f"✓ saved: {describe_label(item)}", "$text-success")]
        else:
            parts = [Content("not labelled by you")]
        if self.last_saved and not self.n_pending_saves:
            parts.append(to_content(f"✓ saved, u undoes: {self.last_saved}", "$text-success"))
        is_pending = item.label is None and item.draft != LabelDraft()
        if item.draft.note:
            prefix = "saved with your label: " if is_pending else ""
            parts.append(to_content(f"{prefix}✎ {to_single_line(item.draft.note)}", "$text-accent"))
        elif is_pending:
            parts.append(Content.styled("aspects and note are saved with your label", "$text-warning"))
        if self.progress is not None and not self.progress.n_left:
            parts.append(Content.styled("nothing left to label", "$text-success"))
        self.query_one("#standing", Static).update(Content.styled("  ·  ", "$text-muted").join(parts), layout=False)

    # --- labelling

    def action_choose(self, number: int) -> None:
        """Save the answer of a number, and open the next unit; ignored while that one is about to open."""
        item = self.item
        if item is None or not self.accepts_decisions or self.n_pending_saves:
            return
        choices = item.unit.kind.choices
        if number > len(choices) or not self.check_window_size():
            return
        if item.item.missing:
            self.notify(f"There is nothing to label. {item.item.missing}", markup=False)
            return
        value = choices[number - 1].value

        def load_next() -> OpenUnit | None:
            return self.queue.load_next(after=item.unit)

        self.save_item(
            lambda: self.queue.save_value(item, value),
            lambda saved: saved,
            load_next if self.rater_app.settings.open_next else None,
            describe_saved=describe_label,
        )

    def action_aspect(self, name: str) -> None:
        """Change the answer on an aspect: none, yes, no, and none again; ignored while a label is being saved."""
        item = self.item
        if item is None or self.n_pending_saves or name not in item.item.aspects:
            return
        answers = dict(item.draft.aspects)
        if name not in answers:
            answers[name] = True
        elif answers[name]:
            answers[name] = False
        else:
            del answers[name]
        self._save_draft(item, replace(item.draft, aspects=answers))

    def action_note(self) -> None:
        """Ask for a note; ignored while a label is being saved, which the note is to be saved with."""
        if self.item is not None and not self.n_pending_saves:
            self._ask_note(self.item, self.item.draft.note)

    def _ask_note(self, item: OpenUnit, initial_text: str, error: str = "") -> None:
        """Ask for a note; if it cannot be saved, ask again with what was typed."""

        def store(text: str) -> None:
            self._save_draft(item, replace(item.draft, note=text), text)

        self.ask_note(initial_text, store, error)

    def _save_draft(self, item: OpenUnit, draft: LabelDraft, note: str | None = None) -> None:
        """Keep a draft, or save it with the label that the unit has.

        Args:
            note: asked for again if saving fails.
        """
        if item.label is None:
            self.show_item(self.queue.save_draft(item, draft))
        else:
            on_failed = None if note is None else lambda text: self._ask_note(item, note, text)
            self.save_item(lambda: self.queue.save_draft(item, draft), lambda saved: saved, on_failed=on_failed)

    def show_unsaved_draft(self) -> bool:
        """Show a unit whose aspects or note are not saved, and say so; False without one, or if it was shown before."""
        drafts = self.queue.list_unsaved_drafts()
        if self.n_pending_saves and self.open_key is not None:
            drafts.pop(self.open_key, None)
        if not drafts or drafts == self._reported_drafts:
            return False
        self._reported_drafts = drafts
        if self.open_key not in drafts:
            self._open(self.queue.load(next(iter(drafts))), "")
        message = f"{describe_unsaved_drafts(len(drafts))} To quit without them, quit again."
        self.notify(message, severity="warning", timeout=20, markup=False)
        return True

    def action_undo(self) -> None:
        """Undo the rater's last label, and show its unit."""

        def job() -> tuple[str, OpenUnit | None]:
            opened = self.queue.undo()
            return ("There is nothing to undo." if opened is None else "Undone."), opened

        self.save_undo(job, lambda item: item.unit)

    def after_save(self) -> None:
        """Count what is left and the raters' agreement, in the background."""

        def load() -> None:
            self.progress = self.queue.session.load_progress()
            agreement = self.queue.load_own_agreement()
            self.agreement_text = describe_own_agreement(agreement, self.queue.session.rater) if agreement else ""

        self.rater_app.run_in_background(load, self.rater_app.refresh_title_bar)

    # --- navigation

    def action_best(self) -> None:
        """Open the next unit that is left, other than the open one."""
        if not self.is_advancing:
            self._open(self.queue.load_next(after=self.open_key), NOTHING_LEFT_TO_LABEL)

    def action_skip(self) -> None:
        """Go to the next unit; this one comes again at the end."""
        if self.item is not None and not self.is_advancing:
            self.queue.skip(self.item.unit)
            self.action_best()

    def action_open_neighbour(self, offset: int) -> None:
        """Open the unit `offset` places further in the sample."""
        if self.item is not None and not self.is_advancing:
            self._open(self.queue.load_neighbour(self.item, offset), "This is the end of the sample.")

    def _open(self, opened: OpenUnit | None, message: str) -> None:
        """Show a unit that the rater opened, or a message if there is none."""
        if opened is None:
            self.notify(message, markup=False)
            return
        self.show_opened_item(opened)
        self.accepts_decisions_at = 0.0

    @property
    def page_height(self) -> int:
        return self.query_one("#label").size.height - 1

    def action_move_by(self, lines: int) -> None:
        for selector in ("#label", "#material", "#instructions"):
            self.query_one(selector).scroll_relative(y=lines, animate=False)


def _render_request(text: str) -> Content:
    """Render a judge's request, with its marker lines in the background."""
    pieces: list[Content] = []
    end = 0
    for match in FENCE.finditer(text):
        pieces += [to_content(text[end : match.start()]), to_content(match[0], "$text-muted")]
        end = match.end()
    return Content("").join([*pieces, to_content(text[end:])])


class LabelApp(RaterApp):
    """The app to label the units of a sample.

    Args:
        session: of an audit with a sample; the caller closes its database.
    """

    TITLE = "auditor labels"
    describe_open_next = staticmethod(describe_open_next_unit)

    def __init__(self, session: LabellingSession, settings: ReviewSettings | None = None) -> None:
        super().__init__(session.db, session.rater, settings)
        self.session = session

    def open_first_screen(self) -> None:
        """Show the first unit that is left."""
        self.push_screen(LabelScreen(LabelQueue(self.session)))

    async def action_quit(self) -> None:
        """Quit; if aspects or a note are not saved, show their unit first, and quit when asked again."""
        screens = [screen for screen in self.screen_stack if isinstance(screen, LabelScreen)]
        if not any(screen.show_unsaved_draft() for screen in screens):
            await super().action_quit()
