"""The only importer of instructor: reads structured answers, by pydantic alone where that is enough.

Only its public interface is used: a client around a callable of ours that returns a completion that we have already.
Its retries would multiply with ours and hide the cost of each attempt, so it makes none, and requests are sent
elsewhere, by litellm.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from auditor import bootstrap

S = TypeVar("S", bound=BaseModel)


def _complete(*, completion: object, **_: Any) -> object:
    """Return the completion for a request of instructor's, without sending anything."""
    return completion


@functools.cache
def _client() -> Any:
    """A client of instructor's for answers that are JSON."""
    import instructor  # loads openai (1 s)

    bootstrap.silence_libraries()
    return instructor.from_litellm(_complete, mode=instructor.Mode.JSON_SCHEMA)


@functools.cache
def _with_response_schema(structure: type[S]) -> type[S]:
    """The structure as instructor would wrap it for each answer, which takes a third of its time."""
    import instructor

    return instructor.response_schema(structure)


def read_structured_answer(structure: type[S], text: str) -> S | None:
    """Read a text that is JSON as a structure; None if it is not valid.

    The arguments of a tool are read in the same way, since answers are recorded as texts. Pydantic reads what is valid
    as it stands, in a hundredth of instructor's time.
    """
    try:
        return structure.model_validate_json(text)
    except ValidationError:
        return _read_by_instructor(structure, text)


def _read_by_instructor(structure: type[S], text: str) -> S | None:
    """Read a text as a structure by instructor; None if instructor cannot read it either."""
    from instructor.core import InstructorError

    message = SimpleNamespace(content=text, tool_calls=None, refusal=None)
    completion = SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")], usage=None)
    try:
        answer = _client().create(
            response_model=_with_response_schema(structure), messages=[], max_retries=0, completion=completion
        )
    except InstructorError:
        return None
    return structure.model_construct(**{name: getattr(answer, name) for name in structure.model_fields})
