"""Driver of a review that is shown in a browser; it ends the app when the server is gone."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from functools import partial
from typing import Any

from textual.app import App
from textual.drivers.web_driver import WebDriver

END_TIMEOUT_S = 4.0
"""Time in which a review ends by itself once its connection or its server is gone; then it is killed."""


class BrowserDriver(WebDriver):
    """Textual's driver for browsers, for a server that may be killed: the app ends when standard input does.

    Textual's driver stops reading at the end of standard input, and the app would go on without anyone to end it.
    """

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._write = partial(_write_if_read, self.fileno)

    def run_input_thread(self) -> None:
        """Pass the server's packets to the app; end the app when no more can come."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            last_resort = threading.Timer(END_TIMEOUT_S, os._exit, (1,))
            last_resort.daemon = True
            last_resort.start()
            self.on_meta("quit", {})


def _write_if_read(file: int, data: bytes) -> int:
    """Write to the server's pipe; nothing if the server is gone."""
    with suppress(BrokenPipeError):
        return os.write(file, data)
    return 0
