"""The first signal of a run is answered at once, whatever the event loop does."""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest

from auditor.run.signals import STOP_SIGNALS, STOPPING_NOTICE, stop_on_signals


def test_the_first_signal_is_announced_before_the_loop_goes_on_and_the_second_cancels() -> None:
    notices: list[str] = []
    stop_event = threading.Event()

    async def run() -> None:
        with stop_on_signals(stop_event, notices.append):
            signal.raise_signal(signal.SIGINT)
            assert (notices, stop_event.is_set()) == ([STOPPING_NOTICE], False)  # the loop is still busy
            await asyncio.sleep(0)
            assert stop_event.is_set()
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(60)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert notices == [STOPPING_NOTICE]


def test_the_first_signal_does_not_cancel_a_run_that_stops_because_of_an_error() -> None:
    stop_event = threading.Event()
    stop_event.set()

    async def run() -> str:
        with stop_on_signals(stop_event, print):
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0.01)
            return "its open requests are saved"

    assert asyncio.run(run()) == "its open requests are saved"


def test_the_handlers_before_the_run_are_restored() -> None:
    handlers = [signal.getsignal(number) for number in STOP_SIGNALS]

    async def run() -> None:
        before = [signal.getsignal(number) for number in STOP_SIGNALS]
        with stop_on_signals(threading.Event(), print):
            assert [signal.getsignal(number) for number in STOP_SIGNALS] != before
        assert [signal.getsignal(number) for number in STOP_SIGNALS] == before

    asyncio.run(run())
    assert [signal.getsignal(number) for number in STOP_SIGNALS] == handlers
