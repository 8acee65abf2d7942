"""Recording of calls: each call is noted in the ledger before it is sent, and its answer before it is used."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.agents.run_context import ModelClient
from auditor.domain import Answer, Call
from auditor.errors import AuditorError
from auditor.failpoints import failpoint
from auditor.storage import ledger
from auditor.storage.database import Database


@dataclass(frozen=True, slots=True)
class CallRecorder:
    """Records the calls of one run in the ledger.

    Attributes:
        db: the database.
        audit_id: the audit to which the calls belong.
        run_id: id of the run. Calls that it has sent but not recorded when it dies may have been paid for.
    """

    db: Database
    audit_id: int
    run_id: str

    async def record_dispatch(self, call: Call) -> None:
        """Record that a call is about to be sent."""
        await ledger.record_dispatch(self.db, self.run_id, self.audit_id, call)

    async def clear_dispatch(self, call: Call) -> None:
        """Record that a call was not sent."""
        await ledger.clear_dispatch(self.db, self.run_id, call)

    async def record_answer(self, call: Call, answer: Answer) -> Answer:
        """Record a call's answer or failure, with its attempts, and return it as recorded.

        An answer that the database cannot store is returned as a failure of this call.

        Raises:
            StorageError: the database cannot be written.
        """
        return await ledger.record_answer(self.db, call, answer, run_id=self.run_id, audit_id=self.audit_id)


class RecordingClient:
    """Records each call that it passes on, and each answer before it returns it."""

    def __init__(self, client: ModelClient, recorder: CallRecorder) -> None:
        """Wrap a client that does not record calls."""
        self._client, self._recorder = client, recorder

    async def complete(self, call: Call) -> Answer:
        """Send a call and return its answer as recorded.

        Raises:
            ModelSetupError: the model cannot be used at all.
            AuditorError: the call cannot be sent, or the database cannot be written.
        """
        # Failpoints are where tests end the process, to check that nothing is lost or asked twice.
        failpoint("before_dispatch")
        await self._recorder.record_dispatch(call)
        try:
            answer = await self._client.complete(call)
        except AuditorError as error:
            if error.answer is None:
                await self._recorder.clear_dispatch(call)
            else:
                await self._recorder.record_answer(call, error.answer)
            raise
        failpoint("after_response")
        recorded_answer = await self._recorder.record_answer(call, answer)
        failpoint("after_record")
        return recorded_answer
