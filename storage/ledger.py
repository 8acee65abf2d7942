"""The call ledger: every answer that arrived, under its call's key. Cache, resume, replay and audit trail in one."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Delete, Insert, RowMapping, Select, bindparam, delete, func, insert, select
from sqlmodel import SQLModel

from auditor.domain import Answer, Attempt, Call, Outcome, canonical_json
from auditor.errors import UnstorableError
from auditor.storage import hash_chain
from auditor.storage.database import Database, coerce_values, make_storable, table_of
from auditor.storage.tables import AnswerRow, AttemptRow, DispatchRow, PayloadRow
from auditor.storage.writer import GroupedJob

ZLIB_LOOKAHEAD_BYTES = 262
"""Bytes of zlib's window that it looks ahead by."""
MAX_KEYS_PER_QUERY = 500
"""Keys in one query; SQLite allows 999 variables in the oldest versions."""


def utc_now() -> str:
    """The time as it is stored: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def load_answers(db: Database, keys: Iterable[str]) -> dict[str, Answer]:
    """Recorded answers among the keys; attempts are not read."""
    found: dict[str, Answer] = {}
    table = table_of(AnswerRow)
    remaining = iter(keys)
    with db.read() as connection:
        while chunk := list(islice(remaining, MAX_KEYS_PER_QUERY)):
            rows = connection.execute(select(table).where(table.c.key.in_(chunk))).mappings()
            found.update((row["key"], _parse_answer(row)) for row in rows)
    return found


def find_answered_keys(db: Database, keys: Iterable[str]) -> set[str]:
    """Which of the keys have a recorded answer."""
    known: set[str] = set()
    table = table_of(AnswerRow)
    remaining = iter(keys)
    with db.read() as connection:
        while chunk := list(islice(remaining, MAX_KEYS_PER_QUERY)):
            known.update(connection.execute(select(table.c.key).where(table.c.key.in_(chunk))).scalars())
    return known


async def record_dispatch(db: Database, run_id: str, audit_id: int, call: Call) -> None:
    """Note that a call is about to go out; what is still noted when a run has ended may have been paid for in vain."""
    values = {"run": run_id, "key": call.key, "audit_id": audit_id, "name": call.name, "purpose": call.purpose.value}
    await db.writer.write(_LedgerUpdate(dispatched=values | {"started_at": utc_now()}))


async def clear_dispatch(db: Database, run_id: str, call: Call) -> None:
    """Note that a call came to its end without anything to record."""
    await db.writer.write(_LedgerUpdate(returned_call=(run_id, call.key)))


async def record_answer(
    db: Database, call: Call, answer: Answer, *, run_id: str | None = None, audit_id: int | None = None
) -> Answer:
    """Record a call's attempts, and its answer if one arrived; durable when this returns.

    Args:
        run: that noted the call before it went out.
        audit_id: of the audit that asked, which the attempts are charged to.

    Returns:
        The answer as it is recorded: one that the database cannot hold is a failure of this call.

    Raises:
        StorageError: nothing can be recorded any more.
    """
    note = functools.partial(_update_after_return, call, run_id=run_id, audit_id=audit_id)
    try:
        row = coerce_values(AnswerRow, _answer_columns(call, answer)) if answer.outcome.is_answer else None
        await db.writer.write(note(answer, row))
        return answer
    except UnstorableError as error:
        failure = _unstorable_answer(answer, error)
        failed = note(failure, None)
        attempts = [make_storable(AttemptRow, attempt) for attempt in failed.attempts]
        await db.writer.write(replace(failed, attempts=attempts))
        return failure


def _update_after_return(
    call: Call, answer: Answer, answer_row: dict[str, Any] | None, *, run_id: str | None, audit_id: int | None
) -> _LedgerUpdate:
    return _LedgerUpdate(
        returned_call=None if run_id is None else (run_id, call.key),
        payloads={a.body.digest: a.body.data for a in answer.attempts if a.body},
        attempts=[_attempt_columns(call, attempt, audit_id) for attempt in answer.attempts],
        answer=answer_row,
    )


def _unstorable_answer(answer: Answer, error: UnstorableError) -> Answer:
    """The call's failure where its answer cannot be stored; its attempts and its cost stay known."""
    reason = f"the provider's answer could not be stored: {error.message}"
    attempts = list(answer.attempts)
    if attempts:
        attempts[-1] = replace(attempts[-1], outcome=Outcome.SERVER_ERROR, error=reason)
    cost = make_storable(AnswerRow, {"cost_usd": answer.cost_usd})["cost_usd"]
    return Answer(answer.key, Outcome.SERVER_ERROR, cost_usd=cost, error=reason, attempts=tuple(attempts))


@dataclass(frozen=True)
class _LedgerUpdate(GroupedJob):
    """What is to be noted of one call, as rows: that it goes out, that it came back, what it brought."""

    dispatched: dict[str, Any] | None = None
    returned_call: tuple[str, str] | None = None
    payloads: Mapping[str, bytes] = field(default_factory=dict)
    attempts: Sequence[dict[str, Any]] = ()
    answer: dict[str, Any] | None = None

    @property
    def label(self) -> str | None:
        if not self.attempts:
            return None
        attempt = self.attempts[-1]
        return f"{attempt['model']} {attempt['purpose']} {attempt['key'][:12]}"

    @classmethod
    def run_group(cls, connection: Connection, jobs: Sequence[_LedgerUpdate]) -> None:
        """A few statements, however many the calls.

        What came back is settled before what goes out is noted: where both are of one call, it was asked again.
        """
        dispatched = {(d["run"], d["key"]): d for d in (n.dispatched for n in jobs) if d}
        _delete_dispatches(connection, [*(n.returned_call for n in jobs if n.returned_call), *dispatched])
        _insert_rows(connection, DispatchRow, list(dispatched.values()))
        payloads = {digest: {"digest": digest, "data": data} for n in jobs for digest, data in n.payloads.items()}
        unknown = _select_new_rows(connection, PayloadRow, "digest", payloads)
        _insert_rows(connection, PayloadRow, [p | {"data": compress_payload(p["data"])} for p in unknown])
        _insert_rows(connection, AttemptRow, [a for n in jobs for a in n.attempts])
        arrived = {n.answer["key"]: n.answer for n in reversed(jobs) if n.answer}
        answers = _select_new_rows(connection, AnswerRow, "key", dict(reversed(arrived.items())))
        _insert_rows(connection, AnswerRow, answers)
        hash_chain.append_links(connection, "answer", answers)


def compress_payload(data: bytes) -> bytes:
    """The data by zlib, with a window for them and its look-ahead: to clear one of 32 KB takes longer than they do."""
    window = min(zlib.MAX_WBITS, (len(data) + ZLIB_LOOKAHEAD_BYTES).bit_length())
    packing = zlib.compressobj(1, zlib.DEFLATED, window, window - 7)
    return packing.compress(data) + packing.flush()


# Statements are made once: to make one anew takes SQLAlchemy longer than SQLite takes to carry it out.
@functools.cache
def _delete_dispatches_statement() -> Delete:
    table = table_of(DispatchRow)
    return delete(table).where(table.c.run == bindparam("of"), table.c.key.in_(bindparam("keys", expanding=True)))


@functools.cache
def _known_keys_statement(row_class: type[SQLModel], key_column: str) -> Select[Any]:
    column = table_of(row_class).c[key_column]
    return select(column).where(column.in_(bindparam("keys", expanding=True)))


@functools.cache
def _insert_statement(row_class: type[SQLModel]) -> Insert:
    return insert(table_of(row_class))


def _delete_dispatches(connection: Connection, calls: Sequence[tuple[str, str]]) -> None:
    """Take out the notes of calls that went out."""
    by_run = dict[str, list[str]]()
    for run, key in calls:
        by_run.setdefault(run, []).append(key)
    for run, keys in by_run.items():
        connection.execute(_delete_dispatches_statement(), {"of": run, "keys": keys})


def _select_new_rows(
    connection: Connection, row_class: type[SQLModel], key_column: str, rows: Mapping[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """The rows, by key, that are not there yet; nobody else writes during the transaction."""
    if not rows:
        return []
    known = set(connection.execute(_known_keys_statement(row_class, key_column), {"keys": list(rows)}).scalars())
    return [values for name, values in rows.items() if name not in known]


def _insert_rows(connection: Connection, row_class: type[SQLModel], rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(_insert_statement(row_class), rows)


def _answer_columns(call: Call, answer: Answer) -> dict[str, object]:
    request: dict[str, object] = {
        "messages": [asdict(m) for m in call.messages],
        "params": dict(call.params),
        "schema": [call.schema, call.max_words],
    }
    if call.measure is not None:
        request["measure"] = [call.measure, *call.continuations]
    return {
        "key": call.key,
        "model": call.model,
        "server": call.server,
        "purpose": call.purpose.value,
        "request": canonical_json({**request, "sample": call.sample}),
        "outcome": answer.outcome.value,
        "text": answer.text,
        "finish_reason": answer.finish_reason,
        "served_model": answer.served_model,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "cached_tokens": answer.cached_tokens,
        "cost_usd": answer.cost_usd,
        "error": answer.error,
        "created_at": utc_now(),
        "fingerprint": answer.fingerprint,
        "sent": answer.sent,
        "altered": answer.altered,
        "payload": body.digest if answer.attempts and (body := answer.attempts[-1].body) else None,
    }


def _attempt_columns(call: Call, attempt: Attempt, audit_id: int | None = None) -> dict[str, object]:
    return {
        "key": call.key,
        "number": attempt.number,
        "model": call.model,
        "purpose": call.purpose.value,
        "started_at": attempt.started_at.isoformat(timespec="milliseconds"),
        "latency_s": attempt.latency_s,
        "outcome": attempt.outcome.value,
        "http_status": attempt.http_status,
        "error": attempt.error,
        "retry_after_s": attempt.retry_after_s,
        "size": attempt.body.size if attempt.body else None,
        "payload": attempt.body.digest if attempt.body else None,
        "audit_id": audit_id,
        "name": call.name,
        "prompt_tokens": attempt.prompt_tokens,
        "completion_tokens": attempt.completion_tokens,
        "cost_usd": attempt.cost_usd,
        "estimated": attempt.estimated,
    }


def _parse_answer(row: RowMapping) -> Answer:
    return Answer(
        key=row["key"],
        outcome=Outcome(row["outcome"]),
        text=row["text"],
        finish_reason=row["finish_reason"],
        served_model=row["served_model"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        cached_tokens=row["cached_tokens"],
        cost_usd=row["cost_usd"],
        error=row["error"],
        fingerprint=row["fingerprint"],
        sent=row["sent"],
        altered=row["altered"],
    )


def load_payload(db: Database, digest: str) -> bytes | None:
    """The beginning of a server's answer as it came; None when nothing is kept under this digest."""
    table = table_of(PayloadRow)
    with db.read() as connection:
        packed = connection.execute(select(table.c.data).where(table.c.digest == digest)).scalar_one_or_none()
    return None if packed is None else zlib.decompress(packed)


def count_attempts(db: Database) -> int:
    """Requests that ever went out into this database."""
    with db.read() as connection:
        return connection.execute(select(func.count()).select_from(table_of(AttemptRow))).scalar_one()
