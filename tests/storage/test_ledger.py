"""An answer that cannot be stored is a failure of its call only, and its attempts are recorded."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from auditor.agents.call_runner import CallRecorder, RecordingClient
from auditor.domain import Answer, AnswerForm, Attempt, Call, Outcome, ResponseBody
from auditor.errors import StorageError, UnstorableError
from auditor.storage import hash_chain, ledger
from auditor.storage.call_records import Dispatch, Payload, StoredAttempt
from auditor.storage.database import Database, open_database
from auditor.storage.row_classes import make_storable, table_of
from tests.storage.test_database import save_sample_audit
from tests.storage.test_writer import block_writer, make_answer, make_call, write_in_one_group
from tests.support.known import known

UNSTORABLE: list[dict[str, Any]] = [
    {"prompt_tokens": 10**30}, {"completion_tokens": 2**63}, {"cached_tokens": float("inf")}, {"cached_tokens": "many"},
    {"cost_usd": float("nan")}, {"served_model": "gpt-\ud800"}, {"finish_reason": "\udfff"},
    {"text": "half a pair: \ud83d"},
]  # fmt: skip


def attempts_of(db: Database, call: Call) -> list[dict[str, Any]]:
    table = table_of(StoredAttempt)
    with db.read() as connection:
        rows = connection.execute(select(table).where(table.c.key == call.key).order_by(table.c.id)).mappings()
        return [dict(row) for row in rows]


BODY = b'{"model": "?"}'
DIGEST = hashlib.sha256(BODY).hexdigest()


@pytest.mark.parametrize("content", UNSTORABLE, ids=lambda content: next(iter(content)))
async def test_an_answer_that_cannot_be_stored_is_a_failure_of_its_call(db: Database, content: dict[str, Any]) -> None:
    """The others of the same group are stored, and so are both attempts of the failed call."""
    audit = save_sample_audit(db)
    calls = [make_call(i) for i in range(4)]
    unstorable_call = calls[1]
    first = Attempt(1, datetime.now(UTC), 0.2, Outcome.RATE_LIMITED, 429, "slow down", 2.0)
    last = Attempt(2, datetime.now(UTC), 0.1, Outcome.OK, 200, body=ResponseBody(DIGEST, BODY, 14))
    answers = {c.key: make_answer(c) for c in calls}
    changes: dict[str, Any] = {"attempts": (first, last), "cost_usd": 0.25} | content
    answers[unstorable_call.key] = replace(answers[unstorable_call.key], **changes)
    for call in calls:
        await ledger.record_dispatch(db, "run", audit.id, call)
    writes = (ledger.record_answer(db, c, answers[c.key], run_id="run") for c in calls)
    recorded = dict(zip(answers, await write_in_one_group(db, *writes), strict=True))

    failure = recorded.pop(unstorable_call.key)
    assert (failure.outcome, failure.text) == (Outcome.SERVER_ERROR, None)
    assert failure.cost_usd == (None if "cost_usd" in content else 0.25)
    message = known(failure.error)
    assert message.startswith("the provider's answer could not be stored: ")
    assert ("Python" in message, "codec" in message) == (False, False)
    message.encode()
    assert set(ledger.load_answers(db, [c.key for c in calls])) == set(recorded)
    assert all(recorded[key] is answers[key] for key in recorded)
    rows = attempts_of(db, unstorable_call)
    stored = [tuple(row[name] for name in ("number", "outcome", "http_status", "retry_after_s")) for row in rows]
    assert stored == [(1, "rate_limited", 429, 2.0), (2, "server_error", 200, None)]
    assert rows[1]["error"] == failure.error
    assert ledger.load_payload(db, DIGEST) == BODY
    with db.read() as connection:
        assert connection.execute(select(table_of(Dispatch))).all() == []
        assert len(connection.execute(select(table_of(Payload))).all()) == len(calls)
    verification = hash_chain.verify_chain(db)
    assert (verification.n_by_kind["answer"], verification.breaks) == (3, [])


async def test_unstorable_values_of_an_attempt_are_stored_as_null_or_escaped(db: Database) -> None:
    call = make_call(0)
    unstorable_attempt = Attempt(1, datetime.now(UTC), 0.1, Outcome.SERVER_ERROR, 10**20, "said \ud800\0", float("inf"))
    attempts = (unstorable_attempt, Attempt(2, datetime.now(UTC), 0.1, Outcome.TIMEOUT))
    answer = await ledger.record_answer(db, call, Answer(call.key, Outcome.TIMEOUT, attempts=attempts))
    assert answer.outcome is Outcome.SERVER_ERROR
    stored_attempt, _ = attempts_of(db, call)
    expected = {"http_status": None, "error": "said \\ud800\\x00", "retry_after_s": None}
    assert {name: stored_attempt[name] for name in expected} == expected


@pytest.mark.parametrize("is_together", [True, False])
async def test_two_audits_that_ask_the_same_have_the_answer_that_is_recorded(db: Database, is_together: bool) -> None:
    """Else the figures of one would follow from an answer that nobody finds again."""
    audits = [save_sample_audit(db, name=name) for name in ("first", "second")]
    call = make_call(0)
    attempt = Attempt(1, datetime.now(UTC), 0.2, Outcome.OK, 200)
    answers = [replace(make_answer(call), text=audit.name, attempts=(attempt,)) for audit in audits]
    failure = replace(answers[1], outcome=Outcome.SERVER_ERROR, text=None)
    if is_together:
        pairs = zip(audits, answers, strict=True)
        writes = (ledger.record_answer(db, call, answer, run_id=a.name, audit_id=a.id) for a, answer in pairs)
        recorded = await write_in_one_group(db, *writes)
    else:
        recorded = [await ledger.record_answer(db, call, answer) for answer in answers]
    recorded.append(await ledger.record_answer(db, call, failure))
    assert [answer.text for answer in recorded] == ["first"] * 3
    assert [answer.outcome for answer in recorded] == [Outcome.OK] * 3
    assert [answer.attempts for answer in recorded] == [(attempt,)] * 3
    assert len(attempts_of(db, call)) == 3


async def test_the_caller_gets_the_storage_failure(db: Database) -> None:
    class UnstorableAnswerClient:
        async def complete(self, call: Call) -> Answer:
            return replace(make_answer(call), prompt_tokens=10**30)

    recording_client = RecordingClient(UnstorableAnswerClient(), CallRecorder(db, save_sample_audit(db).id, "run"))
    recorded = await recording_client.complete(make_call(0))
    assert recorded.outcome is Outcome.SERVER_ERROR


async def test_how_an_answer_was_requested_is_recorded(db: Database) -> None:
    call = make_call(0)
    details: dict[str, Any] = {"capability": "0123456789ab", "form": AnswerForm.JSON_OBJECT, "reasoning_tokens": 7}
    answer = replace(make_answer(call), attempts=(), **details)
    await ledger.record_answer(db, call, answer)
    assert ledger.load_answers(db, [call.key]) == {call.key: answer}
    assert hash_chain.verify_chain(db).breaks == []


async def test_a_database_that_is_full_is_not_taken_for_an_odd_answer(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path}/a.db") as db:
        db.write(lambda connection: connection.exec_driver_sql("PRAGMA max_page_count = 1"))
        call = make_call(0)
        body = ResponseBody("d", b"".join(i.to_bytes(4, "big") for i in range(2**16)), 2**18)
        attempt = Attempt(1, datetime.now(UTC), 0.1, Outcome.OK, 200, body=body)
        large_answer = replace(make_answer(call), text="x" * 2**20, attempts=(attempt,))
        with pytest.raises(StorageError, match="full") as caught:
            await ledger.record_answer(db, call, large_answer)
        assert not isinstance(caught.value, UnstorableError)
        assert attempts_of(db, call) == []


async def test_a_locked_database_is_not_taken_for_an_odd_answer(file_storage: str) -> None:
    with open_database(file_storage) as db, open_database(file_storage) as other:
        call = make_call(0)
        db.write(lambda connection: connection.exec_driver_sql("PRAGMA busy_timeout = 50"))
        gate, _ = block_writer(other)
        with pytest.raises(StorageError, match="locked") as caught:
            await ledger.record_answer(db, call, make_answer(call))
        gate.set()
        assert not isinstance(caught.value, UnstorableError)


def test_values_are_made_storable_by_their_columns() -> None:
    unstorable_row = {"key": "k\ud800", "number": 2**31, "latency_s": -0.0, "error": None, "size": "no number"}
    storable_row = make_storable(StoredAttempt, unstorable_row)
    assert storable_row == {"key": "k\\ud800", "number": None, "latency_s": 0.0, "error": None, "size": None}
