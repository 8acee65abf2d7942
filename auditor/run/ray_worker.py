"""A worker of a cluster: sends requests from its host, with that host's keys; it opens no database."""

from __future__ import annotations

import asyncio
import platform
import traceback
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from auditor import bootstrap
from auditor.config import AuditConfig
from auditor.domain import Call, Capability
from auditor.errors import AuditorError
from auditor.run.api_keys import remember_secrets, require_keys

if TYPE_CHECKING:
    from auditor.models.provider_request import ProviderReply


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


@dataclass(frozen=True, slots=True)
class WorkerRequest:
    """One request to be sent.

    Attributes:
        id: identifies the request between driver and worker.
        call: the call to be sent.
        attempt_number: number of this attempt at the call, from 1.
        total_timeout_s: time limit in seconds; None for no limit.
        capability: what the model's server accepts.
    """

    id: int
    call: Call
    attempt_number: int
    total_timeout_s: float | None
    capability: Capability


NumberedReply = tuple[int, "ProviderReply | AuditorError"]
"""A request's id, and its reply or error."""


class WorkerActor:
    """The Ray actor: sends requests in its own event loop.

    Errors are returned as values, with the host's name in the message.
    """

    def __init__(self) -> None:
        self._host = platform.node()
        self._tasks: set[asyncio.Task[None]] = set()
        self._replies: list[NumberedReply] = []
        self._has_replies = asyncio.Event()
        self._exit_stack = AsyncExitStack()

    async def start(self, worker_config: WorkerConfig) -> str | AuditorError:
        """Check keys, and open connections; returns the host's name, or an error."""
        try:
            self._prepare(worker_config)
        except AuditorError as error:
            return self._with_host_name(error)
        return self._host

    async def accept_requests(self, requests: Iterable[WorkerRequest]) -> None:
        """Start some requests; `collect_replies` returns their replies."""
        for request in requests:
            task = asyncio.create_task(self._run_request(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def collect_replies(self) -> list[NumberedReply]:
        """Replies since the last call; waits until there is one."""
        await self._has_replies.wait()
        self._has_replies.clear()
        replies, self._replies = self._replies, []
        return replies

    async def stop(self) -> None:
        """Cancel open requests, and close connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._exit_stack.aclose()

    def _prepare(self, worker_config: WorkerConfig) -> None:
        """Check version and keys, and open the connections; raises AuditorError if one fails."""
        bootstrap.prepare_environment()
        from auditor.models.dispatch import LocalDispatcher  # loads httpx (0.5 s)

        if (installed_version := metadata.version("auditor")) != worker_config.version:
            raise AuditorError(
                f"the installed auditor is version {installed_version}, not {worker_config.version}.",
                "Install the same version on every host.",
            )
        models = [worker_config.config.model(name) for name in worker_config.models]
        require_keys(worker_config.config, models)
        remember_secrets(worker_config.secret_variables)
        self._dispatcher = LocalDispatcher(models)
        self._exit_stack.push_async_callback(self._dispatcher.close)

    async def _run_request(self, request: WorkerRequest) -> None:
        """Handle one request, and queue its reply or error."""
        reply_or_error: ProviderReply | AuditorError
        try:
            reply_or_error = await self._dispatcher.send(
                request.call, request.attempt_number, request.total_timeout_s, request.capability
            )
        except AuditorError as error:
            reply_or_error = self._with_host_name(error)
        except Exception as error:  # noqa: BLE001 - the driver reports it, and ends the run
            failed_frame = traceback.extract_tb(error.__traceback__)[-1]
            message = f"a worker failed with {type(error).__name__} at {failed_frame.name}, line {failed_frame.lineno}."
            reply_or_error = self._with_host_name(
                AuditorError(message, "To resume, run the same command again. Recorded answers are kept.")
            )
        self._replies.append((request.id, reply_or_error))
        self._has_replies.set()

    def _with_host_name(self, error: AuditorError) -> AuditorError:
        """A copy of an error whose message begins with this host's name."""
        return type(error)(f"on the host {self._host}: {error.message}", error.how_to_fix)
