"""Book-keeping of calls: that one goes out, and what came of it, is in the ledger before anybody uses it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

from auditor.agents.run_context import ModelClient
from auditor.domain import Answer, Call
from auditor.errors import AuditorError
from auditor.failpoints import failpoint
from auditor.storage import ledger
from auditor.storage.database import Database


class AnsweredCall(Protocol):
    """What came of a call, with its answer: a data class."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def answer(self) -> Answer:
        """As it is recorded."""
        ...


T = TypeVar("T", bound=AnsweredCall)


@dataclass(frozen=True, slots=True)
class CallRecorder:
    """Where calls are noted.

    Attributes:
        audit_id: whose calls these are.
        run: names whoever asks among all that ever did; what it has not settled when it dies may be paid for in vain.
    """

    db: Database
    audit_id: int
    run_id: str

    async def ask_and_record(self, call: Call, send: Callable[[Call], Awaitable[T]]) -> T:
        """What came of a call, recorded: that it was asked before it goes out, and its answer at once.

        An answer that the database cannot hold is returned as a failure of this call.

        Raises:
            AuditorError: nothing could be asked, or nothing more can be recorded.
        """
        failpoint("before_dispatch")
        await ledger.record_dispatch(self.db, self.run_id, self.audit_id, call)
        try:
            found = await send(call)
        except AuditorError as error:
            if error.answer is None:
                await ledger.clear_dispatch(self.db, self.run_id, call)
            else:
                await ledger.record_answer(self.db, call, error.answer, run_id=self.run_id, audit_id=self.audit_id)
            raise
        failpoint("after_response")
        answer = await ledger.record_answer(self.db, call, found.answer, run_id=self.run_id, audit_id=self.audit_id)
        failpoint("after_record")
        return found if answer is found.answer else replace(found, answer=answer)


@dataclass(frozen=True, slots=True)
class _BareAnswer:
    answer: Answer


class RecordingClient:
    """Asks, and records."""

    def __init__(self, client: ModelClient, recorder: CallRecorder) -> None:
        """Wrap whoever answers, and does not record it."""
        self._client, self._recorder = client, recorder

    async def complete(self, call: Call) -> Answer:
        """The answer, once it is recorded.

        Raises:
            ModelSetupError: the model cannot be used at all.
            StorageError: nothing more can be recorded.
        """
        return (await self._recorder.ask_and_record(call, self._send)).answer

    async def _send(self, call: Call) -> _BareAnswer:
        return _BareAnswer(await self._client.complete(call))
