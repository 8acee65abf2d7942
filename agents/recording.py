"""Recording of calls: each call is noted in the ledger before it is sent, and its answer before it is used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from auditor.agents.run_context import ModelClient
from auditor.domain import Answer, Call
from auditor.errors import AuditorError
from auditor.failpoints import failpoint
from auditor.storage import ledger
from auditor.storage.database import Database


@dataclass(frozen=True, slots=True)
class CallRecorder:
    """Records calls in the ledger.

    Attributes:
        audit_id: the audit to which the calls belong.
        run_id: id of the run. Calls that it has sent but not recorded when it dies may have been paid for.
    """

    db: Database
    audit_id: int
    run_id: str

    async def ask_and_record(self, call: Call, send: Callable[[Call], Awaitable[Answer]]) -> Answer:
        """Send a call; record that it is sent beforehand, and its answer immediately afterwards.

        An answer that the database cannot store is returned as a failure of this call.

        Raises:
            AuditorError: the call cannot be sent, or the database cannot be written.
        """
        # Failpoints are where tests end the process, to check that nothing is lost or asked twice.
        failpoint("before_dispatch")
        await ledger.record_dispatch(self.db, self.run_id, self.audit_id, call)
        try:
            answer = await send(call)
        except AuditorError as error:
            if error.answer is None:
                await ledger.clear_dispatch(self.db, self.run_id, call)
            else:
                await ledger.record_answer(self.db, call, error.answer, run_id=self.run_id, audit_id=self.audit_id)
            raise
        failpoint("after_response")
        recorded_answer = await ledger.record_answer(self.db, call, answer, run_id=self.run_id, audit_id=self.audit_id)
        failpoint("after_record")
        return recorded_answer


class RecordingClient:
    """A model client that records all calls."""

    def __init__(self, client: ModelClient, recorder: CallRecorder) -> None:
        """Wrap a client that does not record calls."""
        self._client, self._recorder = client, recorder

    async def complete(self, call: Call) -> Answer:
        """Send a call and return its answer after it is recorded.

        Raises:
            ModelSetupError: the model cannot be used at all.
            StorageError: the database cannot be written.
        """
        return await self._recorder.ask_and_record(call, self._client.complete)
