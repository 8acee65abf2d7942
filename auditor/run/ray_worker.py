"""A worker of a cluster: sends requests from its own host, with that host's keys, and records what comes of them."""

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
from auditor.domain import Answer, Call
from auditor.errors import AuditorError

if TYPE_CHECKING:
    from auditor.models.provider_request import ProviderReply


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What a worker is told when it begins; no key and no password is in it.

    Attributes:
        config: names the variables that hold the keys.
        models: names of those that it asks.
        secrets: names of all variables that hold a key of the audit; a server may echo any of them.
        storage: URL of the database.
        version: of the program; every host must have the same.
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
        id: names it between driver and worker.
        number: which attempt at the call this is, from 1.
        limit_s: seconds that it may take; None where none can be passed.
        again: whether a worker died over it, and may have recorded an answer first.
    """

    id: int
    call: Call
    attempt_number: int
    total_timeout_s: float | None
    is_resend: bool = False


NumberedReply = tuple[int, "ProviderReply | AuditorError"]


class WorkerActor:
    """Sends and records, in an event loop of its own. Errors are handed over as values, in words that name the host."""

    def __init__(self) -> None:
        self._host = platform.node()
        self._tasks: set[asyncio.Task[None]] = set()
        self._replies: list[NumberedReply] = []
        self._has_replies = asyncio.Event()
        self._exit_stack = AsyncExitStack()

    async def start(self, worker_config: WorkerConfig) -> str | AuditorError:
        """Get ready: keys, connections, the database. Returns the host's name, or what is wrong there."""
        try:
            self._prepare(worker_config)
        except AuditorError as error:
            return self._with_host_name(error)
        return self._host

    async def accept_requests(self, requests: Iterable[WorkerRequest]) -> None:
        """Begin with some requests; `finished` hands out what comes of them."""
        for request in requests:
            task = asyncio.create_task(self._run_request(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def collect_replies(self) -> list[NumberedReply]:
        """What is done since the last time; waits until something is."""
        await self._has_replies.wait()
        self._has_replies.clear()
        found, self._replies = self._replies, []
        return found

    async def stop(self) -> None:
        """Let go of all that is open here; what is under way is given up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._exit_stack.aclose()

    def _prepare(self, worker_config: WorkerConfig) -> None:
        bootstrap.prepare_environment()
        from auditor.agents.recording import CallRecorder
        from auditor.models.dispatch import LocalDispatcher
        from auditor.run.api_keys import remember_secrets, require_keys
        from auditor.storage.database import open_database

        if (here := metadata.version("auditor")) != worker_config.version:
            raise AuditorError(
                f"auditor is {here}, not {worker_config.version}.", "Install the same version on every host."
            )
        models = [worker_config.config.model(name) for name in worker_config.models]
        require_keys(worker_config.config, models)
        remember_secrets(worker_config.secret_variables)
        self._db = self._exit_stack.enter_context(open_database(worker_config.storage_url, create=False))
        # A run of its own: what it has not settled when it dies was perhaps paid for in vain, and is counted so.
        self._recorder = CallRecorder(self._db, worker_config.audit_id, uuid.uuid4().hex)
        self._dispatcher = LocalDispatcher(models)
        self._exit_stack.push_async_callback(self._dispatcher.close)

    async def _run_request(self, request: WorkerRequest) -> None:
        result: ProviderReply | AuditorError
        try:
            result = await (
                self._resend_unless_recorded(request) if request.is_resend else self._send_and_record(request)
            )
        except AuditorError as error:
            result = self._with_host_name(error)
        except Exception as error:  # noqa: BLE001 - the driver ends the run with it; here nobody would see it
            at = traceback.extract_tb(error.__traceback__)[-1]
            told = f"a worker failed with {type(error).__name__} at {at.name}, line {at.lineno}."
            result = self._with_host_name(AuditorError(told, "Give the same command again: nothing recorded is lost."))
        self._replies.append((request.id, result))
        self._has_replies.set()

    async def _send_and_record(self, request: WorkerRequest) -> ProviderReply:
        reply = await self._recorder.ask_and_record(
            request.call, lambda call: self._dispatcher.send(call, request.attempt_number, request.total_timeout_s)
        )
        bodiless = tuple(replace(attempt, body=None) for attempt in reply.answer.attempts)  # they are recorded
        return replace(reply, answer=replace(reply.answer, attempts=bodiless))

    async def _resend_unless_recorded(self, request: WorkerRequest) -> ProviderReply:
        """What the ledger has is the answer, whoever recorded it: a worker that was given up may do so at any time."""
        from auditor.models.provider_request import ProviderReply

        if (known := await self._recorded_answer(request.call)) is not None:
            return ProviderReply(known, None)
        reply = await self._send_and_record(request)
        known = await self._recorded_answer(request.call)
        return reply if known is None else replace(reply, answer=replace(known, attempts=reply.answer.attempts))

    async def _recorded_answer(self, call: Call) -> Answer | None:
        from auditor.storage import ledger

        return (await asyncio.to_thread(ledger.load_answers, self._db, [call.key])).get(call.key)

    def _with_host_name(self, error: AuditorError) -> AuditorError:
        return type(error)(f"on the host {self._host}: {error.message}", error.how_to_fix)
