"""What a model's server accepts, and the form that a request to it takes: found out at first contact."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from auditor.domain.identifiers import canonical_hash

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
        form: of structured answers; None while no structured answer has been requested.
        dropped_keywords: keywords that are left out of JSON schemas; `strict` stands for the strict mode itself.
        dropped_params: request parameters that are left out, by OpenAI's names, such as `temperature` or `seed`.
        token_limit_param: name under which the limit on output tokens is sent.
        thinking_tokens: tokens added to each limit on output tokens, as room for hidden reasoning.
        stream: whether the answer is requested as a stream, since the server sends it in no other way.
    """

    form: AnswerForm | None = None
    dropped_keywords: tuple[str, ...] = ()
    dropped_params: tuple[str, ...] = ()
    token_limit_param: TokenLimitParam = "max_tokens"
    thinking_tokens: int = 0
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
