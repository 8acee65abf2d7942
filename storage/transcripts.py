"""Transcripts of calls for exports: messages, answer, usage, cost and duration, from the ledger."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import sqlalchemy as sa

from auditor.domain import Message, total_cost
from auditor.storage.call_records import StoredAnswer, StoredAttempt
from auditor.storage.database import Database
from auditor.storage.ledger import MAX_KEYS_PER_QUERY
from auditor.storage.row_classes import table_of


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
