"""How much work something is, on any machine: processor time, measured beside a yardstick of the same kind."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

YARDSTICK_S = 0.06
"""What the yardstick takes on the machine that the limits in the tests are for."""


@dataclass
class Spent:
    """Processor time, in seconds of the machine that the limits are for; known when the work is done."""

    seconds: float = float("nan")


@contextmanager
def timed() -> Iterator[Spent]:
    """Measure what this process, and those that it waits for, spend on some work.

    Neither other programs nor a machine that is slow as a whole make it longer.
    """
    spent, before = Spent(), _processor_time()
    yield spent
    elapsed_s = _processor_time() - before
    spent.seconds = elapsed_s * YARDSTICK_S / max(YARDSTICK_S, min(_yardstick() for _ in range(3)))


def _processor_time() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _yardstick() -> float:
    """Seconds for some of what numpy is good at, and some of what it is not."""
    before = _processor_time()
    values = np.random.default_rng(0).random((200, 200))
    for _ in range(10):
        values = np.tanh(values @ values)
    total = 0
    for i in range(300_000):
        total += i % 7
    return _processor_time() - before
