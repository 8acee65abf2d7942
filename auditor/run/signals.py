"""Stop a run by signals."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that stop a run; Windows has no SIGHUP."""


@contextmanager
def stop_on_signals(stop_event: threading.Event) -> Iterator[None]:
    """Set the event at the first signal, so that open requests finish; cancel the task at the second."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def on_signal() -> None:
        """Ask the run to stop; if it was asked before, cancel it."""
        if stop_event.is_set() and task is not None:
            task.cancel()
        stop_event.set()

    for signal_number in STOP_SIGNALS:
        loop.add_signal_handler(signal_number, on_signal)
    try:
        yield
    finally:
        for signal_number in STOP_SIGNALS:
            loop.remove_signal_handler(signal_number)
