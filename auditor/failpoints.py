"""Failpoints: places at which a test can kill this process, to check that nothing is lost.

`AUDITOR_FAILPOINT=after_response:7` kills the process the seventh time that it reaches the failpoint of that name; `*`
stands for every failpoint. Without the variable, failpoints do nothing.
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
    """Kill the process if AUDITOR_FAILPOINT names this failpoint and the number of this hit."""
    failpoint_name, target_hit = _configured_failpoint()
    if failpoint_name not in (name, "*"):
        return
    global _hit_count
    with _lock:
        _hit_count += 1
        is_target_hit = _hit_count == target_hit
    if is_target_hit:
        os.kill(os.getpid(), signal.SIGKILL)


def hit_count() -> int:
    """How often the process has reached the failpoint that AUDITOR_FAILPOINT names."""
    return _hit_count


@functools.cache
def _configured_failpoint() -> tuple[str, int]:
    """Name of the failpoint, and the number of the hit at which to kill the process, from 1."""
    name, _, target_hit = os.environ.get(ENVIRONMENT_VARIABLE, "").partition(":")
    return name, int(target_hit or 1)
