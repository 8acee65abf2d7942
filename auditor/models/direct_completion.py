"""The one way beside litellm's public function: its own translation of requests, without its logging and look-ups.

`litellm.acompletion` creates a log record of each call, looks up prices, builds each request in another thread, and
derives provider, server and parameter names from a hundred parameters. Here litellm's undecorated `completion` builds a
request in the event loop, and the arguments that it passes to its HTTP handler are kept: requests that differ only in
their messages and seed are built once. The translation of messages, responses and errors stays litellm's.

The first request of each kind is also built by the public function, without being sent. If their bytes differ, all
requests take the public function from then on, and a warning says so. `AUDITOR_PUBLIC_LITELLM=1` turns this way off.
"""

from __future__ import annotations

import asyncio
import functools
import importlib.metadata
import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime
from types import ModuleType
from typing import Any, NamedTuple

import httpx

from auditor.config.providers import provider_of
from auditor.domain import canonical_json
from auditor.models.transport import CURRENT_EXCHANGE, SERVER_STUB, HttpExchange

PUBLIC_ONLY_VARIABLE = "AUDITOR_PUBLIC_LITELLM"
"""Environment variable that turns this module off with the value 1."""
PUBLIC_OPTIONS = {"no-log": True}
"""Arguments of litellm's public function that turn its logging off; they are not sent."""
SEED_MARKER = 7_046_029_254_386_353
"""A seed that no audit uses: it marks where the prepared arguments hold the seed, and under which name."""
MAX_PREPARED_REQUESTS = 512
"""A run needs a few for each model; all are dropped when there are more."""
Request = dict[str, Any]
"""Keyword arguments of litellm's `acompletion`."""
log = logging.getLogger(__name__)


class PreparedRequest(NamedTuple):
    """The arguments that litellm passes to its HTTP handler, with `SEED_MARKER` as the seed.

    Attributes:
        send: the handler's method.
        kwargs: its keyword arguments.
    """

    send: Callable[..., Awaitable[Any]]
    kwargs: dict[str, Any]


_prepared_requests: dict[str, asyncio.Task[PreparedRequest | None]] = {}
"""By kind; the result is None if each request of the kind has to be built."""
_public_only = False
"""Whether the check has failed in this process."""
_CAPTURED: ContextVar[list[dict[str, Any]] | None] = ContextVar("captured", default=None)


def clear_prepared_requests() -> None:
    """Drop all prepared requests, which refer to HTTP clients that are closed or replaced."""
    _prepared_requests.clear()


async def build_directly(litellm: ModuleType, request: Request) -> Awaitable[Any] | None:
    """Build a request without litellm's public function; None if the public function must send it.

    Args:
        litellm: the module.
        request: keyword arguments of `acompletion`.

    Returns:
        An awaitable that sends the request and returns litellm's response; it raises the handler's own errors.
    """
    if _public_only or os.environ.get(PUBLIC_ONLY_VARIABLE) == "1":
        return None
    if not provider_of(request["model"]).builds_directly or not request.get("api_key"):
        return None
    if (kind := _request_kind(request)) is None:
        return None
    if kind not in _prepared_requests:
        if len(_prepared_requests) >= MAX_PREPARED_REQUESTS:
            _prepared_requests.clear()
        _prepared_requests[kind] = asyncio.create_task(_prepare_and_check(litellm, request))
    prepared = await asyncio.shield(_prepared_requests[kind])
    return None if _public_only else _send(litellm, prepared, request)


def _request_kind(request: Request) -> str | None:
    """What requests that share prepared arguments have in common: roles, parameters, and whether there is a seed."""
    common_params = {name: value for name, value in request.items() if name not in ("messages", "seed")}
    roles = [message["role"] for message in request["messages"]]
    try:
        return canonical_json([roles, request.get("seed") is None, common_params])
    except (TypeError, ValueError):
        return None


def _send(litellm: ModuleType, prepared: PreparedRequest | None, request: Request) -> Awaitable[Any]:
    """The awaitable that sends a request, with prepared arguments if there are any."""
    if prepared is None:
        return _build(litellm, request)
    changed_kwargs = {
        "messages": request["messages"],
        "model_response": litellm.ModelResponse(),
        "optional_params": _copy_with_seed(prepared.kwargs["optional_params"], request.get("seed")),
        "litellm_params": dict(prepared.kwargs["litellm_params"]),
        "headers": dict(prepared.kwargs["headers"] or {}),
    }
    return prepared.send(**prepared.kwargs | changed_kwargs)


def _build(litellm: ModuleType, request: Request) -> Coroutine[Any, Any, Any]:
    """Build a request by litellm's undecorated `completion`, and return the coroutine that sends it."""
    build: Callable[..., Any] = inspect.unwrap(litellm.completion)
    coroutine: Coroutine[Any, Any, Any] = build(
        **request, acompletion=True, litellm_logging_obj=_silent_logging_class()(request)
    )
    return coroutine


@functools.cache
def _silent_logging_class() -> Callable[[Request], Any]:
    """A factory of the log object that litellm's undecorated functions need; it records neither prompts nor keys."""
    from litellm.litellm_core_utils.litellm_logging import Logging

    class SilentLogging(Logging):
        """A log object that records nothing."""

        def pre_call(self, *_: Any, **__: Any) -> None:
            """Do nothing."""

        def post_call(self, *_: Any, **__: Any) -> None:
            """Do nothing."""

        def should_run_prompt_management_hooks(self, *_: Any, **__: Any) -> bool:
            """Return False: no managed prompts are used, and the look-up reads all parameters of each call."""
            return False

    return lambda request: SilentLogging(
        model=request["model"],
        messages=request["messages"],
        stream=False,
        call_type="acompletion",
        start_time=datetime.now(),
        litellm_call_id="",
        function_id="",
        litellm_trace_id="-",
        kwargs={},
    )


# --- the check --------------------------------------------------------------------------------------------------


async def _prepare_and_check(litellm: ModuleType, request: Request) -> PreparedRequest | None:
    """Prepare a kind of requests, and turn this way off if one of them differs from what litellm would send."""
    prepared = _prepare(litellm, request)
    direct = await record_request(lambda: _send(litellm, prepared, request))
    public = await record_request(lambda: litellm.acompletion(**request, **PUBLIC_OPTIONS))
    if direct != public:
        _use_public_function_only()
    return prepared


def _use_public_function_only() -> None:
    """Send all further requests by litellm's public function; the first call says so, and why."""
    global _public_only
    if not _public_only:
        _public_only = True  # before the notice: another kind of requests may be checked at the same time
        log.warning(
            "litellm %s builds requests differently than auditor expects; all requests are sent by litellm's public "
            "function, which takes more CPU time.",
            importlib.metadata.version("litellm"),
        )


class _RequestRecorded(BaseException):
    """Ends the building of a request; no error, so that litellm does not try to explain it (0.3 s)."""


async def record_request(start: Callable[[], Awaitable[Any]]) -> list[tuple[Any, ...]]:
    """Method, URL, headers and body of the requests that an awaitable would send; none is sent."""
    requests: list[tuple[Any, ...]] = []

    def record(request: httpx.Request, body: bytes) -> httpx.Response:
        """Record a request in place of sending it."""
        headers = sorted((name.lower(), value) for name, value in request.headers.items())
        requests.append((request.method, str(request.url), headers, body))
        raise _RequestRecorded

    stub_token, exchange_token = SERVER_STUB.set(record), CURRENT_EXCHANGE.set(HttpExchange())
    try:
        # An error of litellm's before sending is met again by the real request, and reported then.
        with suppress(_RequestRecorded, Exception):
            await start()
    finally:
        SERVER_STUB.reset(stub_token)
        CURRENT_EXCHANGE.reset(exchange_token)
    return requests


# --- prepared requests ------------------------------------------------------------------------------------------


def _prepare(litellm: ModuleType, request: Request) -> PreparedRequest | None:
    """Capture the arguments that litellm passes to its HTTP handler for requests of one kind.

    None if litellm uses another handler for it or has none of that name, if it fails, or if the seed cannot be replaced
    in the arguments.
    """
    has_seed = request.get("seed") is not None
    captured: list[dict[str, Any]] = []
    token = _CAPTURED.set(captured)
    try:
        handler = _capturing_handler(litellm)
        # The coroutine is closed without being awaited: the handler has recorded its arguments by then.
        _build(litellm, request | {"seed": SEED_MARKER} if has_seed else request).close()
    except Exception:  # noqa: BLE001 - building the request itself raises it again, and it is reported then
        return None
    finally:
        _CAPTURED.reset(token)
    if len(captured) != 1 or (has_seed and not _is_seed_replaceable(captured[0])):
        return None
    return PreparedRequest(handler.completion, captured[0])


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

        def completion(self, *args: Any, **kwargs: Any) -> Any:
            """Send a request, or record its arguments while `_CAPTURED` is set."""
            captured = _CAPTURED.get()
            if captured is None or args:  # a prepared request has its arguments by name
                return super().completion(*args, **kwargs)
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
        return {name: child if type(child) is str else _copy_with_seed(child, seed) for name, child in template.items()}
    if isinstance(template, list):
        return [_copy_with_seed(child, seed) for child in template]
    return seed if template == SEED_MARKER else template
