"""An event loop whose clock jumps to the next timer, so that minutes of waiting take no time."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


class Clock:
    """A clock in seconds that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class VirtualClock(Clock):
    """A monotonic clock in seconds that moves only when the event loop would wait."""

    now = 1000.0


class JumpingSelector(selectors.DefaultSelector):
    """A selector that moves the clock instead of waiting for a timer."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return events that are ready; without any, move the clock by the time to the next timer."""
        ready = super().select(0 if timeout is not None else None)
        if not ready and timeout:
            self._clock.now += timeout
        return ready


def make_virtual_loop(clock: VirtualClock) -> asyncio.AbstractEventLoop:
    """An event loop whose time is the clock's; close it at the end."""
    loop = asyncio.SelectorEventLoop(JumpingSelector(clock))
    loop.time = clock  # type: ignore[method-assign]
    return loop


def run_in_virtual_time(coroutine: Coroutine[Any, Any, T], monkeypatch: pytest.MonkeyPatch) -> T:
    """Run a coroutine that uses no threads and no sockets, with `time.monotonic` as the loop's virtual time."""
    clock = VirtualClock()
    monkeypatch.setattr(time, "monotonic", clock)
    with asyncio.Runner(loop_factory=lambda: make_virtual_loop(clock)) as runner:
        return runner.run(coroutine)
