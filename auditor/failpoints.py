"""Places at which a test can kill this process, to see that nothing is lost. Without AUDITOR_FAILPOINT they do nothing.

`AUDITOR_FAILPOINT=after_response:7` ends the process, as a power cut would, the seventh time that it gets there; `*`
stands for every place.
"""

from __future__ import annotations

import functools
import os
import signal
import threading

ENVIRONMENT_VARIABLE = "AUDITOR_FAILPOINT"

_lock = threading.Lock()
_hit_count = 0


def failpoint(name: str) -> None:
    """A place of that name; the process may end here."""
    wanted, number = _configured_failpoint()
    if wanted not in (name, "*"):
        return
    global _hit_count
    with _lock:
        _hit_count += 1
        reached = _hit_count == number
    if reached:
        os.kill(os.getpid(), signal.SIGKILL)


def hit_count() -> int:
    """How often the process has come to the place that AUDITOR_FAILPOINT names."""
    return _hit_count


@functools.cache
def _configured_failpoint() -> tuple[str, int]:
    name, _, number = os.environ.get(ENVIRONMENT_VARIABLE, "").partition(":")
    return name, int(number or 1)
