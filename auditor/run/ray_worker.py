"""A worker of a cluster: sends requests from its host, with that host's keys, and records the answers."""

from __future__ import annotations

import asyncio
import platform
import traceback
import uuid
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING

from auditor import bootstrap
from auditor.config import AuditConfig
from auditor.domain import Answer, Call, Capability
from auditor.errors import AuditorError
from auditor.run.api_keys import remember_secrets, require_keys
from auditor.storage import ledger
from auditor.storage.database import open_database

if TYPE_CHECKING:
    from auditor.models.provider_request import ProviderReply


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Configuration of a worker, without keys.

    Attributes:
        config: the audit's configuration, which names the environment variables of keys.
        models: names of the models that the worker sends requests to.
        secret_variables: names of all variables that hold a key of the audit; a server may echo any of them.
        storage_url: URL of the database.
        audit_id: id of the audit in the database.
        version: version of auditor; every host must have the same.
    """

    config: AuditConfig
    models: tuple[str, ...]
    secret_variables: tuple[str, ...]
    storage_url: str
    audit_id: int
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
        is_resend: whether an earlier worker died with the request open; it may have recorded an answer.
    """

    id: int
    call: Call
    attempt_number: int
    total_timeout_s: float | None
    capability: Capability
    is_resend: bool = False


NumberedReply = tuple[int, "ProviderReply | AuditorError"]
"""A request's id, and its reply or error."""


class WorkerActor:
    """The Ray actor: sends requests and records answers in its own event loop.

    Errors are returned as values, with the host's name in the message.
    """

    def __init__(self) -> None:
        self._host = platform.node()
        self._tasks: set[asyncio.Task[None]] = set()
        self._replies: list[NumberedReply] = []
        self._has_replies = asyncio.Event()
        self._exit_stack = AsyncExitStack()

    async def start(self, worker_config: WorkerConfig) -> str | AuditorError:
        """Check keys, and open the database and connections; returns the host's name, or an error."""
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
        """Cancel open requests, and close connections and the database."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._exit_stack.aclose()

    def _prepare(self, worker_config: WorkerConfig) -> None:
        """Check version and keys, and open the database and the connections; raises AuditorError if one fails."""
        bootstrap.prepare_environment()
        from auditor.agents.recording import CallRecorder  # loads scipy (1 s)
        from auditor.models.dispatch import LocalDispatcher  # loads httpx (0.5 s)

        if (installed_version := metadata.version("auditor")) != worker_config.version:
            raise AuditorError(
                f"auditor is {installed_version}, not {worker_config.version}.",
                "Install the same version on every host.",
            )
        models = [worker_config.config.model(name) for name in worker_config.models]
        require_keys(worker_config.config, models)
        remember_secrets(worker_config.secret_variables)
        self._db = self._exit_stack.enter_context(open_database(worker_config.storage_url, create=False))
        # A run id of its own: its unanswered requests count as possibly paid if it dies.
        self._recorder = CallRecorder(self._db, worker_config.audit_id, uuid.uuid4().hex)
        self._dispatcher = LocalDispatcher(models)
        self._exit_stack.push_async_callback(self._dispatcher.close)

    async def _run_request(self, request: WorkerRequest) -> None:
        """Handle one request, and queue its reply or error."""
        reply_or_error: ProviderReply | AuditorError
        try:
            reply_or_error = await (
                self._resend_unless_recorded(request) if request.is_resend else self._send_and_record(request)
            )
        except AuditorError as error:
            reply_or_error = self._with_host_name(error)
        except Exception as error:  # noqa: BLE001 - the driver reports it, and ends the run
            failed_frame = traceback.extract_tb(error.__traceback__)[-1]
            message = f"a worker failed with {type(error).__name__} at {failed_frame.name}, line {failed_frame.lineno}."
            reply_or_error = self._with_host_name(
                AuditorError(message, "Give the same command again: nothing recorded is lost.")
            )
        self._replies.append((request.id, reply_or_error))
        self._has_replies.set()

    async def _send_and_record(self, request: WorkerRequest) -> ProviderReply:
        """Send a request, and record its answer; the reply is returned without the bodies of its attempts."""
        reply = await self._recorder.ask_and_record(
            request.call,
            lambda call: self._dispatcher.send(
                call, request.attempt_number, request.total_timeout_s, request.capability
            ),
        )
        # The bodies are recorded; without them the message to the driver is smaller.
        attempts_without_body = tuple(replace(attempt, body=None) for attempt in reply.answer.attempts)
        return replace(reply, answer=replace(reply.answer, attempts=attempts_without_body))

    async def _resend_unless_recorded(self, request: WorkerRequest) -> ProviderReply:
        """Send a request unless the database has its answer; a recorded answer takes precedence over a new one.

        A worker that was given up as dead may record its answer at any time, also while this one sends the request.
        """
        from auditor.models.provider_request import ProviderReply  # loads httpx (0.4 s)

        if (recorded_answer := await self._recorded_answer(request.call)) is not None:
            return ProviderReply(recorded_answer, None)
        reply = await self._send_and_record(request)
        recorded_answer = await self._recorded_answer(request.call)
        return (
            reply
            if recorded_answer is None
            else replace(reply, answer=replace(recorded_answer, attempts=reply.answer.attempts))
        )

    async def _recorded_answer(self, call: Call) -> Answer | None:
        """The answer to a call that any worker has recorded in the database; None if there is none."""
        return (await asyncio.to_thread(ledger.load_answers, self._db, [call.key])).get(call.key)

    def _with_host_name(self, error: AuditorError) -> AuditorError:
        """A copy of an error whose message begins with this host's name."""
        return type(error)(f"on the host {self._host}: {error.message}", error.how_to_fix)
