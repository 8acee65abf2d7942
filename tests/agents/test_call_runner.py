"""Many calls at once: those that wait for the disk hold no slots, and no more go out together than was said."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from auditor.agents.call_runner import run_calls
from auditor.agents.run_context import MIN_IN_FLIGHT_FOR_EXTRA_WORKERS, RunContext
from auditor.domain import Answer, Call, Message, Outcome, Purpose
from auditor.models.multiprocess_dispatch import MultiprocessDispatcher
from auditor.run import fingerprint, load_planned_survey
from auditor.run.model_access import run_with_models
from auditor.storage import audits, ledger
from auditor.storage.database import open_database
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.fake_server import FakeServer, Reply, Request, answer

CALLS = 120


@pytest.mark.parametrize(
    ("concurrency", "under_way"), [(MIN_IN_FLIGHT_FOR_EXTRA_WORKERS, MIN_IN_FLIGHT_FOR_EXTRA_WORKERS), (40, 50)]
)
def test_while_some_wait_for_the_disk_others_go_out(
    server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch, concurrency: int, under_way: int
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1")
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

    send = MultiprocessDispatcher.send

    async def watched(*args: Any) -> Any:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        try:
            return await send(*args)
        finally:
            open_now -= 1

    monkeypatch.setattr(MultiprocessDispatcher, "send", watched)

    async def work(context: RunContext) -> dict[str, Answer]:
        return await asyncio.wait_for(run_calls(context, "direct", calls), 60)

    with open_database(storage) as db:
        survey = load_planned_survey(audit)
        saved_audit = audits.save_audit(
            db,
            name=audit.name,
            environment={},
            config=audit.model_dump_json(),
            config_hash=fingerprint(audit),
            survey=survey,
        )
        answer_count = run_with_models(work, audit, survey, saved_audit, db)
        assert set(ledger.find_answered_keys(db, [c.key for c in calls])) == {c.key for c in calls}
    assert {a.outcome for a in answer_count.values()} == {Outcome.OK}
    assert len(server.requests) == CALLS
    assert most <= concurrency
