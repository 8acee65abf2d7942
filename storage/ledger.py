"""The call ledger: every answer that arrived, under its call's key.

It serves as cache, lets a run resume, replays audits, and is the record of what models were asked and answered.
"""

from __future__ import annotations

import functools
import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

import sqlalchemy as sa

from auditor.domain import Answer, Attempt, Call, Message, Outcome, canonical_json, total_cost
from auditor.errors import UnstorableError
from auditor.storage import hash_chain
from auditor.storage.call_records import Dispatch, Payload, StoredAnswer, StoredAttempt
from auditor.storage.database import Database
from auditor.storage.row_classes import (
    coerce_values,
    conversion_of,
    insert_exact,
    insert_rows,
    make_storable,
    table_of,
)
from auditor.storage.writer import GroupedJob

ZLIB_LOOKAHEAD_BYTES = 262
"""Bytes of zlib's window that are used for its look-ahead (MIN_LOOKAHEAD in zlib)."""
_ANSWER_FIELDS = conversion_of(Answer).column_names
"""Fields of an answer that are columns of its row."""
_ATTEMPT_FIELDS = conversion_of(Attempt).column_names
MAX_KEYS_PER_QUERY = 500
"""Maximum number of keys in one query; old versions of SQLite allow 999 variables."""


def utc_now() -> str:
    """Current time as it is stored: ISO 8601 in UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def load_answers(db: Database, keys: Iterable[str]) -> dict[str, Answer]:
    """Load the recorded answers of calls by key, without their attempts; calls without an answer are left out."""
    answers: dict[str, Answer] = {}
    to_record, remaining_keys = conversion_of(Answer).to_record, iter(keys)
    with db.read() as connection:
        while chunk := list(islice(remaining_keys, MAX_KEYS_PER_QUERY)):
            for row in connection.execute(_answers_statement(connection.dialect.name), {"keys": chunk}).all():
                answer = to_record(row)
                answers[answer.key] = answer
    return answers


class RecordedRequest(NamedTuple):
    """What a recorded answer was asked: the messages that are not the model's, as one text, and the schema's name."""

    text: str
    schema: str | None


def load_requests(db: Database, keys: Iterable[str]) -> dict[str, RecordedRequest]:
    """Load what the recorded answers of calls were asked, by key; calls without an answer are left out."""
    requests: dict[str, RecordedRequest] = {}
    c = table_of(StoredAnswer).c
    remaining_keys = iter(keys)
    with db.read() as connection:
        while chunk := list(islice(remaining_keys, MAX_KEYS_PER_QUERY)):
            for key, text in connection.execute(sa.select(c.key, c.request).where(c.key.in_(chunk))):
                request = json.loads(text)
                shown = [message["content"] for message in request["messages"] if message["role"] != "assistant"]
                requests[key] = RecordedRequest("\n\n".join(shown), request["schema"][0])
    return requests


def find_answered_keys(db: Database, keys: Iterable[str]) -> set[str]:
    """Return those keys that have a recorded answer."""
    answered_keys: set[str] = set()
    table = table_of(StoredAnswer)
    remaining_keys = iter(keys)
    with db.read() as connection:
        while chunk := list(islice(remaining_keys, MAX_KEYS_PER_QUERY)):
            answered_keys.update(connection.execute(sa.select(table.c.key).where(table.c.key.in_(chunk))).scalars())
    return answered_keys


def count_answers(db: Database) -> int:
    """Number of recorded answers."""
    with db.read() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(table_of(StoredAnswer))).scalar_one())


def load_last_outcome(db: Database, key: str, audit_id: int) -> Outcome | None:
    """Load the outcome of an audit's last request for a call; None if it has sent none."""
    c = table_of(StoredAttempt).c
    query = sa.select(c.outcome).where(c.key == key, c.audit_id == audit_id).order_by(c.id.desc()).limit(1)
    with db.read() as connection:
        outcome = connection.execute(query).scalar_one_or_none()
    return None if outcome is None else Outcome(outcome)


async def record_dispatch(db: Database, run_id: str, audit_id: int, call: Call) -> None:
    """Record that a call is about to be sent.

    If this record remains after the run has ended, the call may have been paid for without giving an answer.
    """
    values = {"run": run_id, "key": call.key, "audit_id": audit_id, "name": call.name, "purpose": call.purpose.value}
    await db.writer.write(_LedgerUpdate(dispatched=values | {"started_at": utc_now()}))


async def clear_dispatch(db: Database, run_id: str, call: Call) -> None:
    """Record that a call ended without attempts or an answer to record."""
    await db.writer.write(_LedgerUpdate(returned_call=(run_id, call.key)))


async def record_answer(
    db: Database, call: Call, answer: Answer, *, run_id: str | None = None, audit_id: int | None = None
) -> Answer:
    """Record a call's attempts, and its answer if one arrived; durable when this returns.

    Args:
        db: the database.
        call: the call.
        answer: its answer or failure, with the attempts.
        run_id: run that recorded the dispatch of the call; None if none did.
        audit_id: audit to which the attempts are charged.

    Returns:
        The answer as recorded. If an audit that runs meanwhile has recorded one to the same call, this is the answer
        of both, so that their figures follow from what is recorded. An answer that the database cannot store is turned
        into a failure of the call.

    Raises:
        StorageError: the database cannot be written to.
    """
    make_update = functools.partial(_update_after_return, call, run_id=run_id, audit_id=audit_id)
    try:
        answer_row = coerce_values(StoredAnswer, _answer_columns(call, answer)) if answer.outcome.is_answer else None
        is_known = await db.writer.write(make_update(answer, answer_row, coerce_values))
        if is_known or answer_row is None:
            recorded_answer = load_answers(db, [call.key]).get(call.key, answer)
            return replace(recorded_answer, attempts=answer.attempts)
        return answer
    except UnstorableError as error:
        failure = _unstorable_answer(answer, error)
        await db.writer.write(make_update(failure, None, make_storable))
        return failure


def _update_after_return(
    call: Call,
    answer: Answer,
    answer_row: dict[str, Any] | None,
    convert: Callable[[type, Mapping[str, Any]], dict[str, Any]],
    *,
    run_id: str | None,
    audit_id: int | None,
) -> _LedgerUpdate:
    """Build the rows to write after a call has returned; `convert` makes the values of an attempt storable."""
    return _LedgerUpdate(
        returned_call=None if run_id is None else (run_id, call.key),
        payloads={attempt.body.digest: attempt.body.data for attempt in answer.attempts if attempt.body},
        attempts=[convert(StoredAttempt, _attempt_columns(call, attempt, audit_id)) for attempt in answer.attempts],
        answer=answer_row,
    )


def _unstorable_answer(answer: Answer, error: UnstorableError) -> Answer:
    """Build the failure of a call whose answer cannot be stored; it keeps the attempts and the cost."""
    reason = f"the provider's answer could not be stored: {error.message}"
    attempts = list(answer.attempts)
    if attempts:
        attempts[-1] = replace(attempts[-1], outcome=Outcome.SERVER_ERROR, error=reason)
    cost = make_storable(StoredAnswer, {"cost_usd": answer.cost_usd})["cost_usd"]
    return Answer(answer.key, Outcome.SERVER_ERROR, cost_usd=cost, error=reason, attempts=tuple(attempts))


@dataclass(frozen=True)
class _LedgerUpdate(GroupedJob):
    """Rows to write about one call: its dispatch, its return, and its payloads, attempts and answer.

    Attributes:
        dispatched: row of the call's dispatch.
        returned_call: run and key of a dispatch to delete.
        payloads: beginnings of the server's responses, by SHA-256.
        attempts: rows of the requests.
        answer: row of the answer.
    """

    dispatched: dict[str, Any] | None = None
    returned_call: tuple[str, str] | None = None
    payloads: Mapping[str, bytes] = field(default_factory=dict)
    attempts: Sequence[dict[str, Any]] = ()
    answer: dict[str, Any] | None = None

    @property
    def label(self) -> str | None:
        """Model, purpose and beginning of the call's key; None if no request was sent, so that nothing can be lost."""
        if not self.attempts:
            return None
        attempt = self.attempts[-1]
        return f"{attempt['model']} {attempt['purpose']} {attempt['key'][:12]}"

    @classmethod
    def run_group(cls, connection: sa.Connection, jobs: Sequence[_LedgerUpdate]) -> list[bool]:
        """Write all updates with a fixed number of statements; return for each whether another answer is recorded.

        Returned calls are deleted before dispatches are inserted: a call in both was sent again after its return.
        """
        dispatched = {
            (dispatch["run"], dispatch["key"]): dispatch for dispatch in (job.dispatched for job in jobs) if dispatch
        }
        calls = [*(job.returned_call for job in jobs if job.returned_call), *dispatched]
        keys_by_run = dict[str, list[str]]()
        for run, key in calls:
            keys_by_run.setdefault(run, []).append(key)
        for run, keys in keys_by_run.items():
            connection.execute(_delete_dispatches_statement(connection.dialect.name), {"of": run, "keys": keys})
        insert_rows(connection, Dispatch, list(dispatched.values()))
        payloads = {digest: {"digest": digest, "data": data} for job in jobs for digest, data in job.payloads.items()}
        new_payloads = _select_new_rows(connection, Payload, "digest", payloads)
        insert_exact(connection, Payload, [row | {"data": compress_payload(row["data"])} for row in new_payloads])
        attempts = _insert_attempts(connection, [attempt for job in jobs for attempt in job.attempts])
        answer_rows = {job.answer["key"]: job.answer for job in reversed(jobs) if job.answer}
        new_answers = _select_new_rows(connection, StoredAnswer, "key", dict(reversed(answer_rows.items())))
        insert_exact(connection, StoredAnswer, new_answers)
        hash_chain.append_links(connection, {"attempt": attempts, "answer": new_answers})
        recorded_rows = {row["key"]: row for row in new_answers}
        return [job.answer is not None and recorded_rows.get(job.answer["key"]) is not job.answer for job in jobs]


def compress_payload(data: bytes) -> bytes:
    """Compress data with zlib, in a window just large enough for it.

    Clearing zlib's default window of 32 KB takes longer than compressing these payloads.
    """
    window_bits = min(zlib.MAX_WBITS, (len(data) + ZLIB_LOOKAHEAD_BYTES).bit_length())
    # Level 1 is the fastest. The last argument is zlib's memLevel: its default of 8 for the largest window, less for
    # smaller ones.
    compressor = zlib.compressobj(1, zlib.DEFLATED, window_bits, window_bits - 7)
    return compressor.compress(data) + compressor.flush()


# Statements are cached: SQLAlchemy takes longer to build one than SQLite to execute it.
@functools.cache
def _delete_dispatches_statement(dialect: str) -> sa.Delete:
    """Statement that deletes one run's dispatches of calls; its parameters are `of`, the run's id, and `keys`."""
    table = table_of(Dispatch)
    return sa.delete(table).where(table.c.run == sa.bindparam("of"), _is_among_keys(table.c.key, dialect))


@functools.cache
def _answers_statement(dialect: str) -> sa.Select[Any]:
    """Statement that selects the answers of the calls bound to `keys`."""
    c = table_of(StoredAnswer).c
    return sa.select(*(c[name] for name in _ANSWER_FIELDS)).where(_is_among_keys(c.key, dialect))


@functools.cache
def _attempt_id_statements() -> tuple[sa.Select[Any], sa.Select[Any]]:
    """Statements that select the last id of an attempt, and the ids after `last_id` in order."""
    c = table_of(StoredAttempt).c
    return sa.select(sa.func.max(c.id)), sa.select(c.id).where(c.id > sa.bindparam("last_id")).order_by(c.id)


@functools.cache
def _known_keys_statement(row_class: type, key_column: str, dialect: str) -> sa.Select[Any]:
    """Statement that selects which of the values bound to `keys` a key column already holds."""
    column = table_of(row_class).c[key_column]
    return sa.select(column).where(_is_among_keys(column, dialect))


def _is_among_keys(column: sa.Column[Any], dialect: str) -> sa.ColumnElement[bool]:
    """Condition that a column has one of the values bound to `keys`.

    PostgreSQL takes them as one array: psycopg would parse, and the server would plan, a text that has each by itself.
    """
    if dialect == "postgresql":
        return column == sa.any_(sa.bindparam("keys", type_=sa.ARRAY(sa.String)))
    return column.in_(sa.bindparam("keys", expanding=True))


def _select_new_rows(
    connection: sa.Connection, row_class: type, key_column: str, rows: Mapping[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return those rows whose key is not stored yet. Safe from races, since a transaction is the only writer."""
    if not rows:
        return []
    query = _known_keys_statement(row_class, key_column, connection.dialect.name)
    stored_keys = set(connection.execute(query, {"keys": list(rows)}).scalars())
    return [row for key, row in rows.items() if key not in stored_keys]


def _insert_attempts(connection: sa.Connection, attempts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Insert attempts; returns their rows with the ids that they got, which rise since nobody else writes."""
    if not attempts:
        return []
    last_id_query, new_ids_query = _attempt_id_statements()
    last_id = connection.execute(last_id_query).scalar_one() or 0
    insert_exact(connection, StoredAttempt, list(attempts))
    ids = connection.execute(new_ids_query, {"last_id": last_id}).scalars()
    return [{**row, "id": row_id} for row_id, row in zip(ids, attempts, strict=True)]


def _answer_columns(call: Call, answer: Answer) -> dict[str, object]:
    """Build the row of a call's answer; `payload` is the SHA-256 of the last response's beginning, None without one."""
    request: dict[str, object] = {
        "messages": [{"role": message.role, "content": message.content} for message in call.messages],
        "params": dict(call.params),
        "schema": [call.schema, call.max_words],
    }
    if call.measure is not None:
        request["measure"] = [call.measure, *call.continuations]
    return {name: getattr(answer, name) for name in _ANSWER_FIELDS} | {
        "key": call.key,
        "model": call.model,
        "server": call.server,
        "purpose": call.purpose.value,
        "outcome": answer.outcome.value,
        "request": canonical_json({**request, "sample": call.sample}),
        "created_at": utc_now(),
        "payload": body.digest if answer.attempts and (body := answer.attempts[-1].body) else None,
    }


def _attempt_columns(call: Call, attempt: Attempt, audit_id: int | None = None) -> dict[str, object]:
    """Build the row of one request of a call; `audit_id` is the audit that it is charged to, None for none."""
    return {name: getattr(attempt, name) for name in _ATTEMPT_FIELDS} | {
        "key": call.key,
        "model": call.model,
        "purpose": call.purpose.value,
        "started_at": attempt.started_at.isoformat(timespec="milliseconds"),
        "outcome": attempt.outcome.value,
        "size": attempt.body.size if attempt.body else None,
        "payload": attempt.body.digest if attempt.body else None,
        "audit_id": audit_id,
        "name": call.name,
    }


def load_payload(db: Database, digest: str) -> bytes | None:
    """Load the beginning of a server's response by its SHA-256; None if none is stored."""
    table = table_of(Payload)
    with db.read() as connection:
        compressed = connection.execute(sa.select(table.c.data).where(table.c.digest == digest)).scalar_one_or_none()
    return None if compressed is None else zlib.decompress(compressed)


@dataclass(frozen=True, slots=True)
class CallTranscript:
    """One call that was sent, or several that led to one answer.

    `messages` is empty without an answer, since they are recorded together.

    Attributes:
        messages: what the model was asked.
        text: its answer.
        finish_reason, served_model, prompt_tokens, completion_tokens: see `auditor.domain.Answer`.
        cost_usd: sum over all requests in US dollars; None if the cost of one is unknown.
        attempts: number of requests sent; 0 if they were not recorded in this database.
        started_at: start of the first request, ISO 8601 in UTC.
        seconds: total latency of all requests.
        error: error of the answer, else of the last request.
    """

    messages: tuple[Message, ...] = ()
    text: str | None = None
    finish_reason: str | None = None
    served_model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    attempts: int = 0
    started_at: str | None = None
    seconds: float = 0.0
    error: str | None = None

    @property
    def known_seconds(self) -> float | None:
        """Total latency of all requests; None if they were not recorded."""
        return self.seconds if self.attempts else None


def load_transcripts(db: Database, keys: Iterable[str]) -> dict[str, CallTranscript]:
    """Load the transcripts of calls by key; calls that were never sent are left out."""
    transcripts: dict[str, CallTranscript] = {}
    remaining_keys = iter(keys)
    answers, attempts = table_of(StoredAnswer), table_of(StoredAttempt)
    with db.read() as connection:
        while chunk := list(islice(remaining_keys, MAX_KEYS_PER_QUERY)):
            attempts_by_key: defaultdict[str, list[sa.RowMapping]] = defaultdict(list)
            query = sa.select(attempts).where(attempts.c.key.in_(chunk)).order_by(attempts.c.key, attempts.c.id)
            for row in connection.execute(query).mappings():
                attempts_by_key[row["key"]].append(row)
            rows = connection.execute(sa.select(answers).where(answers.c.key.in_(chunk))).mappings()
            answers_by_key = {row["key"]: row for row in rows}
            transcripts.update(
                (key, _build_transcript(answers_by_key.get(key), attempts_by_key[key]))
                for key in chunk
                if key in answers_by_key or key in attempts_by_key
            )
    return transcripts


def _build_transcript(answer: sa.RowMapping | None, attempts: list[sa.RowMapping]) -> CallTranscript:
    """Build a call's transcript from its answer, if recorded, and its requests, oldest first.

    The cost is the sum over the requests that have a cost of their own; before revision 6 only the answer has one.
    """
    last_attempt = attempts[-1] if attempts else None
    attempt_fields = {
        "attempts": len(attempts),
        "started_at": attempts[0]["started_at"] if attempts else None,
        "seconds": sum(attempt["latency_s"] for attempt in attempts),
        "error": (answer["error"] if answer else None) or (last_attempt["error"] if last_attempt else None),
    }
    if answer is None:
        return CallTranscript(**attempt_fields)
    messages = tuple(
        Message(message["role"], message["content"]) for message in json.loads(answer["request"])["messages"]
    )
    answer_columns = ("text", "finish_reason", "served_model", "prompt_tokens", "completion_tokens")
    charges = [attempt["cost_usd"] for attempt in attempts if attempt["estimated"] is not None]
    cost = total_cost(charges) if charges else answer["cost_usd"]
    return CallTranscript(
        messages=messages, cost_usd=cost, **{name: answer[name] for name in answer_columns}, **attempt_fields
    )
