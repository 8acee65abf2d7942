"""Calls with what was asked, what came back and how long it took: the ledger as other programs want to see it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from sqlalchemy import RowMapping, select

from auditor.domain import Message, total_cost
from auditor.storage.database import Database, table_of
from auditor.storage.ledger import MAX_KEYS_PER_QUERY
from auditor.storage.tables import AnswerRow, AttemptRow


@dataclass(frozen=True, slots=True)
class CallTranscript:
    """One call that went out. Without an answer there are no messages: what was asked is recorded with the answer.

    Attributes:
        cost_usd: of all requests; None where one is unknown.
        attempts: requests that went out; 0 where they were not recorded here.
        started_at: of the first, ISO 8601 in UTC.
        seconds: that all of them took together.
        error: of the last, where it failed.
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


def load_transcripts(db: Database, keys: Iterable[str]) -> dict[str, CallTranscript]:
    """What is recorded of the calls with these keys; a call that never went out is missing."""
    found: dict[str, CallTranscript] = {}
    remaining = iter(keys)
    answers, attempts = table_of(AnswerRow), table_of(AttemptRow)
    with db.read() as connection:
        while chunk := list(islice(remaining, MAX_KEYS_PER_QUERY)):
            tried: defaultdict[str, list[RowMapping]] = defaultdict(list)
            query = select(attempts).where(attempts.c.key.in_(chunk)).order_by(attempts.c.key, attempts.c.id)
            for row in connection.execute(query).mappings():
                tried[row["key"]].append(row)
            rows = connection.execute(select(answers).where(answers.c.key.in_(chunk))).mappings()
            said = {row["key"]: row for row in rows}
            found.update(
                (key, _build_transcript(said.get(key), tried[key])) for key in chunk if key in said or key in tried
            )
    return found


def _build_transcript(answer: RowMapping | None, attempts: list[RowMapping]) -> CallTranscript:
    last = attempts[-1] if attempts else None
    tried = {
        "attempts": len(attempts),
        "started_at": attempts[0]["started_at"] if attempts else None,
        "seconds": sum(a["latency_s"] for a in attempts),
        "error": (answer["error"] if answer else None) or (last["error"] if last else None),
    }
    if answer is None:
        return CallTranscript(**tried)
    messages = tuple(Message(m["role"], m["content"]) for m in json.loads(answer["request"])["messages"])
    same = ("text", "finish_reason", "served_model", "prompt_tokens", "completion_tokens")
    charged = [a["cost_usd"] for a in attempts if a["estimated"] is not None]
    cost = total_cost(charged) if charged else answer["cost_usd"]
    return CallTranscript(messages=messages, cost_usd=cost, **{name: answer[name] for name in same}, **tried)
