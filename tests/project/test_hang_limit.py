"""Work that hangs is interrupted, and other work is not."""

from __future__ import annotations

import asyncio
import re
import signal
import time

import pytest

from tests.support.hang_limit import WorkHangs, hang_limit


def test_a_regular_expression_that_backtracks_is_interrupted() -> None:
    with pytest.raises(WorkHangs, match=r"longer than 0\.1 s"), hang_limit(0.1):
        re.fullmatch(r"(a|a)*b", "a" * 200)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_wait_in_an_event_loop_is_interrupted() -> None:
    with pytest.raises(WorkHangs), hang_limit(0.1):
        asyncio.run(asyncio.sleep(3600))


def test_other_work_ends_and_the_limit_can_be_restarted() -> None:
    with hang_limit(30) as restart:
        time.sleep(0.01)
        restart()
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
