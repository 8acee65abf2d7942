"""The only importer of instructor: builds requests for structured answers, and says why an answer is invalid.

Only its public interface is used: a client around a callable of ours, which keeps the request, or returns a completion
that we have already. Its retries would multiply with ours and hide the cost of each attempt, so it makes none, and
requests are sent elsewhere, by litellm.
"""

from __future__ import annotations

import copy
import functools
from contextlib import suppress
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from auditor import bootstrap
from auditor.errors import ModelSetupError

UNREADABLE = "the answer cannot be read"


@functools.cache
def load_instructor() -> ModuleType:
    """Import instructor, which loads openai (1 s).

    Raises:
        ModelSetupError: it cannot be imported.
    """
    try:
        import instructor
        import instructor.core
    except ImportError as error:
        raise ModelSetupError(
            f"structured answers need the package instructor, which cannot be imported: {error}.",
            "Install it (pip install --force-reinstall auditor), or ask for free text without judges: "
            'probes.direct.mode = "text" and judges = [].',
        ) from error
    bootstrap.silence_libraries()
    return instructor


def build_request(name: str, schema: dict[str, Any], mode: Literal["JSON_SCHEMA", "TOOLS"]) -> dict[str, Any]:
    """The arguments by which instructor requests an answer of a schema.

    Args:
        name: of the structure.
        schema: its JSON schema, which is sent unchanged.
        mode: instructor's name for the form.
    """

    class Requested(BaseModel):
        """A structure with the given schema."""

        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            """The given schema, in place of one that pydantic makes."""
            return copy.deepcopy(schema)

    Requested.__name__ = name
    instructor = load_instructor()
    requests: list[dict[str, Any]] = []

    def record(**request: Any) -> None:
        """Keep a request, and answer it with nothing."""
        requests.append(request)

    with suppress(instructor.core.InstructorError):  # there is no completion to read
        instructor.from_litellm(record, mode=instructor.Mode[mode]).create(
            response_model=Requested, messages=[], max_retries=0
        )
    (request,) = requests
    return request


def _complete(*, completion: object, **_: Any) -> object:
    """Return the completion for a request of instructor's, without sending anything."""
    return completion


@functools.cache
def _client() -> Any:
    """A client of instructor's for answers that are JSON."""
    instructor = load_instructor()
    return instructor.from_litellm(_complete, mode=instructor.Mode.JSON_SCHEMA)


@functools.cache
def _with_response_schema(structure: type[BaseModel]) -> type[BaseModel]:
    """The structure as instructor would wrap it for each answer, which takes a third of its time."""
    wrapped: type[BaseModel] = load_instructor().response_schema(structure)
    return wrapped


def explain_invalid(structure: type[BaseModel], text: str) -> str:
    """Why instructor cannot read a text as a structure, in one line without the text itself.

    Raises:
        ModelSetupError: instructor cannot be imported.
    """
    instructor = load_instructor()
    message = SimpleNamespace(content=text, tool_calls=None, refusal=None)
    completion = SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")], usage=None)
    try:
        _client().create(
            response_model=_with_response_schema(structure), messages=[], max_retries=0, completion=completion
        )
    except instructor.core.InstructorError as error:
        cause = error.failed_attempts[-1].exception if error.failed_attempts else None
        if isinstance(cause, ValidationError):
            # The first of the validation errors; `loc` is the path to the field.
            problem = cause.errors(include_url=False, include_input=False)[0]
            field_path = ".".join(str(key) for key in problem["loc"])
            return f"{field_path}: {problem['msg']}" if field_path else str(problem["msg"])
    return UNREADABLE
