"""The call ledger: every answer that arrived, under its call's key. Cache, resume, replay and audit trail in one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select

from auditor.domain import Answer, Attempt, Call, Outcome, canonical_json
from auditor.storage import chain
from auditor.storage.database import Database, insert_new, table_of
from auditor.storage.tables import AnswerRow, AttemptRow, DispatchRow
from auditor.storage.writer import Job

CHUNK = 500
"""Keys in one query; SQLite allows 999 variables in the oldest versions."""


def now() -> str:
    """The time as it is stored: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def answers(db: Database, keys: Iterable[str]) -> dict[str, Answer]:
    """Recorded answers among the keys; attempts are not read."""
    found: dict[str, Answer] = {}
    table = table_of(AnswerRow)
    remaining = iter(keys)
    with db.read() as connection:
        while chunk := list(islice(remaining, CHUNK)):
            rows = connection.execute(select(table).where(table.c.key.in_(chunk))).mappings()
            found.update((row["key"], _answer(row)) for row in rows)
    return found


def known_keys(db: Database, keys: Iterable[str]) -> set[str]:
    """Which of the keys have a recorded answer."""
    known: set[str] = set()
    table = table_of(AnswerRow)
    remaining = iter(keys)
    with db.read() as connection:
        while chunk := list(islice(remaining, CHUNK)):
            known.update(connection.execute(select(table.c.key).where(table.c.key.in_(chunk))).scalars())
    return known


async def dispatch(db: Database, run: str, audit_id: int, call: Call) -> None:
    """Note that a call is about to go out; what is still noted when a run has ended may have been paid for in vain."""
    values = {"run": run, "key": call.key, "audit_id": audit_id, "name": call.name, "purpose": call.purpose.value}
    await _done(db, lambda connection: insert_new(connection, DispatchRow, [values | {"started_at": now()}]))


async def recall(db: Database, run: str, call: Call) -> None:
    """Note that a call came to its end without anything to record."""
    await _done(db, lambda connection: _settle(connection, run, call))


async def record(db: Database, call: Call, answer: Answer, *, run: str | None = None) -> None:
    """Record a call's attempts, and its answer if one arrived; durable when this returns."""
    await _done(db, lambda connection: _insert(connection, call, answer, run))


async def _done(db: Database, job: Job[Any]) -> None:
    await asyncio.wrap_future(db.writer.submit(job))


def _settle(connection: Connection, run: str, call: Call) -> None:
    table = table_of(DispatchRow)
    connection.execute(delete(table).where(table.c.run == run, table.c.key == call.key))


def _insert(connection: Connection, call: Call, answer: Answer, run: str | None) -> None:
    if run is not None:
        _settle(connection, run, call)
    if answer.attempts:
        connection.execute(insert(table_of(AttemptRow)), [_attempt_values(call, a) for a in answer.attempts])
    if answer.outcome.is_answer and insert_new(connection, AnswerRow, [_answer_values(call, answer)]):
        chain.extend(connection, "answer", call.key)


def _answer_values(call: Call, answer: Answer) -> dict[str, object]:
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
        "cost_usd": answer.cost_usd,
        "error": answer.error,
        "created_at": now(),
    }


def _attempt_values(call: Call, attempt: Attempt) -> dict[str, object]:
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
    }


def _answer(row: RowMapping) -> Answer:
    return Answer(
        key=row["key"],
        outcome=Outcome(row["outcome"]),
        text=row["text"],
        finish_reason=row["finish_reason"],
        served_model=row["served_model"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        cost_usd=row["cost_usd"],
        error=row["error"],
    )


def spent(db: Database, keys: Sequence[str]) -> float:
    """US dollars that the answers of these keys cost, as far as prices are known."""
    return sum(a.cost_usd or 0.0 for a in answers(db, keys).values())


def count_attempts(db: Database) -> int:
    """Requests that ever went out into this database."""
    with db.read() as connection:
        return connection.execute(select(func.count()).select_from(table_of(AttemptRow))).scalar_one()
