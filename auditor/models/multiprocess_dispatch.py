"""Requests spread over processes: this one, and where it can do no more, helpers beside it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from auditor.config import EMBEDDED, ModelSection
from auditor.domain import Attempt, Call, Measure, Outcome
from auditor.errors import AuditorError
from auditor.models.dispatch import Sending
from auditor.models.failures import Failure
from auditor.models.helper_process import CONFIG, PARCEL, RETURNED, HelperConfig, Parcel, framed, unframed
from auditor.models.provider_request import Reply, failed
from auditor.redaction import known_secrets

LOOK_EVERY_S, BUSY = 10.0, 0.6
"""Helpers begin when the event loop has computed for this share of so many seconds, for then it is what calls wait for:
a helper takes some seconds of processor time to begin, and beside slow answers one process is enough."""
MOST = 4
"""Helpers at most: by then this process, which records all answers, has its own core's worth to do."""
GRACE_S = 30.0
"""A helper that is later than a request's time limit by so much will not answer any more."""

log = logging.getLogger(__name__)


def helpers_for(cores: int | None) -> int:
    """How many helpers a machine of so many cores may have; nobody can help on one."""
    return 0 if cores is None else min(cores - 1, MOST)


class Helper:
    """One process beside this one.

    Attributes:
        ready: whether requests can be given to it.
        waiting: those that have been, by their numbers.
    """

    def __init__(self) -> None:
        """Start nothing yet: `help` does."""
        self.ready = False
        self.waiting: dict[int, asyncio.Future[Reply | None]] = {}
        self._ids = itertools.count(1)
        self._process: asyncio.subprocess.Process | None = None

    async def help(self, models: Sequence[ModelSection]) -> None:
        """Start the process, and take what it returns until it ends; who still waits then is told that it is lost."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "auditor.models.helper_process",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            try:
                await self._serve(process, models)
            finally:
                self._lose()
                with suppress(ProcessLookupError):
                    process.kill()  # nobody waits for what it has
                await process.communicate()
        except Exception as error:  # noqa: BLE001 - a run goes on without helpers
            log.warning("a process that helped to send requests is given up: %s", type(error).__name__)
        else:
            log.warning("a process that helped to send requests ended; they go out without it")

    async def _serve(self, process: asyncio.subprocess.Process, models: Sequence[ModelSection]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        process.stdin.write(framed(CONFIG.dump_json(HelperConfig(tuple(models), known_secrets()))))
        self.ready = await unframed(process.stdout) is not None
        while (data := await unframed(process.stdout)) is not None:
            returned = RETURNED.validate_json(data)
            if (future := self.waiting.get(returned.id)) is None or future.done():
                continue
            if returned.fault is None:
                future.set_result(returned.reply)
            else:
                told = f"a process that helps to send requests failed with {returned.fault}."
                future.set_exception(AuditorError(told, "Give the same command again: nothing recorded is lost."))

    def _lose(self) -> None:
        self.ready = False
        for future in self.waiting.values():
            if not future.done():
                future.set_result(None)

    async def send(self, call: Call, number: int, limit_s: float | None) -> Reply | None:
        """What came of a request; None where that will never be known.

        Raises:
            AuditorError: the process failed at it by a fault of its own.
        """
        assert self._process is not None
        assert self._process.stdin is not None
        parcel = Parcel(next(self._ids), call, number, limit_s)
        future: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()
        self.waiting[parcel.id] = future
        try:
            self._process.stdin.write(framed(PARCEL.dump_json(parcel)))
            async with asyncio.timeout(None if limit_s is None else limit_s + GRACE_S):
                return await future
        except TimeoutError:
            self.ready = False
            with suppress(ProcessLookupError):
                self._process.kill()  # it hangs; its death tells all others that wait for it
            return None
        finally:
            del self.waiting[parcel.id]


class Spreading:
    """Sends from this process and from helpers, which begin where it can do no more.

    What must be computed or asked on this machine itself stays in this process.
    """

    def __init__(self, models: Iterable[ModelSection], helpers: int) -> None:
        """Resolve keys and start embedded models, as `Sending`; no helper begins yet.

        Args:
            models: all that may be asked.
            helpers: processes beside this one.

        Raises:
            ConfigError: a key is not in the environment.
            ModelSetupError: an embedded model cannot be started.
        """
        models = list(models)
        self._own = Sending(models)
        self._far = {m.name: m for m in models if not m.model.startswith(EMBEDDED)}
        self._helpers = [Helper() for _ in range(helpers)]
        self._running: list[asyncio.Task[None]] = []
        self._looked = time.monotonic(), time.thread_time()

    async def send(self, call: Call, number: int, limit_s: float | None) -> Reply:
        """Send from whoever has least to do.

        Raises:
            ModelSetupError: the weights to compute with cannot be loaded.
            AuditorError: a helper failed at it by a fault of its own.
        """
        if self._is_busy() and not self._running:
            self._running = [asyncio.create_task(h.help(list(self._far.values()))) for h in self._helpers]
        ready = [helper for helper in self._helpers if helper.ready]
        if not ready or call.name not in self._far or call.measure is Measure.CONTINUATION:
            return await self._own.send(call, number, limit_s)
        began = datetime.now(UTC)
        reply = await min(ready, key=lambda helper: len(helper.waiting)).send(call, number, limit_s)
        return _lost(call, number, began) if reply is None else reply

    def _is_busy(self) -> bool:
        (before, spent), now = self._looked, time.monotonic()
        if now - before < LOOK_EVERY_S:
            return False
        self._looked = now, time.thread_time()
        return self._looked[1] - spent >= BUSY * (now - before)

    async def close(self) -> None:
        """Let the helpers end, and close connections."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._own.close()


def _lost(call: Call, number: int, began: datetime) -> Reply:
    """A request whose helper died: it may have been paid for, and is asked again."""
    error = "the process that sent it died"
    took = (datetime.now(UTC) - began).total_seconds()
    failure = Failure(Outcome.SERVER_ERROR, retry=True, blocks=False, error=error)
    attempt = Attempt(number=number, started_at=began, latency_s=took, outcome=failure.outcome, error=error)
    return Reply(replace(failed(call, failure), attempts=(attempt,)), failure)
