"""Calls to models: the question, the answer, the HTTP requests made for it, and what servers accept."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from auditor.domain.records import Key, LongText, NotStored
from auditor.domain.terms import ENGLISH, Cell, LogprobMeasure, Outcome, Purpose, canonical_hash


@dataclass(frozen=True, slots=True)
class ResponseBody:
    """Body of an HTTP response, with API keys removed.

    Attributes:
        digest: SHA-256 of `data`, in hex.
        data: the first 64 KiB of the body at most.
        size: number of bytes received.
    """

    digest: str
    data: bytes = field(repr=False)
    size: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that went out for a call; `outcome` says how it ended.

    Attributes:
        body: the server's response, even if it could not be used; None if nothing was received.
        prompt_tokens, completion_tokens: the provider's token counts; None if it sent no usable counts.
        cost_usd: cost of this request alone, 0 if it is free of charge; None if the price is unknown.
        estimated: whether `cost_usd` is an estimate because usable token counts are missing; None if no cost was
            computed.
    """

    number: int
    started_at: datetime
    latency_s: float
    outcome: Outcome
    http_status: int | None = None
    error: LongText[str | None] = None
    retry_after_s: float | None = None
    body: NotStored[ResponseBody | None] = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    estimated: bool | None = None


CAPABILITY_ID_CHARS = 12
TokenLimitParam = Literal["max_tokens", "max_completion_tokens"]


class AnswerForm(StrEnum):
    """How a structured answer is requested, from the richest form to the poorest."""

    JSON_SCHEMA = "json_schema"
    """A response format with the JSON schema, which the server enforces."""
    JSON_OBJECT = "json_object"
    """A response format that enforces any JSON object; the schema is in the prompt."""
    TOOL = "tool"
    """A tool that the model must call, with the schema as its parameters."""
    TEXT = "text"
    """Free text; the schema is in the prompt."""

    @property
    def needs_instruction(self) -> bool:
        """Whether the prompt must describe the structure, since the request does not carry its schema."""
        return self in (AnswerForm.JSON_OBJECT, AnswerForm.TEXT)


@dataclass(frozen=True, slots=True)
class Capability:
    """What the requests to one model look like. It is below the ledger's key: the key says what the audit asks for.

    Attributes:
        stream: whether the answer is requested as a stream, since the server sends it in no other way.
    """

    form: AnswerForm | None = None
    """Form in which structured answers are requested; none before the first one."""
    dropped_keywords: tuple[str, ...] = ()
    """Keywords that are left out of JSON schemas; `strict` is the strict mode itself."""
    dropped_params: tuple[str, ...] = ()
    """Parameters that are left out, by OpenAI's names, such as `temperature` or `seed`."""
    token_limit_param: TokenLimitParam = "max_tokens"
    """Name under which the limit on output tokens is sent."""
    thinking_tokens: int = 0
    """Tokens added to each limit, as room for hidden reasoning."""
    stream: bool = False

    @property
    def id(self) -> str:
        """Identifier: the beginning of the SHA-256 of its content, so equal capabilities have equal ids."""
        return _capability_id(self)


@functools.lru_cache(maxsize=256)  # each answer has the id of one of a few capabilities
def _capability_id(capability: Capability) -> str:
    content = asdict(capability)
    if not capability.stream:  # ids of versions without it stay the same
        del content["stream"]
    return canonical_hash(content)[:CAPABILITY_ID_CHARS]


class CapabilityKey(NamedTuple):
    """What a capability belongs to, within an audit: a model, the server's base URL, and the effort of reasoning."""

    model: str
    server: str | None
    effort: str | None


@dataclass(frozen=True, slots=True)
class ReasoningSettings:
    """How much a model may think before it answers, as the config sets it.

    Attributes:
        effort: the provider's word for it, such as `low`; None if not set.
        max_tokens: limit on hidden reasoning, added to the limit on the answer; None if not set.
    """

    effort: str | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class DeclaredCapabilities:
    """Capabilities that the config declares, which are then not tried out; None for what it does not declare.

    Attributes:
        form: of structured answers.
        temperature, seed: whether the parameter is sent.
        token_limit_param, dropped_keywords: as in `Capability`.
    """

    form: AnswerForm | None = None
    temperature: bool | None = None
    seed: bool | None = None
    token_limit_param: TokenLimitParam | None = None
    dropped_keywords: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Call:
    """One question to one model. Its key identifies it in the ledger, so that no question is asked twice.

    Attributes:
        name: the model's name in the audit; not part of the key, since the model does not see it.
        model: the provider string, such as `openai/gpt-4o`.
        messages: the chat, in order.
        purpose: what the answer is for.
        sample: index of this sample among equal questions, from 0.
        params: request parameters other than the messages: temperature, max_tokens, seed, and so on.
        schema: name of the structured output schema, or None for free text.
        max_words: maximum length of each text in the structured output; the messages state it too.
        server: the provider's base URL if the config sets one.
        measure: how log-probabilities are obtained; None requests text.
        continuations: endings of the sentence in the message, whose log-probabilities are requested.
        cell: the cell of a direct question, used to look up recorded answers; not part of the key, since the messages
            contain it.
        reasoning: how much the model may think; None as the provider does by default. Part of the key only if set.
        declared: capabilities that the config declares; None for none. Part of the key only if set.
        language: ISO 639-1 code of the messages' language; not part of the key, since the messages are.
        base_model: the model whose listed limits hold, if it is not `model`; not part of the key.
        structure_instruction: description of the requested structure, added to the messages when they are sent in a
            form that does not carry the schema; not part of the key, since it depends on the capability.
        retake: how many truncated answers to the same question came before, under lower limits; part of the key only
            if not 0, so that each answer has a key of its own.
        is_repeat: whether the question is asked a second time because the user chose so (`auditor run --ask-again`);
            part of the key only if so. The first answer stays recorded.
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
    reasoning: ReasoningSettings | None = None
    declared: DeclaredCapabilities | None = None
    language: str = ENGLISH
    structure_instruction: str | None = None
    base_model: str | None = None
    retake: int = 0
    is_repeat: bool = False

    @functools.cached_property
    def key(self) -> str:
        """SHA-256, in hex, of the canonical JSON of everything that determines the answer."""
        key_fields: dict[str, object] = {
            "model": self.model,
            "server": self.server,
            "messages": [[message.role, message.content] for message in self.messages],
            "purpose": self.purpose.value,
            "sample": self.sample,
            "params": dict(self.params),
            "schema": [self.schema, self.max_words],
        }
        if self.measure is not None:
            key_fields["measure"] = [self.measure, *self.continuations]
        if self.reasoning is not None:
            key_fields["reasoning"] = asdict(self.reasoning)
        if self.declared is not None:
            key_fields["declared"] = asdict(self.declared)
        if self.retake:
            key_fields["retake"] = self.retake
        if self.is_repeat:
            key_fields["repeat"] = 1
        return canonical_hash(key_fields)

    @property
    def listed_model(self) -> str:
        """The model's name in lists of prices and limits."""
        return self.base_model or self.model

    @property
    def request_text(self) -> str:
        """What the model was shown: the messages of the system and the user; answers of models are left out."""
        return "\n\n".join(message.content for message in self.messages if message.role != "assistant")

    @property
    def prefill(self) -> str:
        """The beginning of the answer that the model is to continue: a last message of the assistant; else empty."""
        last = self.messages[-1] if self.messages else None
        return last.content if last is not None and last.role == "assistant" else ""

    @property
    def capability_key(self) -> CapabilityKey:
        """What the capability of this call's requests belongs to."""
        return CapabilityKey(self.model, self.server, self.reasoning.effort if self.reasoning else None)


def total_cost(costs: Sequence[float | None]) -> float | None:
    """Sum of costs in US dollars; None if one of them is unknown, or if there are none."""
    known_costs = [cost for cost in costs if cost is not None]
    return math.fsum(known_costs) if known_costs and len(known_costs) == len(costs) else None


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a call, or the reason why there is none. Unknown numbers are None, never 0.

    Attributes:
        key: the call's key.
        outcome: set by the gateway: `ok` means that the complete text was received. The parsers decide whether it
            contains a score or a verdict.
        text: the model's text, exactly as decoded; None if nothing was received.
        finish_reason: the provider's own reason for stopping.
        served_model: the model that the provider reports.
        fingerprint: the provider's name for its backend configuration (OpenAI's `system_fingerprint`).
        sent: the parameters as sent, under the provider's own names, as canonical JSON.
        altered: parameters of the call that were dropped or changed before sending, such as `seed` or
            `temperature=1`; empty if none, None if unknown.
        cached_tokens: number of prompt tokens that the provider read from its prompt cache.
        prompt_tokens, completion_tokens: token counts of the last attempt.
        cost_usd: cost of the call including all attempts; None if the price is unknown.
        capability: id of the `Capability` that the answer was requested under; None if unknown.
        form: form in which a structured answer was requested, read from the request as sent; None for a free text.
        reasoning_tokens: the part of `completion_tokens` that is hidden reasoning; None if the provider does not say.
    """

    key: Key[str]
    outcome: Outcome
    text: LongText[str | None] = None
    finish_reason: str | None = None
    served_model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    error: LongText[str | None] = None
    attempts: NotStored[tuple[Attempt, ...]] = ()
    fingerprint: str | None = None
    sent: LongText[str | None] = None
    altered: str | None = None
    capability: str | None = None
    form: AnswerForm | None = None
    reasoning_tokens: int | None = None
