"""Processor time normalized by a reference computation, so that limits hold on any machine."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

YARDSTICK_S = 0.06
"""Seconds of the reference computation on the machine for which the tests' limits are set."""


@dataclass
class CpuTime:
    """Normalized processor time in seconds; NaN until the work has ended."""

    seconds: float = float("nan")


@contextmanager
def measure_cpu_time() -> Iterator[CpuTime]:
    """Measure the normalized processor time of this process and its awaited children.

    Independent of other programs' load and of the machine's speed.
    """
    spent, before = CpuTime(), _processor_time()
    yield spent
    elapsed_s = _processor_time() - before
    spent.seconds = elapsed_s * YARDSTICK_S / max(YARDSTICK_S, min(_yardstick() for _ in range(3)))


def _processor_time() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _yardstick() -> float:
    """Processor seconds of the reference computation: matrix products and a Python loop."""
    before = _processor_time()
    values = np.random.default_rng(0).random((200, 200))
    for _ in range(10):
        values = np.tanh(values @ values)
    total = 0
    for i in range(300_000):
        total += i % 7
    return _processor_time() - before
