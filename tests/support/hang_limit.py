"""A limit for work that would take minutes to years if it had a fault, such as catastrophic backtracking.

The limit is far above what the slowest machine needs, so that no test measures speed: `make bench` does.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from tests.support.patience import PATIENCE_S


class WorkHangs(BaseException):
    """Work did not end within its limit; no `Exception`, so that the tested code does not handle it."""


@contextmanager
def hang_limit(seconds: float = PATIENCE_S) -> Iterator[Callable[[], None]]:
    """Interrupt the work of this thread, which is the main one, if it does not end within a number of seconds.

    Regular expressions and asyncio are interrupted, too. Yields a function that restarts the limit.

    Raises:
        WorkHangs: the work did not end in time.
    """

    def interrupt(signal_number: int, frame: FrameType | None) -> None:
        raise WorkHangs(f"the work takes longer than {seconds:g} s")

    def restart() -> None:
        """Give the work all of the time again."""
        signal.setitimer(signal.ITIMER_REAL, seconds)

    previous = signal.signal(signal.SIGALRM, interrupt)
    restart()
    try:
        yield restart
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
