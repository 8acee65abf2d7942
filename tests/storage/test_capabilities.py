"""Capabilities of models: the first one stored wins in every process; and how answers were requested."""

from __future__ import annotations

import asyncio
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from auditor.domain import AnswerForm, Capability, CapabilityKey, Outcome
from auditor.storage import capabilities, results
from auditor.storage.call_records import StoredCapability, serialize_capability
from auditor.storage.capabilities import Alteration, load_direct_alterations, load_scores_by_form
from auditor.storage.database import Database, open_database
from auditor.storage.records import load_records
from auditor.storage.row_classes import table_of
from tests.storage.test_database import save_sample_audit
from tests.support.forked_commands import CONTEXT
from tests.support.patience import PATIENCE_S
from tests.support.request_reports import change_answers, direct_keys
from tests.support.synthetic_audit import populate

KEY = CapabilityKey("openai/o3", "https://example.org/v1", "low")
WITHOUT_SEED = Capability(AnswerForm.JSON_SCHEMA, dropped_params=("seed",))
AS_TOOL = Capability(AnswerForm.TOOL, ("minLength", "maxLength"), ("temperature",), "max_completion_tokens", 4096)
WITHOUT_FORM = Capability(dropped_params=("seed",))
N_RACES = 20


async def save(
    db: Database, audit_id: int, capability: Capability, key: CapabilityKey = KEY, **options: Any
) -> Capability:
    return await capabilities.save_capability(db, audit_id, key, capability, "400: no seed", "1.2.3", **options)


async def test_a_stored_capability_is_read_back_as_it_was(db: Database) -> None:
    audit = save_sample_audit(db)
    assert await save(db, audit.id, AS_TOOL) == AS_TOOL
    [stored] = load_records(db, audit.id, StoredCapability)
    assert (stored.key, stored.number, stored.capability) == (KEY, 1, AS_TOOL)
    assert (stored.evidence, stored.litellm_version) == ("400: no seed", "1.2.3")
    assert stored.capability.id == AS_TOOL.id


async def test_the_first_stored_capability_wins(db: Database) -> None:
    audit = save_sample_audit(db)
    await save(db, audit.id, WITHOUT_SEED)
    assert await save(db, audit.id, AS_TOOL) == WITHOUT_SEED
    assert [stored.number for stored in load_records(db, audit.id, StoredCapability)] == [1]


async def test_a_capability_without_a_form_is_completed_and_stays_on_record(db: Database) -> None:
    audit = save_sample_audit(db)
    await save(db, audit.id, WITHOUT_FORM)
    assert await save(db, audit.id, WITHOUT_SEED) == WITHOUT_SEED
    assert await save(db, audit.id, WITHOUT_FORM) == WITHOUT_SEED
    history = load_records(db, audit.id, StoredCapability)
    assert [stored.capability for stored in history] == [WITHOUT_FORM, WITHOUT_SEED]
    assert capabilities.current_capabilities(history)[KEY].number == 2


async def test_a_rediscovered_capability_gets_a_new_number_once(db: Database) -> None:
    audit = save_sample_audit(db)
    await save(db, audit.id, WITHOUT_SEED)
    assert await save(db, audit.id, AS_TOOL, newer_than=1) == AS_TOOL
    assert await save(db, audit.id, WITHOUT_SEED, newer_than=1) == AS_TOOL
    history = load_records(db, audit.id, StoredCapability)
    assert [(stored.number, stored.capability) for stored in history] == [(1, WITHOUT_SEED), (2, AS_TOOL)]


async def test_audits_servers_and_efforts_have_their_own_capabilities(db: Database) -> None:
    audit = save_sample_audit(db)
    keys = [KEY, KEY._replace(server=None), KEY._replace(effort=None), KEY._replace(model="openai/o4-mini")]
    for key in keys:
        assert await save(db, audit.id, AS_TOOL, key) == AS_TOOL
    history = load_records(db, audit.id, StoredCapability)
    assert set(capabilities.current_capabilities(history)) == set(keys)
    assert load_records(db, audit.id + 1, StoredCapability) == []


async def test_text_of_a_server_that_no_database_can_store_does_not_lose_the_capability(db: Database) -> None:
    audit = save_sample_audit(db)
    await capabilities.save_capability(db, audit.id, KEY, AS_TOOL, "no \ud83d \x00 seed", "1.2.3")
    [stored] = load_records(db, audit.id, StoredCapability)
    assert stored.capability == AS_TOOL


async def test_a_capability_of_a_later_version_with_more_fields_can_be_read(db: Database) -> None:
    audit = save_sample_audit(db)
    await save(db, audit.id, AS_TOOL)
    content = serialize_capability(AS_TOOL)[:-1] + ',"images":true}'
    db.write(lambda connection: connection.execute(update(table_of(StoredCapability)).values(content=content)))
    [stored] = load_records(db, audit.id, StoredCapability)
    assert stored.capability == AS_TOOL


def race(url: str, audit_id: int, name: str, barrier: Barrier, winners: Queue[tuple[str, list[str]]]) -> None:
    """Store another capability than the other process, at the same moment, for each of some models."""

    async def save_all(db: Database) -> list[str]:
        capability, ids = Capability(AnswerForm.TEXT, dropped_params=(name,)), list[str]()
        for number in range(N_RACES):
            barrier.wait(PATIENCE_S)
            winner = await save(db, audit_id, capability, CapabilityKey(f"m{number}", None, None))
            ids += winner.dropped_params
        return ids

    with open_database(url) as db:
        winners.put((name, asyncio.run(save_all(db))))


def test_two_processes_that_race_use_the_same_capability(storage: str) -> None:
    with open_database(storage) as db:
        audit = save_sample_audit(db)
    barrier, winners = CONTEXT.Barrier(2), CONTEXT.Queue()
    names = ("seed", "stop")
    processes = [CONTEXT.Process(target=race, args=(storage, audit.id, name, barrier, winners)) for name in names]
    for process in processes:
        process.start()
    used = dict(winners.get(timeout=PATIENCE_S) for _ in processes)
    for process in processes:
        process.join(PATIENCE_S)
    assert used["seed"] == used["stop"]
    with open_database(storage) as db:
        history = load_records(db, audit.id, StoredCapability)
    winner_by_model = {f"m{number}": winner for number, winner in enumerate(used["seed"])}
    assert {stored.key.model: stored.capability.dropped_params[0] for stored in history} == winner_by_model
    assert len(history) == N_RACES


async def test_scores_are_averaged_by_model_form_and_cell(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/audit.db") as db:
        audit = populate(db, models=2, countries=2, topics=2)
        assert load_scores_by_form(db, audit.id) == []
        keys = direct_keys(db, "alder")
        await change_answers(db, keys[:6], form="tool")
        await change_answers(db, keys[6:], form="json_schema")
        scores = load_scores_by_form(db, audit.id)
        usable = [t for t in results.load_traces(db, audit.id) if t.outcome is Outcome.OK and t.score is not None]
        traces = [trace for trace in usable if trace.key in keys[:6]]
    assert {score.model for score in scores} == {"alder"}
    assert [score.form for score in scores] == sorted(score.form for score in scores)
    by_tool = [score for score in scores if score.form == "tool"]
    assert sum(score.answers for score in by_tool) == len(traces)
    total = sum(score.score * score.answers for score in by_tool)
    assert total == pytest.approx(sum(trace.score or 0.0 for trace in traces))


async def test_alterations_of_direct_questions_are_listed_once_for_each_model(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/audit.db") as db:
        audit = populate(db, models=2, countries=2, topics=2)
        await change_answers(db, direct_keys(db, "alder"), altered="seed, temperature")
        alterations = load_direct_alterations(db, audit.id)
        assert Alteration("alder", "direct", "seed, temperature") in alterations
        assert len(alterations) == len(set(alterations))
        assert load_direct_alterations(db, audit.id + 1) == []
