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
    from auditor.models.provider_request import Reply


@dataclass(frozen=True, slots=True)
class Orders:
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
    secrets: tuple[str, ...]
    storage: str
    audit_id: int
    version: str


@dataclass(frozen=True, slots=True)
class Request:
    """One request to be sent.

    Attributes:
        id: names it between driver and worker.
        number: which attempt at the call this is, from 1.
        limit_s: seconds that it may take; None where none can be passed.
        again: whether a worker died over it, and may have recorded an answer first.
    """

    id: int
    call: Call
    number: int
    limit_s: float | None
    again: bool = False


Result = tuple[int, "Reply | AuditorError"]


class Worker:
    """Sends and records, in an event loop of its own. Errors are handed over as values, in words that name the host."""

    def __init__(self) -> None:
        self._host = platform.node()
        self._tasks: set[asyncio.Task[None]] = set()
        self._results: list[Result] = []
        self._some = asyncio.Event()
        self._open = AsyncExitStack()

    async def start(self, orders: Orders) -> str | AuditorError:
        """Get ready: keys, connections, the database. Returns the host's name, or what is wrong there."""
        try:
            self._prepare(orders)
        except AuditorError as error:
            return self._named(error)
        return self._host

    async def take(self, requests: Iterable[Request]) -> None:
        """Begin with some requests; `finished` hands out what comes of them."""
        for request in requests:
            task = asyncio.create_task(self._work(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def finished(self) -> list[Result]:
        """What is done since the last time; waits until something is."""
        await self._some.wait()
        self._some.clear()
        found, self._results = self._results, []
        return found

    async def stop(self) -> None:
        """Let go of all that is open here; what is under way is given up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._open.aclose()

    def _prepare(self, orders: Orders) -> None:
        bootstrap.prepare()
        from auditor.agents.recording import Book
        from auditor.models.dispatch import Sending
        from auditor.run.api_keys import remember_secrets, require_keys
        from auditor.storage.database import open_database

        if (here := metadata.version("auditor")) != orders.version:
            raise AuditorError(f"auditor is {here}, not {orders.version}.", "Install the same version on every host.")
        models = [orders.config.model(name) for name in orders.models]
        require_keys(orders.config, models)
        remember_secrets(orders.secrets)
        self._db = self._open.enter_context(open_database(orders.storage, create=False))
        # A run of its own: what it has not settled when it dies was perhaps paid for in vain, and is counted so.
        self._book = Book(self._db, orders.audit_id, uuid.uuid4().hex)
        self._sender = Sending(models)
        self._open.push_async_callback(self._sender.close)

    async def _work(self, request: Request) -> None:
        result: Reply | AuditorError
        try:
            result = await (self._again(request) if request.again else self._send(request))
        except AuditorError as error:
            result = self._named(error)
        except Exception as error:  # noqa: BLE001 - the driver ends the run with it; here nobody would see it
            at = traceback.extract_tb(error.__traceback__)[-1]
            told = f"a worker failed with {type(error).__name__} at {at.name}, line {at.lineno}."
            result = self._named(AuditorError(told, "Give the same command again: nothing recorded is lost."))
        self._results.append((request.id, result))
        self._some.set()

    async def _send(self, request: Request) -> Reply:
        reply = await self._book.keep(
            request.call, lambda call: self._sender.send(call, request.number, request.limit_s)
        )
        bodiless = tuple(replace(attempt, body=None) for attempt in reply.answer.attempts)  # they are recorded
        return replace(reply, answer=replace(reply.answer, attempts=bodiless))

    async def _again(self, request: Request) -> Reply:
        """What the ledger has is the answer, whoever recorded it: a worker that was given up may do so at any time."""
        from auditor.models.provider_request import Reply

        if (known := await self._recorded(request.call)) is not None:
            return Reply(known, None)
        reply = await self._send(request)
        known = await self._recorded(request.call)
        return reply if known is None else replace(reply, answer=replace(known, attempts=reply.answer.attempts))

    async def _recorded(self, call: Call) -> Answer | None:
        from auditor.storage import ledger

        return (await asyncio.to_thread(ledger.answers, self._db, [call.key])).get(call.key)

    def _named(self, error: AuditorError) -> AuditorError:
        return type(error)(f"on the host {self._host}: {error.message}", error.mend)
