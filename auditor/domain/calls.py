"""A question to a model, the requests that went out for it, and the answer that came back."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from auditor.domain.identifiers import canonical_hash
from auditor.domain.terms import Cell, LogprobMeasure, Outcome, Purpose


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Call:
    """One question to one model, complete enough that its key says whether it was asked before.

    Attributes:
        name: the model's name in the audit; not part of the key, since it changes nothing the model sees.
        model: the provider string, such as `openai/gpt-4o`.
        messages: the chat, in order.
        purpose: what the answer is for.
        sample: index of this sample among equal questions, from 0.
        params: what is sent beside the messages: temperature, max_tokens, seed, and the like.
        schema: name of the structure asked for, or None for free text.
        max_words: length of each text in the structure that is asked for; the messages say it too.
        server: the provider's base URL where the config sets one.
        measure: what log-probabilities are read from; None asks for words.
        continuations: ends of the sentence that the message begins, whose log-probabilities are wanted.
        cell: what a direct question is about, for whoever answers from a record; the messages say it, so that it is no
            part of the key.
    """

    name: str
    model: str
    messages: tuple[Message, ...]
    purpose: Purpose
    sample: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    schema: str | None = None
    max_words: int | None = None
    server: str | None = None
    measure: LogprobMeasure | None = None
    continuations: tuple[str, ...] = ()
    cell: Cell | None = None

    @functools.cached_property
    def key(self) -> str:
        """SHA-256, in hex, of the canonical JSON of all that determines the answer."""
        told = {
            "model": self.model,
            "server": self.server,
            "messages": [[m.role, m.content] for m in self.messages],
            "purpose": self.purpose.value,
            "sample": self.sample,
            "params": dict(self.params),
            "schema": [self.schema, self.max_words],
        }
        return canonical_hash(told if self.measure is None else told | {"measure": [self.measure, *self.continuations]})


@dataclass(frozen=True, slots=True)
class ResponseBody:
    """An answer's body as it came, keys cut out of it.

    Attributes:
        digest: SHA-256 of what is kept, in hex.
        data: its beginning, at most 64 KiB.
        size: bytes that arrived.
    """

    digest: str
    data: bytes = field(repr=False)
    size: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that went out for a call; `outcome` says how it ended.

    Attributes:
        body: what the server sent, whatever was made of it; None when nothing came.
        prompt_tokens, completion_tokens: as the provider counted them; None where it sent no usable counts.
        cost_usd: of this request alone, 0 where none is charged; None when the price is unknown.
        estimated: whether `cost_usd` is an estimate, for want of usable counts; None where nobody has charged it.
    """

    number: int
    started_at: datetime
    latency_s: float
    outcome: Outcome
    http_status: int | None = None
    error: str | None = None
    retry_after_s: float | None = None
    body: ResponseBody | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    estimated: bool | None = None


def total_cost(costs: Sequence[float | None]) -> float | None:
    """The sum of what some requests cost, in US dollars; None where one is unknown, or there are none."""
    known = [cost for cost in costs if cost is not None]
    return math.fsum(known) if known and len(known) == len(costs) else None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for a call, or why nothing did. Unknown numbers are None, never 0.

    Attributes:
        key: the call's key.
        outcome: as judged by the gateway: `ok` here means that text arrived complete; whether it can be read as a
            score or a verdict is decided by the parser of its purpose.
        text: the model's words, exactly as decoded; None when nothing arrived.
        finish_reason: the provider's own reason for stopping.
        served_model: the model that the provider says it used.
        fingerprint: the provider's name for the configuration behind it (OpenAI's `system_fingerprint`).
        sent: the parameters that went over the wire, in the provider's own names, canonical JSON.
        altered: parameters of the call that did not go out as they were asked for, such as `seed` or
            `temperature=1`; empty when all did, None when it is not known.
        cached_tokens: of the tokens of the prompt, those that the provider had kept of earlier ones.
        prompt_tokens, completion_tokens: of the last attempt.
        cost_usd: what the call cost, all its attempts included; None when the price is unknown.
    """

    key: str
    outcome: Outcome
    text: str | None = None
    finish_reason: str | None = None
    served_model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    error: str | None = None
    attempts: tuple[Attempt, ...] = ()
    fingerprint: str | None = None
    sent: str | None = None
    altered: str | None = None
