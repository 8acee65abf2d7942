"""The capabilities of an audit: as stored, whichever version of litellm reads them, or found out again."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

import pytest

from auditor.domain import AnswerForm, Capability, CapabilityKey
from auditor.run.model_access import DatabaseCapabilityStore
from auditor.storage.call_records import StoredCapability
from auditor.storage.database import Database, open_database
from auditor.storage.records import load_records
from tests.storage.test_database import save_sample_audit

KEY = CapabilityKey("openai/o3", None, None)
AS_SCHEMA, AS_TOOL = Capability(AnswerForm.JSON_SCHEMA), Capability(AnswerForm.TOOL)


@pytest.fixture
def db(storage: str) -> Iterator[Database]:
    with open_database(storage) as opened:
        yield opened


async def test_a_run_reads_what_an_earlier_one_stored_under_another_version_of_litellm(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = save_sample_audit(db)
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "version", lambda _: "0.0.1")
        await DatabaseCapabilityStore(db, audit.id).save(KEY, AS_SCHEMA, "accepted as requested")
    later = DatabaseCapabilityStore(db, audit.id)
    assert later.load() == {KEY: AS_SCHEMA}
    assert await later.save(KEY, AS_TOOL, "400") == AS_SCHEMA
    [stored] = load_records(db, audit.id, StoredCapability)
    assert stored.litellm_version == "0.0.1"


async def test_of_two_runs_that_found_out_different_things_both_use_the_first(db: Database) -> None:
    audit = save_sample_audit(db)
    one, other = (DatabaseCapabilityStore(db, audit.id) for _ in range(2))
    assert one.load() == other.load() == {}
    assert await one.save(KEY, AS_TOOL, "400") == AS_TOOL
    assert await other.save(KEY, AS_SCHEMA, "accepted as requested") == AS_TOOL


async def test_rediscovery_knows_nothing_and_writes_the_next_number(db: Database) -> None:
    audit = save_sample_audit(db)
    await DatabaseCapabilityStore(db, audit.id).save(KEY, AS_SCHEMA, "accepted as requested")
    store = DatabaseCapabilityStore(db, audit.id, rediscover=True)
    assert store.load() == {}
    assert await store.save(KEY, AS_TOOL, "400") == AS_TOOL
    assert await store.save(KEY, AS_SCHEMA, "again") == AS_TOOL
    assert [stored.capability for stored in load_records(db, audit.id, StoredCapability)] == [AS_SCHEMA, AS_TOOL]
    assert DatabaseCapabilityStore(db, audit.id).load() == {KEY: AS_TOOL}
