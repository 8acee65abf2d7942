"""Base class of the screens on which a rater decides one item after the other, with every save in the writer thread."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from auditor.errors import AuditorError
from auditor.tui.dialogs import TextDialog
from auditor.tui.formatting import to_single_line
from auditor.tui.screen import ReviewScreen

T = TypeVar("T")
ItemT = TypeVar("ItemT")
DECISION_DELAY_S = 0.4
"""Time for which an item that opened by itself must have been visible before decision keys act on it."""
SAVED_BUT_UNREADABLE = "Your decision is saved, but it cannot be read at the moment. Open it again later."


class SavingScreen(ReviewScreen, Generic[ItemT]):
    """A screen with one item, the rater's decision on it, and the next item once that is saved.

    `item` is None until the first item is loaded. `last_saved` says what was saved before the item opened by itself; it
    is empty if the rater opened the item.
    """

    nothing_left: ClassVar[str] = ""
    """Message if no next item is left after a decision."""

    def __init__(self) -> None:
        super().__init__()
        self.item: ItemT | None = None
        self.n_pending_saves = 0
        self.last_saved = ""
        self._is_advancing = False
        self.accepts_decisions_at = 0.0

    # --- defined by the subclass

    @property
    def open_key(self) -> object:
        """Key of the open item."""
        raise NotImplementedError

    def show_item(self, item: ItemT) -> None:
        """Show the current state of the open item."""
        raise NotImplementedError

    def show_opened_item(self, item: ItemT) -> None:
        """Show another item, scrolled to the top."""
        raise NotImplementedError

    def update_status_line(self) -> None:
        """Show whether a save is pending."""
        raise NotImplementedError

    def after_save(self) -> None:
        """Refresh what depends on the saved decisions, such as the progress."""
        raise NotImplementedError

    # --- saving

    @property
    def is_advancing(self) -> bool:
        """Whether the next item opens by itself once the decision on this one is saved."""
        return self._is_advancing

    @property
    def accepts_decisions(self) -> bool:
        """Whether decision keys act; not while the next item is about to open, so that nothing is decided unseen."""
        return self.item is not None and not self._is_advancing and time.monotonic() >= self.accepts_decisions_at

    def save_item(
        self,
        job: Callable[[], T],
        load_item: Callable[[T], ItemT],
        load_next: Callable[[], ItemT | None] | None = None,
        *,
        describe_saved: Callable[[T], str] | None = None,
        on_failed: Callable[[str], None] | None = None,
    ) -> None:
        """Run a job that stores a decision, and show the item as saved once the decision is durable.

        Args:
            load_item: loads the open item again, from what the job returned.
            load_next: loads the item that then opens by itself; None if the open one stays.
            describe_saved: describes what the job returned, for the status line of the next item.
            on_failed: called with the error's text if nothing was saved, to ask again for what was typed.
        """
        key, opens_next = self.open_key, load_next is not None
        self._is_advancing = self._is_advancing or opens_next

        def work() -> tuple[T, ItemT | None, ItemT | None]:
            saved = job()
            return saved, _load_if_possible(lambda: load_item(saved)), load_next and _load_if_possible(load_next)

        def show_saved(result: tuple[T, ItemT | None, ItemT | None]) -> None:
            saved, item, next_item = result
            self._is_advancing = self._is_advancing and not opens_next
            is_in_front = self.open_key == key and self.app.screen is self
            if next_item is not None and is_in_front:
                self._open_by_itself(next_item, describe_saved(saved) if describe_saved else "")
            else:
                if self.open_key == key and item is not None:
                    self.last_saved = ""
                    self.show_item(item)
                elif self.open_key == key:
                    self.notify(SAVED_BUT_UNREADABLE, severity="warning", timeout=20, markup=False)
                if opens_next and is_in_front:
                    self.notify(self.nothing_left, markup=False)

        def show_error(error: AuditorError) -> None:
            self._is_advancing = self._is_advancing and not opens_next
            self.show_save_error(error, on_failed)

        self.run_save(work, show_saved, show_error)

    def _open_by_itself(self, item: ItemT, saved_text: str) -> None:
        """Show the next item, and accept decisions on it once it has been visible for `DECISION_DELAY_S`."""
        self.accepts_decisions_at = math.inf
        self.show_opened_item(item)
        self.last_saved = saved_text
        self.update_status_line()

        def accept_later() -> None:
            self.accepts_decisions_at = time.monotonic() + DECISION_DELAY_S

        self.call_after_refresh(accept_later)

    def save_undo(self, job: Callable[[], tuple[str, ItemT | None]], get_key: Callable[[ItemT], object]) -> None:
        """Run an undo or redo in the writer thread, then show the item that it changed.

        Args:
            job: returns a description of the new state, and the changed item; None if nothing was changed.
            get_key: returns an item's key.
        """

        def show_undo(description_and_item: tuple[str, ItemT | None]) -> None:
            description, item = description_and_item
            self.notify(description, markup=False)
            if item is not None and get_key(item) != self.open_key:
                self.show_opened_item(item)
            elif item is not None or self.item is not None:
                self.last_saved = ""
                self.show_item(item if item is not None else self.item)  # type: ignore[arg-type]
            self.accepts_decisions_at = 0.0

        self.run_save(job, show_undo, self.show_save_error)

    def run_save(
        self, job: Callable[[], T], on_success: Callable[[T], None], on_error: Callable[[AuditorError], None]
    ) -> None:
        """Run a job in the writer thread, and show that a save is pending until it has ended.

        If the screen is closed meanwhile, only an error is shown.
        """

        def finish(result: T) -> None:
            self.n_pending_saves -= 1
            if self.is_open:
                on_success(result)
            self.after_save()

        def fail(error: AuditorError) -> None:
            self.n_pending_saves -= 1
            (on_error if self.is_open else self.rater_app.show_error)(error)

        self.n_pending_saves += 1
        self.update_status_line()
        self.rater_app.submit_write(job, finish, fail)

    def show_save_error(self, error: AuditorError, on_failed: Callable[[str], None] | None = None) -> None:
        """Show the error of a failed save, and the item as it is stored; ask again for what was typed."""
        self.rater_app.show_error(error)
        if self.item is not None:
            self.show_item(self.item)
        if on_failed:
            on_failed(to_single_line(str(error)))

    def ask_note(self, initial_text: str, store: Callable[[str], None], error: str = "") -> None:
        """Ask for a note, and pass it to `store` if it changed.

        Args:
            error: why the note was not saved, if it was entered before.
        """

        def check(text: str | None) -> None:
            if text is not None and (error or text != initial_text):
                store(text)

        hint = f"✕ {error}" if error else "What should other raters know?"
        self.app.push_screen(TextDialog("Note", initial_text, hint), check)


def _load_if_possible(load: Callable[[], ItemT | None]) -> ItemT | None:
    """Load an item after a decision; None if that fails, since the decision is saved anyway."""
    try:
        return load()
    except AuditorError:
        return None
