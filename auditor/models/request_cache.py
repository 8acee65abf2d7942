"""Cache of litellm's prepared requests: requests that differ only in their messages and seed are prepared once.

litellm's `completion` spends two thirds of its CPU time on deriving the provider, the server and the provider's
parameter names from a hundred parameters. The arguments that it then passes to its HTTP handler are cached here, and
passed again with other messages. litellm still translates the messages, the response and the errors of each request.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from types import ModuleType
from typing import Any, NamedTuple

SEED_MARKER = 7_046_029_254_386_353
"""A seed that no audit uses: it marks where the prepared arguments hold the seed, and under which name."""
MAX_CACHED_REQUESTS = 512
"""A run needs a few for each model; the cache is cleared when it is full."""


class CachedRequest(NamedTuple):
    """The arguments that litellm passes to its HTTP handler, with `SEED_MARKER` as the seed.

    Attributes:
        send: the handler's method.
        kwargs: its keyword arguments.
    """

    send: Callable[..., Awaitable[Any]]
    kwargs: dict[str, Any]


_cached_requests: dict[str, CachedRequest | None] = {}
_CAPTURED: ContextVar[list[dict[str, Any]] | None] = ContextVar("tried", default=None)


def clear_request_cache() -> None:
    """Clear the cache, whose requests refer to HTTP clients that are closed or replaced."""
    _cached_requests.clear()


def send_cached_request(
    litellm: ModuleType, build: Callable[..., Any], create_log: Callable[[dict[str, Any]], Any], request: dict[str, Any]
) -> Awaitable[Any] | None:
    """Send a request with cached arguments, which are captured at its first use; None if it cannot be cached.

    Args:
        litellm: the module.
        build: litellm's function that builds a request from keyword arguments and returns a coroutine that sends it.
        create_log: creates the log object that litellm requires; it records nothing, so cached requests share one.
        request: keyword arguments of `build`.

    Returns:
        The coroutine that sends the request.
    """
    messages, seed = request["messages"], request.get("seed")
    other_params = {name: value for name, value in request.items() if name not in ("messages", "seed")}
    try:
        # Requests with the same roles, the same parameters and a seed or none share one entry.
        key = json.dumps([[message["role"] for message in messages], seed is None, other_params], sort_keys=True)
    except TypeError:
        return None
    if key not in _cached_requests:
        if len(_cached_requests) >= MAX_CACHED_REQUESTS:
            _cached_requests.clear()
        marked_request = request if seed is None else request | {"seed": SEED_MARKER}
        _cached_requests[key] = _capture_request(
            litellm, build, marked_request | {"litellm_logging_obj": create_log(marked_request)}
        )
    cached_request = _cached_requests[key]
    if cached_request is None:
        return None
    request_kwargs = {
        "messages": messages,
        "model_response": litellm.ModelResponse(),
        "optional_params": _copy_with_seed(cached_request.kwargs["optional_params"], seed),
        "litellm_params": dict(cached_request.kwargs["litellm_params"]),
        "headers": dict(cached_request.kwargs["headers"] or {}),
    }
    return cached_request.send(**cached_request.kwargs | request_kwargs)


def _capture_request(litellm: ModuleType, build: Callable[..., Any], request: dict[str, Any]) -> CachedRequest | None:
    """Capture the keyword arguments that litellm passes to its HTTP handler, without sending the request.

    None if litellm uses another handler for it, if it fails, or if the seed cannot be replaced in the arguments.

    Args:
        litellm: the module.
        build: litellm's function that builds a request from keyword arguments.
        request: keyword arguments of `build`, with `SEED_MARKER` as the seed if it has one.
    """
    handler = _capturing_handler(litellm)
    captured: list[dict[str, Any]] = []
    token = _CAPTURED.set(captured)
    try:
        # The coroutine is closed without being awaited: the handler has recorded its arguments by then.
        build(**request, acompletion=True).close()
    except Exception:  # noqa: BLE001 - the uncached request raises it again, and it is reported then
        return None
    finally:
        _CAPTURED.reset(token)
    if len(captured) != 1 or ("seed" in request and not _is_seed_replaceable(captured[0])):
        return None
    return CachedRequest(handler.completion, captured[0])


def _is_seed_replaceable(captured_kwargs: dict[str, Any]) -> bool:
    """Whether the marker of the seed occurs in the optional parameters only, and only as a value of its own."""
    optional_params, marker = captured_kwargs["optional_params"], str(SEED_MARKER)
    # The marker must occur at least once, and in the optional parameters as often as in all arguments; and no marker
    # may be left once the seed is replaced, as one inside a longer text would be.
    n_replaceable = repr(optional_params).count(marker)
    return n_replaceable == repr(captured_kwargs).count(marker) > 0 and marker not in repr(
        _copy_with_seed(optional_params, 0)
    )


@functools.cache
def _capturing_handler(litellm: ModuleType) -> Any:
    """Replace litellm's HTTP handler by one that can capture its arguments instead of sending; return the new one."""
    from litellm.llms.custom_httpx.llm_http_handler import BaseLLMHTTPHandler

    class CapturingHandler(BaseLLMHTTPHandler):
        """A handler that records its arguments and sends nothing while `_CAPTURED` is set."""

        def completion(self, **kwargs: Any) -> Any:  # type: ignore[override]
            """Send a request, or record its arguments while `_CAPTURED` is set."""
            captured = _CAPTURED.get()
            if captured is None:
                return super().completion(**kwargs)
            captured.append(kwargs)
            return _skip_sending()

    handler = CapturingHandler()
    vars(litellm.main)["base_llm_http_handler"] = handler
    return handler


async def _skip_sending() -> None:
    """Do nothing; stands for the coroutine of a request that is not sent."""


def _copy_with_seed(template: Any, seed: int | None) -> Any:
    """Copy nested dicts and lists with the seed in place of `SEED_MARKER`."""
    if isinstance(template, dict):
        return {name: _copy_with_seed(child, seed) for name, child in template.items()}
    if isinstance(template, list):
        return [_copy_with_seed(child, seed) for child in template]
    return seed if template == SEED_MARKER else template
