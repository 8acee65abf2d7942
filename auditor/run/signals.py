"""Stop a run by signals."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that stop a run; Windows has no SIGHUP."""


STOPPING_NOTICE = "Stopping: open requests are finished, and their answers saved. To stop at once: Ctrl-C again."


@contextmanager
def stop_on_signals(stop_event: threading.Event, on_notice: Callable[[str], None]) -> Iterator[None]:
    """Set the event at the first signal, so that open requests finish; cancel the task at the second.

    Args:
        stop_event: is set by the first signal.
        on_notice: receives a sentence for the user at the first signal.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    received: list[int] = []

    def stop(n_received: int) -> None:
        """Ask the run to stop, or cancel it; it may be stopping already, because of an error."""
        if n_received > 1 and task is not None:
            task.cancel()
        stop_event.set()

    def on_signal(signal_number: int, _: object) -> None:
        """Say at once that the run stops: the loop may be busy for seconds, such as with loading a library."""
        received.append(signal_number)
        if len(received) == 1:
            with suppress(RuntimeError):  # the signal interrupted a print
                on_notice(STOPPING_NOTICE)
        loop.call_soon_threadsafe(stop, len(received))

    previous_handlers = {number: signal.signal(number, on_signal) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
