"""Workers and who leads them, and deaths that a real cluster has too seldom for a test.

tests/e2e/test_ray.py has real ones.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import metadata
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.domain import Answer, Call, Message, Outcome, Purpose
from auditor.errors import AuditorError, ModelSetupError
from auditor.run import describe_environment, fingerprint, load_planned_survey
from auditor.run.ray_cluster import WorkerDied
from auditor.run.ray_pool import MAX_CONSECUTIVE_DEATHS, RayDispatcher, WorkerSlot
from auditor.run.ray_worker import WorkerActor, WorkerConfig, WorkerRequest
from auditor.storage import audits, ledger
from auditor.storage.database import Database, open_database
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.fake_server import FakeServer, answer, completion


class Near:
    """A worker in this process, that can be given up as if its host had gone: it may live on, unheard."""

    def __init__(self) -> None:
        self.worker = WorkerActor()
        self.gone = asyncio.Event()

    async def call_method(self, method: str, *args: object) -> Any:
        doing = asyncio.ensure_future(getattr(self.worker, method)(*args))
        dying = asyncio.ensure_future(self.gone.wait())
        await asyncio.wait([doing, dying], return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        if self.gone.is_set():
            raise WorkerDied
        return doing.result()

    def terminate(self) -> None:
        self.gone.set()


@pytest.fixture
def db(storage: str) -> Iterator[Database]:
    with open_database(storage) as found:
        yield found


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)


def orders(db: Database, audit: AuditConfig, **changes: Any) -> WorkerConfig:
    survey = load_planned_survey(audit)
    made = {"config": audit.model_dump_json(), "config_hash": fingerprint(audit), "survey": survey}
    saved = audits.save_audit(db, name=audit.name, environment=describe_environment(), **made)  # type: ignore[arg-type]
    told = WorkerConfig(audit, ("model-a",), (), db.url, saved.id, metadata.version("auditor"))
    return replace(told, **changes)


def call(audit: AuditConfig, sample: int = 0) -> Call:
    model = audit.models[0]
    asked = (Message("user", "Is it right?"),)
    return Call(model.name, model.model, asked, Purpose.DIRECT, sample, {"seed": sample}, server=model.api_base)


@asynccontextmanager
async def crew_of(
    told: WorkerConfig, hired: list[Near], posts: int = 1, note: Callable[[str], None] = lambda _: None
) -> AsyncIterator[RayDispatcher]:
    def hire() -> Any:
        hired.append(Near())
        return hired[-1]

    def man(_: str | None, changed: Callable[[], None]) -> list[WorkerSlot]:
        return [WorkerSlot(hire, told, changed) for _ in range(posts)]

    crew = RayDispatcher(lambda _: None, man, note)
    try:
        yield crew
    finally:
        await crew.close()
        for one in hired:
            await one.worker.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another thread
            await asyncio.sleep(0.01)


async def test_a_missing_key_is_named_with_its_host(
    server: FakeServer, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    async with crew_of(orders(db, config(server.url)), []) as crew:
        with pytest.raises(AuditorError, match=KEY_VARIABLE) as found:
            await crew.wait_for_first_worker()
    assert found.value.message.startswith(f"on the host {platform.node()}: model 'model-a'")
    assert server.requests == []


async def test_a_host_whose_owner_does_not_trust_a_server_sends_it_no_key(
    server: FakeServer, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AUDITOR_TRUST")
    async with crew_of(orders(db, config(server.url)), []) as crew:
        with pytest.raises(AuditorError, match="which you have not allowed"):
            await crew.wait_for_first_worker()


async def test_another_version_of_the_program_is_refused(server: FakeServer, db: Database) -> None:
    told = orders(db, config(server.url), version="0.0.1")
    async with crew_of(told, []) as crew:
        with pytest.raises(AuditorError, match=r"not 0\.0\.1"):
            await crew.wait_for_first_worker()


async def test_what_comes_back_is_recorded_and_its_body_stays_behind(server: FakeServer, db: Database) -> None:
    audit = config(server.url)
    asked = call(audit)
    async with crew_of(orders(db, audit), []) as crew:
        reply = await crew.send(asked, 1, 60.0)
    assert reply.answer.outcome is Outcome.OK
    assert [attempt.body for attempt in reply.answer.attempts] == [None]
    assert ledger.load_answers(db, [asked.key]) == {asked.key: replace(reply.answer, attempts=())}
    assert ledger.count_attempts(db) == 1


async def test_a_worker_removes_the_keys_of_models_that_others_ask(
    server: FakeServer, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = config(server.url)
    monkeypatch.setenv("ANOTHER_KEY", "key-of-another-model")
    server.script = lambda _: completion("it is key-of-another-model")
    async with crew_of(orders(db, audit, secret_variables=("ANOTHER_KEY", "NOT_SET_HERE")), []) as crew:
        reply = await crew.send(call(audit), 1, 60.0)
    assert reply.answer.text == "it is [key removed]"
    assert ledger.load_answers(db, [reply.answer.key])[reply.answer.key].text == "it is [key removed]"


async def test_when_a_worker_dies_another_asks_and_what_may_be_lost_is_counted(
    server: FakeServer, db: Database
) -> None:
    audit, hired = config(server.url), list[Near]()
    server.script = lambda request: replace(answer(request), delay_s=60.0 if request.number == 0 else 0.0)
    told, notes = orders(db, audit), list[str]()
    async with crew_of(told, hired, note=notes.append) as crew:
        sent = asyncio.create_task(crew.send(call(audit), 1, 60.0))
        await until(lambda: len(server.requests) == 1)
        hired[0].terminate()
        assert (await sent).answer.outcome is Outcome.OK
    assert (len(hired), len(server.requests)) == (2, 2)
    [note] = notes
    assert note.startswith(f"The worker on {platform.node()} died; its 1 open call goes to another worker. Ray's logs")
    from auditor.storage.costs import count_unreturned_calls

    assert [tally.calls for tally in count_unreturned_calls(db, told.audit_id)] == [1]


async def test_the_answer_is_the_recorded_one_though_a_worker_given_up_recorded_it(
    server: FakeServer, db: Database
) -> None:
    audit = config(server.url)
    asked = call(audit)
    worker = WorkerActor()
    assert await worker.start(orders(db, audit)) == platform.node()
    await ledger.record_answer(db, asked, Answer(asked.key, Outcome.OK, text="as recorded"))
    await worker.accept_requests([WorkerRequest(1, asked, 1, 60.0, is_resend=True)])
    [(number, reply)] = await worker.collect_replies()
    await worker.stop()
    assert not isinstance(reply, AuditorError)
    assert (number, reply.answer.text, server.requests) == (1, "as recorded", [])


async def test_workers_that_die_one_after_another_end_the_run(
    server: FakeServer, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    hired: list[Near] = []

    async def dies(self: WorkerActor, told: WorkerConfig) -> str:
        hired[-1].terminate()
        return "here"

    monkeypatch.setattr(WorkerActor, "start", dies)
    notes: list[str] = []
    async with crew_of(orders(db, config(server.url)), hired, note=notes.append) as crew:
        with pytest.raises(ModelSetupError, match="died one after another"):
            await crew.wait_for_first_worker()
    assert len(hired) == MAX_CONSECUTIVE_DEATHS
    assert [note.split(".")[0] for note in notes] == ["A worker died before it began"] * MAX_CONSECUTIVE_DEATHS


async def test_whoever_has_least_to_do_is_asked(server: FakeServer, db: Database) -> None:
    audit, hired = config(server.url), list[Near]()
    server.script = lambda request: replace(answer(request), delay_s=0.2)
    async with crew_of(orders(db, audit), hired, posts=2) as crew:
        await crew.wait_for_first_worker()
        await until(lambda: len(hired) == 2)
        await asyncio.gather(*(crew.send(call(audit, sample), 1, 60.0) for sample in range(10)))
    assert len(server.requests) == 10


async def test_a_fault_of_the_program_is_told_and_ends_the_run(
    server: FakeServer, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = config(server.url)

    async def fails(*_: object) -> None:
        raise ZeroDivisionError

    async with crew_of(orders(db, audit), []) as crew:
        await crew.wait_for_first_worker()
        monkeypatch.setattr(ledger, "record_dispatch", fails)
        with pytest.raises(AuditorError, match="failed with ZeroDivisionError at fails"):
            await crew.send(call(audit), 1, 60.0)
