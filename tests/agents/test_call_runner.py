"""Many calls at once: those that wait for the disk hold no slots, and no more go out together than was said.

Truncated answers are asked again only under a higher limit, and stay on record.
"""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from auditor.agents.call_runner import CallRecorder, RecordingClient, run_calls
from auditor.agents.run_context import MIN_IN_FLIGHT_FOR_EXTRA_WORKERS, RunContext
from auditor.domain import Answer, Call, Capability, Message, Outcome, Purpose
from auditor.models.dispatch import LocalDispatcher
from auditor.run import load_planned_survey
from auditor.run.model_access import run_with_models
from auditor.storage import hash_chain, ledger
from auditor.storage.database import Database, open_database
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer, Reply, Request, answer
from tests.support.patience import PATIENCE_S
from tests.support.stored_rows import save_configured

CALLS = 120


@pytest.mark.parametrize(
    ("concurrency", "under_way"), [(MIN_IN_FLIGHT_FOR_EXTRA_WORKERS, MIN_IN_FLIGHT_FOR_EXTRA_WORKERS), (40, 50)]
)
def test_while_some_wait_for_the_disk_others_go_out(
    server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch, concurrency: int, under_way: int
) -> None:
    audit = config(server.url)
    first = audit.models[0].model_copy(update={"concurrency": concurrency})
    audit = audit.model_copy(update={"models": [first, *audit.models[1:]]})
    arrived, open_now, most = threading.Event(), 0, 0

    def counting(request: Request) -> Reply:
        if len(server.requests) >= under_way:
            arrived.set()
        return answer(request)

    server.script = counting
    record = ledger.record_answer

    async def held(*args: Any, **more: Any) -> Answer:
        """The disk takes nothing until as many have gone out as may be under way."""
        await asyncio.to_thread(arrived.wait, 60)
        return await record(*args, **more)

    monkeypatch.setattr(ledger, "record_answer", held)
    calls = [
        Call(first.name, first.model, (Message("user", f"question {i}"),), Purpose.DIRECT, server=first.api_base)
        for i in range(CALLS)
    ]

    send = LocalDispatcher.send

    async def watched(*args: Any) -> Any:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        try:
            return await send(*args)
        finally:
            open_now -= 1

    monkeypatch.setattr(LocalDispatcher, "send", watched)

    async def work(context: RunContext) -> dict[str, Answer]:
        return await asyncio.wait_for(run_calls(context, "direct", calls), PATIENCE_S)

    with open_database(storage) as db:
        survey = load_planned_survey(audit)
        saved_audit = save_configured(db, audit)
        answer_count = run_with_models(work, audit, survey, saved_audit, db)
        assert set(ledger.find_answered_keys(db, [c.key for c in calls])) == {c.key for c in calls}
    assert {a.outcome for a in answer_count.values()} == {Outcome.OK}
    assert len(server.requests) == CALLS
    assert most <= concurrency


@dataclass
class RoomyClient:
    """A model that needs `needed` output tokens, under a capability with room for thinking."""

    needed: int
    room: int = 0
    sent: list[Call] = field(default_factory=list)

    def needs_discovery(self, call: Call) -> bool:
        return False

    def capability(self, call: Call) -> Capability:
        return Capability(thinking_tokens=self.room)

    async def complete(self, call: Call) -> Answer:
        self.sent.append(call)
        limit = call.params["max_tokens"] + self.room
        outcome = Outcome.OK if limit >= self.needed else Outcome.TRUNCATED
        return Answer(call.key, outcome, text=f"within {limit}", sent=json.dumps({"max_completion_tokens": limit}))


CALL = Call("model-a", "openai/scripted-a", (Message("user", "?"),), Purpose.DIRECT, params={"max_tokens": 100})


def make_context(db: Database, client: RoomyClient) -> RunContext:
    """The context of a new run, which records what the client answers."""
    audit = config("http://127.0.0.1:1")
    survey = load_planned_survey(audit)
    saved = save_configured(db, audit)
    recording_client = RecordingClient(client, CallRecorder(db, saved.id, "run"))
    return RunContext(audit, survey, saved.id, [], db, recording_client, capabilities=client)


async def run_call(db: Database, client: RoomyClient) -> Answer:
    """Run the call as a new run would, and return the answer that the audit uses."""
    return (await run_calls(make_context(db, client), "elicit", [CALL]))[CALL.key]


async def test_a_truncated_answer_is_asked_again_once_the_limit_is_higher(db: Database) -> None:
    client = RoomyClient(needed=500)
    assert (await run_call(db, client)).outcome is Outcome.TRUNCATED
    assert (await run_call(db, client)).outcome is Outcome.TRUNCATED
    assert len(client.sent) == 1  # under the same limit it would be truncated and paid for again
    client.room = 1000
    retaken = await run_call(db, client)
    assert (retaken.outcome, retaken.text) == (Outcome.OK, "within 1100")
    assert await run_call(db, client) == retaken
    assert len(client.sent) == 2


async def test_the_truncated_answers_stay_on_record(db: Database) -> None:
    client = RoomyClient(needed=5000)
    answers = []
    for client.room in (0, 1000, 4900):
        answers.append(await run_call(db, client))
    assert [answer.text for answer in answers] == ["within 100", "within 1100", "within 5000"]
    assert [answer.outcome for answer in answers] == [Outcome.TRUNCATED, Outcome.TRUNCATED, Outcome.OK]
    keys = [replace(CALL, retake=number).key for number in range(3)]
    assert [answer.key for answer in answers] == keys
    assert keys[0] == CALL.key
    assert ledger.load_answers(db, keys) == dict(zip(keys, answers, strict=True))
    assert hash_chain.verify_chain(db).breaks == []


async def test_a_later_answer_is_used_although_the_limit_is_lower_again(db: Database) -> None:
    client = RoomyClient(needed=500)
    for client.room in (0, 1000):
        await run_call(db, client)
    client.room = 0
    assert (await run_call(db, client)).text == "within 1100"
    assert len(client.sent) == 2


async def test_a_retake_that_fails_is_repeated_by_the_next_run(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client = RoomyClient(needed=500)
    await run_call(db, client)
    client.room = 1000
    failure = Answer(CALL.key, Outcome.RATE_LIMITED, error="429")

    async def fail(call: Call) -> Answer:
        return replace(failure, key=call.key)

    with monkeypatch.context() as patch:
        patch.setattr(client, "complete", fail)
        assert (await run_call(db, client)).outcome is Outcome.RATE_LIMITED
    assert (await run_call(db, client)).outcome is Outcome.OK


async def test_equal_calls_of_two_lanes_are_sent_once(db: Database) -> None:
    """As long as one lane gets the answer, the other waits for it: a call that is sent twice is paid twice."""
    sent, both_sent = list[Call](), asyncio.Event()

    class HeldClient(RoomyClient):
        async def complete(self, call: Call) -> Answer:
            sent.append(call)
            if len(sent) == 2:
                both_sent.set()
            await both_sent.wait()
            return Answer(call.key, Outcome.OK, text="yes")

    context = make_context(db, HeldClient(1))
    other = replace(CALL, messages=(Message("user", "!"),))
    first, second = await asyncio.gather(
        *(run_calls(context, "direct", calls) for calls in ([CALL, other], [other, CALL]))
    )
    assert first == second
    assert {answer.text for answer in first.values()} == {"yes"}
    assert sorted(call.key for call in sent) == sorted([CALL.key, other.key])
    assert context.open_calls == {}
