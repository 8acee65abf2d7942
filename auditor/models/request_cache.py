"""Requests of one shape: what litellm makes of all but their words and their seed is the same, and is made once.

Its public function spends two thirds of its CPU time on finding out, from a hundred parameters, which provider is asked
where and by what names it knows them. What it then hands to its HTTP handler is kept here, and handed over again with
other words; the provider's own translation of them, of the answer and of errors stays litellm's, for each request.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from types import ModuleType
from typing import Any, NamedTuple

MARK = 7_046_029_254_386_353
"""A seed that nobody gives: it shows under which name, and where, a provider takes one."""
MOST = 512
"""Shapes that are kept: a run has a few for each model."""


class Shape(NamedTuple):
    """What litellm hands to its handler for requests of one shape, with `MARK` for their seed."""

    send: Callable[..., Awaitable[Any]]
    given: dict[str, Any]


_shapes: dict[str, Shape | None] = {}
_TRIED: ContextVar[list[dict[str, Any]] | None] = ContextVar("tried", default=None)


def forget() -> None:
    """Forget all shapes: the clients that they would be sent by are closed."""
    _shapes.clear()


def sent(
    litellm: ModuleType, build: Callable[..., Any], log: Callable[[dict[str, Any]], Any], request: dict[str, Any]
) -> Awaitable[Any] | None:
    """The request under way by what is known of its shape; None where litellm must do all of it itself.

    Args:
        litellm: the module.
        build: its function that makes a request of keywords and returns what sends it.
        log: makes the log record that it wants, which keeps nothing: one will do for all of a shape.
        request: keywords for it.
    """
    words, seed = request["messages"], request.get("seed")
    rest = {name: value for name, value in request.items() if name not in ("messages", "seed")}
    try:
        key = json.dumps([[m["role"] for m in words], seed is None, rest], sort_keys=True)
    except TypeError:
        return None
    if key not in _shapes:
        if len(_shapes) >= MOST:
            _shapes.clear()
        asked = request if seed is None else request | {"seed": MARK}
        _shapes[key] = _tried(litellm, build, asked | {"litellm_logging_obj": log(asked)})
    shape = _shapes[key]
    if shape is None:
        return None
    own = {
        "messages": words,
        "model_response": litellm.ModelResponse(),
        "optional_params": _filled(shape.given["optional_params"], seed),
        "litellm_params": dict(shape.given["litellm_params"]),
        "headers": dict(shape.given["headers"] or {}),
    }
    return shape.send(**shape.given | own)


def _tried(litellm: ModuleType, build: Callable[..., Any], request: dict[str, Any]) -> Shape | None:
    """What the handler would get for a request, which does not go out; None where it is another handler's."""
    handler = _keeping(litellm)
    kept: list[dict[str, Any]] = []
    token = _TRIED.set(kept)
    try:
        build(**request, acompletion=True).close()
    except Exception:  # noqa: BLE001 - it is raised again, and told, when the request is made in earnest
        return None
    finally:
        _TRIED.reset(token)
    if len(kept) != 1 or ("seed" in request and not _is_replaceable(kept[0])):
        return None
    return Shape(handler.completion, kept[0])


def _is_replaceable(given: dict[str, Any]) -> bool:
    """Whether the seed of a trial is where another can be put in its place, and nowhere else."""
    options, mark = given["optional_params"], str(MARK)
    in_place = repr(options).count(mark)
    return in_place == repr(given).count(mark) > 0 and mark not in repr(_filled(options, 0))


@functools.cache
def _keeping(litellm: ModuleType) -> Any:
    """litellm's HTTP handler, which keeps what it is handed while a shape is tried."""
    from litellm.llms.custom_httpx.llm_http_handler import BaseLLMHTTPHandler

    class Keeping(BaseLLMHTTPHandler):
        """A handler that sends nothing while a shape is tried."""

        def completion(self, **given: Any) -> Any:  # type: ignore[override]
            """Keep, or send."""
            kept = _TRIED.get()
            if kept is None:
                return super().completion(**given)
            kept.append(given)
            return _nothing()

    handler = Keeping()
    vars(litellm.main)["base_llm_http_handler"] = handler
    return handler


async def _nothing() -> None:
    """What is awaited for a request that does not go out."""


def _filled(value: Any, seed: int | None) -> Any:
    """A copy that its owner may change, with the seed in its place."""
    if isinstance(value, dict):
        return {name: _filled(inner, seed) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, seed) for inner in value]
    return seed if value == MARK else value
