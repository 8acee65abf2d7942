"""Send requests from several processes: from this one, and from helper processes once this one is busy."""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from auditor.config import EMBEDDED_PREFIX, ModelSection
from auditor.domain import Call, Capability, LogprobMeasure
from auditor.errors import AuditorError
from auditor.models.dispatch import LocalDispatcher
from auditor.models.endpoint import DEFAULT_CAPABILITY
from auditor.models.helper_process import (
    CONFIG_ADAPTER,
    REPLY_ADAPTER,
    REQUEST_ADAPTER,
    HelperConfig,
    HelperRequest,
    frame_message,
    read_message,
)
from auditor.models.provider_request import ProviderReply, sender_died_reply
from auditor.redaction import known_secrets

LOAD_CHECK_INTERVAL_S, BUSY_CPU_SHARE = 10.0, 0.6
"""Helpers start when the event loop has used the CPU for this share of this many seconds: calls then wait for it.

If calls wait for slow answers, one process is enough, and starting a helper takes some seconds of CPU time."""
MAX_HELPERS = 4
"""With more helpers, this process, which records all answers, would be the bottleneck."""
HELPER_GRACE_PERIOD_S = 30.0
"""A helper that is later than a request's time limit by this much is taken to hang."""

log = logging.getLogger(__name__)


def max_helpers(cores: int | None) -> int:
    """Number of helpers that a machine with this many cores may have; 0 if the number is unknown or 1."""
    return 0 if cores is None else min(cores - 1, MAX_HELPERS)


class HelperProcess:
    """A helper process that sends requests (`auditor.models.helper_process`).

    Attributes:
        is_ready: whether it accepts requests.
        pending: futures of the replies it still owes, by the request's id; None as a result means that it died.
    """

    def __init__(self) -> None:
        """Create the handle; `run` starts the process."""
        self.is_ready = False
        self.pending: dict[int, asyncio.Future[ProviderReply | None]] = {}
        self._request_ids = itertools.count(1)
        self._process: asyncio.subprocess.Process | None = None

    async def run(self, models: Sequence[ModelSection]) -> None:
        """Start the process and receive its replies until it ends; pending requests then get None as their reply."""
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
                    process.kill()  # its replies are no longer needed
                await process.communicate()
        except Exception as error:  # noqa: BLE001 - a run goes on without helpers
            log.warning("a helper process that sends requests was stopped: %s", type(error).__name__)
        else:
            log.warning("a helper process that sends requests exited; the remaining processes send its requests")

    async def _receive_replies(self, process: asyncio.subprocess.Process, models: Sequence[ModelSection]) -> None:
        """Configure the process, then pass each reply to the request that waits for it, until the process ends."""
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        process.stdin.write(frame_message(CONFIG_ADAPTER.dump_json(HelperConfig(tuple(models), known_secrets()))))
        self.is_ready = await read_message(process.stdout) is not None
        while (reply_json := await read_message(process.stdout)) is not None:
            helper_reply = REPLY_ADAPTER.validate_json(reply_json)
            if (future := self.pending.get(helper_reply.id)) is None or future.done():
                continue
            if helper_reply.error is None:
                future.set_result(helper_reply.reply)
            else:
                message = f"a helper process that sends requests failed with {helper_reply.error}."
                future.set_exception(AuditorError(message, "Run the same command again. Recorded answers are kept."))

    def _abandon_pending(self) -> None:
        """Resolve all pending requests to None: their replies are lost."""
        self.is_ready = False
        for future in self.pending.values():
            if not future.done():
                future.set_result(None)

    async def send(
        self, call: Call, attempt_number: int, total_timeout_s: float | None, capability: Capability
    ) -> ProviderReply | None:
        """Send a request by the process and return the reply; None if the process died or hangs.

        Raises:
            AuditorError: the process itself failed, not the provider.
        """
        assert self._process is not None
        assert self._process.stdin is not None
        request = HelperRequest(next(self._request_ids), call, attempt_number, total_timeout_s, capability)
        future: asyncio.Future[ProviderReply | None] = asyncio.get_running_loop().create_future()
        self.pending[request.id] = future
        try:
            self._process.stdin.write(frame_message(REQUEST_ADAPTER.dump_json(request)))
            async with asyncio.timeout(None if total_timeout_s is None else total_timeout_s + HELPER_GRACE_PERIOD_S):
                return await future
        except TimeoutError:
            self.is_ready = False
            with suppress(ProcessLookupError):
                self._process.kill()  # it hangs; `run` then ends all other requests that wait for it
            return None
        finally:
            del self.pending[request.id]


class MultiprocessDispatcher:
    """Sends requests from this process and from helper processes, which start when this process is busy.

    Embedded models and log-probabilities of continuations stay in this process.
    """

    def __init__(self, models: Iterable[ModelSection], n_helpers: int) -> None:
        """Resolve API keys and start embedded models, as `LocalDispatcher` does; no helper is started yet.

        Args:
            models: all models that may be called.
            n_helpers: maximum number of helper processes.

        Raises:
            ConfigError: an API key is not in the environment.
            ModelSetupError: an embedded model cannot be started.
        """
        models = list(models)
        self._local_dispatcher = LocalDispatcher(models)
        self._remote_models = {model.name: model for model in models if not model.model.startswith(EMBEDDED_PREFIX)}
        self._helpers = [HelperProcess() for _ in range(n_helpers)]
        self._helper_tasks: list[asyncio.Task[None]] = []
        # Time of the last check, and the CPU time that this thread had used by then, both in seconds.
        self._last_load_check = time.monotonic(), time.thread_time()

    async def send(
        self,
        call: Call,
        attempt_number: int,
        total_timeout_s: float | None,
        capability: Capability = DEFAULT_CAPABILITY,
    ) -> ProviderReply:
        """Send one request from the helper with the fewest pending requests, or from this process if none is ready.

        Raises:
            ModelSetupError: the weights for log-probabilities cannot be loaded.
            AuditorError: a helper itself failed, not the provider.
        """
        if self._is_busy() and not self._helper_tasks:
            self._helper_tasks = [
                asyncio.create_task(helper.run(list(self._remote_models.values()))) for helper in self._helpers
            ]
        ready_helpers = [helper for helper in self._helpers if helper.is_ready]
        if not ready_helpers or call.name not in self._remote_models or call.measure is LogprobMeasure.CONTINUATION:
            return await self._local_dispatcher.send(call, attempt_number, total_timeout_s, capability)
        started_at = datetime.now(UTC)
        reply = await min(ready_helpers, key=lambda helper: len(helper.pending)).send(
            call, attempt_number, total_timeout_s, capability
        )
        return sender_died_reply(call, attempt_number, started_at) if reply is None else reply

    def _is_busy(self) -> bool:
        """Whether this thread used the CPU for `BUSY_CPU_SHARE` of the time since the last check.

        False until `LOAD_CHECK_INTERVAL_S` have passed since then.
        """
        (last_check_s, last_cpu_s), now_s = self._last_load_check, time.monotonic()
        if now_s - last_check_s < LOAD_CHECK_INTERVAL_S:
            return False
        self._last_load_check = now_s, time.thread_time()
        # [1] is the CPU time until now; the difference is the CPU time used since the last check.
        return self._last_load_check[1] - last_cpu_s >= BUSY_CPU_SHARE * (now_s - last_check_s)

    async def close(self) -> None:
        """Stop the helpers and close all connections."""
        for task in self._helper_tasks:
            task.cancel()
        await asyncio.gather(*self._helper_tasks, return_exceptions=True)
        await self._local_dispatcher.close()
