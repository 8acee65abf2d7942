"""The only importer of instructor: builds the requests for structured answers, and reads the answers.

Only its public interface is used: a client around a callable of ours that records the request and returns a completion
that we have already. Its retries would multiply with ours and hide the cost of each attempt, so it makes none, and
requests are sent elsewhere, by litellm.
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal, TypeVar, cast

from pydantic import BaseModel

from auditor import bootstrap

S = TypeVar("S", bound=BaseModel)
InstructorMode = Literal["JSON_SCHEMA", "TOOLS"]
READ_CACHE_SIZE, MAX_CACHED_CHARS = 1024, 4000
"""Number and largest length of answers that are kept as read: a verdict is read twice, short ones are often equal."""


@dataclass(slots=True)
class _Exchange:
    """What instructor asks our callable for, and what the callable returns.

    Attributes:
        completion: a completion in OpenAI's format; None if there is none, which instructor cannot read.
        requests: the keyword arguments of every request.
    """

    completion: object = None
    requests: list[dict[str, Any]] = field(default_factory=list)


def _complete(*, exchange: _Exchange, **request: Any) -> object:
    """Record a request of instructor's and return the completion, without sending anything."""
    exchange.requests.append(request)
    return exchange.completion


@functools.cache
def _client(mode: InstructorMode) -> Any:
    """A client of instructor's for one form of structured answers."""
    import instructor  # 0.3 s

    bootstrap.silence_libraries()
    return instructor.from_litellm(_complete, mode=instructor.Mode[mode])


@functools.cache
def _with_response_schema(structure: type[S]) -> type[S]:
    """The structure as instructor would wrap it for each answer, which takes a third of its time."""
    import instructor  # 0.3 s

    return instructor.response_schema(structure)


@functools.cache
def build_structured_request(structure: type[BaseModel], mode: InstructorMode) -> dict[str, Any]:
    """Keyword arguments by which instructor requests a structured answer, without messages; do not change them.

    Args:
        structure: the pydantic model of the answer.
        mode: `JSON_SCHEMA` for a response format, `TOOLS` for a tool that must be called.
    """
    exchange = _Exchange()
    with contextlib.suppress(Exception):  # instructor cannot read the missing completion
        _client(mode).create(response_model=structure, messages=[], max_retries=0, exchange=exchange)
    (request,) = exchange.requests
    return {name: value for name, value in request.items() if name not in ("messages", "model")}


def read_structured_answer(structure: type[S], text: str) -> S | None:
    """Read a text that is JSON as a structure; None if it is not valid. Do not change it: equal texts share it.

    The arguments of a tool are read in the same way, since answers are recorded as texts.
    """
    read = _read_cached if len(text) <= MAX_CACHED_CHARS else _read_cached.__wrapped__
    return cast("S | None", read(structure, text))


@functools.lru_cache(maxsize=READ_CACHE_SIZE)
def _read_cached(structure: type[BaseModel], text: str) -> BaseModel | None:
    """Read a text as a structure by instructor, which takes 0.4 ms or more."""
    from instructor.core import InstructorError  # 0.3 s

    message = SimpleNamespace(content=text, tool_calls=None, refusal=None)
    completion = SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")], usage=None)
    try:
        answer = _client("JSON_SCHEMA").create(
            response_model=_with_response_schema(structure),
            messages=[],
            max_retries=0,
            exchange=_Exchange(completion),
        )
    except InstructorError:
        return None
    return structure.model_construct(**{name: getattr(answer, name) for name in structure.model_fields})
