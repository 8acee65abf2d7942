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

from auditor.config import EMBEDDED_PREFIX, ModelSection
from auditor.domain import Attempt, Call, LogprobMeasure, Outcome
from auditor.errors import AuditorError
from auditor.models.dispatch import LocalDispatcher
from auditor.models.failures import RequestFailure
from auditor.models.helper_process import (
    CONFIG_ADAPTER,
    REPLY_ADAPTER,
    REQUEST_ADAPTER,
    HelperConfig,
    HelperRequest,
    frame_message,
    read_message,
)
from auditor.models.provider_request import ProviderReply, failed_answer
from auditor.redaction import known_secrets

LOAD_CHECK_INTERVAL_S, BUSY_CPU_SHARE = 10.0, 0.6
"""Helpers begin when the event loop has computed for this share of so many seconds, for then it is what calls wait for:
a helper takes some seconds of processor time to begin, and beside slow answers one process is enough."""
MAX_HELPERS = 4
"""Helpers at most: by then this process, which records all answers, has its own core's worth to do."""
HELPER_GRACE_PERIOD_S = 30.0
"""A helper that is later than a request's time limit by so much will not answer any more."""

log = logging.getLogger(__name__)


def max_helpers(cores: int | None) -> int:
    """How many helpers a machine of so many cores may have; nobody can help on one."""
    return 0 if cores is None else min(cores - 1, MAX_HELPERS)


class HelperProcess:
    """One process beside this one.

    Attributes:
        ready: whether requests can be given to it.
        waiting: those that have been, by their numbers.
    """

    def __init__(self) -> None:
        """Start nothing yet: `help` does."""
        self.is_ready = False
        self.pending: dict[int, asyncio.Future[ProviderReply | None]] = {}
        self._request_ids = itertools.count(1)
        self._process: asyncio.subprocess.Process | None = None

    async def run(self, models: Sequence[ModelSection]) -> None:
        """Start the process, and take what it returns until it ends; who still waits then is told that it is lost."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "auditor.models.helper_process",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            try:
                await self._receive_replies(process, models)
            finally:
                self._abandon_pending()
                with suppress(ProcessLookupError):
                    process.kill()  # nobody waits for what it has
                await process.communicate()
        except Exception as error:  # noqa: BLE001 - a run goes on without helpers
            log.warning("a process that helped to send requests is given up: %s", type(error).__name__)
        else:
            log.warning("a process that helped to send requests ended; they go out without it")

    async def _receive_replies(self, process: asyncio.subprocess.Process, models: Sequence[ModelSection]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        process.stdin.write(frame_message(CONFIG_ADAPTER.dump_json(HelperConfig(tuple(models), known_secrets()))))
        self.is_ready = await read_message(process.stdout) is not None
        while (data := await read_message(process.stdout)) is not None:
            returned = REPLY_ADAPTER.validate_json(data)
            if (future := self.pending.get(returned.id)) is None or future.done():
                continue
            if returned.error is None:
                future.set_result(returned.reply)
            else:
                told = f"a process that helps to send requests failed with {returned.error}."
                future.set_exception(AuditorError(told, "Give the same command again: nothing recorded is lost."))

    def _abandon_pending(self) -> None:
        self.is_ready = False
        for future in self.pending.values():
            if not future.done():
                future.set_result(None)

    async def send(self, call: Call, attempt_number: int, total_timeout_s: float | None) -> ProviderReply | None:
        """What came of a request; None where that will never be known.

        Raises:
            AuditorError: the process failed at it by a fault of its own.
        """
        assert self._process is not None
        assert self._process.stdin is not None
        parcel = HelperRequest(next(self._request_ids), call, attempt_number, total_timeout_s)
        future: asyncio.Future[ProviderReply | None] = asyncio.get_running_loop().create_future()
        self.pending[parcel.id] = future
        try:
            self._process.stdin.write(frame_message(REQUEST_ADAPTER.dump_json(parcel)))
            async with asyncio.timeout(None if total_timeout_s is None else total_timeout_s + HELPER_GRACE_PERIOD_S):
                return await future
        except TimeoutError:
            self.is_ready = False
            with suppress(ProcessLookupError):
                self._process.kill()  # it hangs; its death tells all others that wait for it
            return None
        finally:
            del self.pending[parcel.id]


class MultiprocessDispatcher:
    """Sends from this process and from helpers, which begin where it can do no more.

    What must be computed or asked on this machine itself stays in this process.
    """

    def __init__(self, models: Iterable[ModelSection], n_helpers: int) -> None:
        """Resolve keys and start embedded models, as `Sending`; no helper begins yet.

        Args:
            models: all that may be asked.
            helpers: processes beside this one.

        Raises:
            ConfigError: a key is not in the environment.
            ModelSetupError: an embedded model cannot be started.
        """
        models = list(models)
        self._local_dispatcher = LocalDispatcher(models)
        self._remote_models = {m.name: m for m in models if not m.model.startswith(EMBEDDED_PREFIX)}
        self._helpers = [HelperProcess() for _ in range(n_helpers)]
        self._helper_tasks: list[asyncio.Task[None]] = []
        self._last_load_check = time.monotonic(), time.thread_time()

    async def send(self, call: Call, attempt_number: int, total_timeout_s: float | None) -> ProviderReply:
        """Send from whoever has least to do.

        Raises:
            ModelSetupError: the weights to compute with cannot be loaded.
            AuditorError: a helper failed at it by a fault of its own.
        """
        if self._is_busy() and not self._helper_tasks:
            self._helper_tasks = [asyncio.create_task(h.run(list(self._remote_models.values()))) for h in self._helpers]
        ready = [helper for helper in self._helpers if helper.is_ready]
        if not ready or call.name not in self._remote_models or call.measure is LogprobMeasure.CONTINUATION:
            return await self._local_dispatcher.send(call, attempt_number, total_timeout_s)
        began = datetime.now(UTC)
        reply = await min(ready, key=lambda helper: len(helper.pending)).send(call, attempt_number, total_timeout_s)
        return _helper_died_reply(call, attempt_number, began) if reply is None else reply

    def _is_busy(self) -> bool:
        (before, spent), now = self._last_load_check, time.monotonic()
        if now - before < LOAD_CHECK_INTERVAL_S:
            return False
        self._last_load_check = now, time.thread_time()
        return self._last_load_check[1] - spent >= BUSY_CPU_SHARE * (now - before)

    async def close(self) -> None:
        """Let the helpers end, and close connections."""
        for task in self._helper_tasks:
            task.cancel()
        await asyncio.gather(*self._helper_tasks, return_exceptions=True)
        await self._local_dispatcher.close()


def _helper_died_reply(call: Call, attempt_number: int, started_at: datetime) -> ProviderReply:
    """A request whose helper died: it may have been paid for, and is asked again."""
    error = "the process that sent it died"
    took = (datetime.now(UTC) - started_at).total_seconds()
    failure = RequestFailure(Outcome.SERVER_ERROR, is_retryable=True, blocks_model=False, error=error)
    attempt = Attempt(
        number=attempt_number, started_at=started_at, latency_s=took, outcome=failure.outcome, error=error
    )
    return ProviderReply(replace(failed_answer(call, failure), attempts=(attempt,)), failure)
