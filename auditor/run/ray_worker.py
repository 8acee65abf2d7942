"""A worker of a cluster: sends requests from its host, with that host's keys; it opens no database."""

from __future__ import annotations

import asyncio
import platform
import traceback
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from importlib import metadata

from auditor import bootstrap
from auditor.config import AuditConfig
from auditor.config.trust import remember_secrets, require_keys
from auditor.errors import AuditorError
from auditor.models.dispatch import (
    REPLIES_ADAPTER,
    REQUESTS_ADAPTER,
    Dispatcher,
    LocalDispatcher,
    WorkerReply,
    WorkerRequest,
)

MAX_WAITING_REPLIES, MAX_COLLECT_DELAY_S = 20, 0.05
"""The driver collects a worker's replies when this many wait, or the first has waited for this many seconds.

Those that wait are lost if the worker dies. One message for several replies saves the driver's CPU time.
"""


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Configuration of a worker, without keys.

    Attributes:
        config: the audit's configuration, which names the environment variables of keys.
        models: names of the models that the worker sends requests to.
        secret_variables: names of all variables that hold a key of the audit; a server may echo any of them.
        version: version of auditor; every host must have the same.
    """

    config: AuditConfig
    models: tuple[str, ...]
    secret_variables: tuple[str, ...]
    version: str


class WorkerActor:
    """The Ray actor: sends requests in its own event loop.

    Errors are returned as values, with the host's name in the message.
    """

    def __init__(self, worker_config: WorkerConfig) -> None:
        self._config = worker_config
        self._host = platform.node()
        self._dispatcher: Dispatcher | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._replies: list[WorkerReply] = []
        self._errors: list[tuple[int, AuditorError]] = []
        self._n_open_requests = 0
        self._has_replies, self._must_collect = asyncio.Event(), asyncio.Event()
        self._exit_stack = AsyncExitStack()

    async def name_host(self) -> str:
        """The host's name: the answer shows that the worker, or the one that replaced it, has started."""
        return self._host

    async def open(self) -> AuditorError | None:
        """Check keys, and open connections; returns an error if one fails. A second call has no effect."""
        try:
            if self._dispatcher is None:
                self._dispatcher = self._create_dispatcher()
        except AuditorError as error:
            return self._with_host_name(error)
        return None

    async def accept_requests(self, requests: bytes) -> None:
        """Start some requests, given as JSON; `collect_replies` returns their replies."""
        if self._dispatcher is None:
            return  # meant for the worker that this one replaces; the driver has recorded them as lost
        for request in REQUESTS_ADAPTER.validate_json(requests):
            self._n_open_requests += 1
            task = asyncio.create_task(self._run_request(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def collect_replies(self) -> tuple[bytes, list[tuple[int, AuditorError]]]:
        """Replies since the last call, as JSON, and errors by request id; waits until there is one.

        A reply waits for others for `MAX_COLLECT_DELAY_S` at most, and not at all if no request is open.
        """
        await self._has_replies.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(MAX_COLLECT_DELAY_S):
                await self._must_collect.wait()
        replies, self._replies = self._replies, []
        errors, self._errors = self._errors, []
        self._has_replies.clear()
        self._must_collect.clear()
        return REPLIES_ADAPTER.dump_json(replies), errors

    async def stop(self) -> None:
        """Cancel open requests, and close connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._exit_stack.aclose()

    def _create_dispatcher(self) -> Dispatcher:
        """Check version and keys, and create what sends requests; raises AuditorError if a check fails."""
        bootstrap.prepare_environment()
        if (installed_version := metadata.version("auditor")) != self._config.version:
            raise AuditorError(
                f"the installed auditor is version {installed_version}, not {self._config.version}.",
                "Install the same version on every host.",
            )
        models = [self._config.config.model(name) for name in self._config.models]
        require_keys(self._config.config, models)
        remember_secrets(self._config.secret_variables)
        dispatcher = LocalDispatcher(models)
        self._exit_stack.enter_context(bootstrap.infrequent_garbage_collection())
        self._exit_stack.push_async_callback(dispatcher.close)
        return dispatcher

    async def _run_request(self, request: WorkerRequest) -> None:
        """Handle one request, and queue its reply or error."""
        assert self._dispatcher is not None
        try:
            reply = await self._dispatcher.send(
                request.call, request.attempt_number, request.total_timeout_s, request.capability
            )
            self._replies.append(WorkerReply(request.id, reply))
        except AuditorError as error:
            self._errors.append((request.id, self._with_host_name(error)))
        except Exception as error:  # noqa: BLE001 - the driver reports it, and ends the run
            failed_frame = traceback.extract_tb(error.__traceback__)[-1]
            message = f"a worker failed with {type(error).__name__} at {failed_frame.name}, line {failed_frame.lineno}."
            how_to_fix = "To resume, run the same command again. Recorded answers are kept."
            self._errors.append((request.id, self._with_host_name(AuditorError(message, how_to_fix))))
        self._n_open_requests -= 1
        self._has_replies.set()
        if len(self._replies) + len(self._errors) >= MAX_WAITING_REPLIES or self._n_open_requests == 0:
            self._must_collect.set()

    def _with_host_name(self, error: AuditorError) -> AuditorError:
        """A copy of an error whose message begins with this host's name."""
        return type(error)(f"on the host {self._host}: {error.message}", error.how_to_fix)
