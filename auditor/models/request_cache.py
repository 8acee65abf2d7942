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

SEED_MARKER = 7_046_029_254_386_353
"""A seed that nobody gives: it shows under which name, and where, a provider takes one."""
MAX_CACHED_REQUESTS = 512
"""Shapes that are kept: a run has a few for each model."""


class CachedRequest(NamedTuple):
    """What litellm hands to its handler for requests of one shape, with `MARK` for their seed."""

    send: Callable[..., Awaitable[Any]]
    kwargs: dict[str, Any]


_cached_requests: dict[str, CachedRequest | None] = {}
_CAPTURED: ContextVar[list[dict[str, Any]] | None] = ContextVar("tried", default=None)


def clear_request_cache() -> None:
    """Forget all shapes: the clients that they would be sent by are closed."""
    _cached_requests.clear()


def send_cached_request(
    litellm: ModuleType, build: Callable[..., Any], create_log: Callable[[dict[str, Any]], Any], request: dict[str, Any]
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
    if key not in _cached_requests:
        if len(_cached_requests) >= MAX_CACHED_REQUESTS:
            _cached_requests.clear()
        asked = request if seed is None else request | {"seed": SEED_MARKER}
        _cached_requests[key] = _capture_request(litellm, build, asked | {"litellm_logging_obj": create_log(asked)})
    shape = _cached_requests[key]
    if shape is None:
        return None
    own = {
        "messages": words,
        "model_response": litellm.ModelResponse(),
        "optional_params": _copy_with_seed(shape.kwargs["optional_params"], seed),
        "litellm_params": dict(shape.kwargs["litellm_params"]),
        "headers": dict(shape.kwargs["headers"] or {}),
    }
    return shape.send(**shape.kwargs | own)


def _capture_request(litellm: ModuleType, build: Callable[..., Any], request: dict[str, Any]) -> CachedRequest | None:
    """What the handler would get for a request, which does not go out; None where it is another handler's."""
    handler = _capturing_handler(litellm)
    kept: list[dict[str, Any]] = []
    token = _CAPTURED.set(kept)
    try:
        build(**request, acompletion=True).close()
    except Exception:  # noqa: BLE001 - it is raised again, and told, when the request is made in earnest
        return None
    finally:
        _CAPTURED.reset(token)
    if len(kept) != 1 or ("seed" in request and not _is_seed_replaceable(kept[0])):
        return None
    return CachedRequest(handler.completion, kept[0])


def _is_seed_replaceable(captured_kwargs: dict[str, Any]) -> bool:
    """Whether the seed of a trial is where another can be put in its place, and nowhere else."""
    options, mark = captured_kwargs["optional_params"], str(SEED_MARKER)
    in_place = repr(options).count(mark)
    return in_place == repr(captured_kwargs).count(mark) > 0 and mark not in repr(_copy_with_seed(options, 0))


@functools.cache
def _capturing_handler(litellm: ModuleType) -> Any:
    """litellm's HTTP handler, which keeps what it is handed while a shape is tried."""
    from litellm.llms.custom_httpx.llm_http_handler import BaseLLMHTTPHandler

    class Keeping(BaseLLMHTTPHandler):
        """A handler that sends nothing while a shape is tried."""

        def completion(self, **given: Any) -> Any:  # type: ignore[override]
            """Keep, or send."""
            kept = _CAPTURED.get()
            if kept is None:
                return super().completion(**given)
            kept.append(given)
            return _skip_sending()

    handler = Keeping()
    vars(litellm.main)["base_llm_http_handler"] = handler
    return handler


async def _skip_sending() -> None:
    """What is awaited for a request that does not go out."""


def _copy_with_seed(template: Any, seed: int | None) -> Any:
    """A copy that its owner may change, with the seed in its place."""
    if isinstance(template, dict):
        return {name: _copy_with_seed(inner, seed) for name, inner in template.items()}
    if isinstance(template, list):
        return [_copy_with_seed(inner, seed) for inner in template]
    return seed if template == SEED_MARKER else template
