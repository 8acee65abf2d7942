"""The terminal app in which one rater labels a random sample of an audit."""

from __future__ import annotations

from auditor.review.label_queue import LabelQueue
from auditor.review.labelling import LabellingSession
from auditor.tui.label_screen import LabelScreen
from auditor.tui.rater_app import RaterApp
from auditor.tui.settings import ReviewSettings
from auditor.tui.wording import describe_open_next_unit


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
