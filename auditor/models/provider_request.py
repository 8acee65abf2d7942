"""One request for a call, and what came of it: whatever a provider does becomes a value here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import httpx

from auditor.domain import Answer, Attempt, Call, Outcome
from auditor.models import litellm_client
from auditor.models.budget import NO_CHARGE, Charge, charge_estimate, charge_usage
from auditor.models.endpoint import Endpoint
from auditor.models.exchange_record import recorded, redacted_body
from auditor.models.failures import Failure, classify, is_unreachable, let_go
from auditor.models.logprobs import UNSUPPORTED, read_choice, read_echo
from auditor.models.response_body import Usage, is_counted, made_readable, usage_of
from auditor.models.responses import Body, read_response, sanitize_strings, usage_in
from auditor.models.transport import STAND_IN, WIRE, Wire


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a request: an answer with its one attempt, and why it is none.

    Attributes:
        unreachable: no connection to the server could be made.
    """

    answer: Answer
    failure: Failure | None
    unreachable: bool = False


async def request(
    endpoint: Endpoint, call: Call, *, number: int, timeout_s: float, limit_s: float | None = None
) -> Reply:
    """Send one request, and read its answer as what was asked for.

    Args:
        number: which attempt at the call this is, from 1.
        timeout_s: of each read, as litellm is told.
        limit_s: of the whole request; None where none can be passed.
    """
    started, clock = datetime.now(UTC), time.monotonic()
    failure, unreachable = None, False
    wire = Wire(limit_s=limit_s)
    WIRE.set(wire)
    try:
        # litellm's timeout is one of each read, which a server that drips outlasts; and it keeps a client for each
        # value, so it must always be the same.
        async with asyncio.timeout(limit_s):
            response = await _send(endpoint, call, timeout_s, wire)
        answer = _reader(call)(call, response, wire.body)
        usage, cached = usage_in(response)
        if answer.outcome is Outcome.SERVER_ERROR:
            failure = Failure(Outcome.SERVER_ERROR, True, False, answer.error or "an empty answer", wire.status)
    except Exception as error:  # noqa: BLE001 - the one place where a provider's failure becomes a value
        failure = _unsupported(call, classify(error, wire))
        answer, unreachable = failed(call, failure), is_unreachable(error, wire)
        usage, cached = None, None
        let_go(error)
    if wire.requests:
        answer = recorded(answer, call, wire)
    charge = _charge(endpoint, call, answer, wire, usage, cached)
    attempt = Attempt(number, started, time.monotonic() - clock, answer.outcome)
    return sanitize_strings(Reply(_with_attempt(answer, attempt, wire, failure, charge, cached), failure, unreachable))


def _with_attempt(
    answer: Answer, attempt: Attempt, wire: Wire, failure: Failure | None, charge: Charge, cached: int | None
) -> Answer:
    """The answer with its one attempt, and in both what the request cost; the attempt also has what the wire says."""
    attempt = replace(
        attempt,
        http_status=wire.status,
        error=answer.error,
        retry_after_s=failure.retry_after_s if failure else None,
        body=redacted_body(wire),
        prompt_tokens=charge.prompt_tokens,
        completion_tokens=charge.completion_tokens,
        cost_usd=charge.usd,
        estimated=charge.estimated,
    )
    return replace(
        answer,
        prompt_tokens=charge.prompt_tokens,
        completion_tokens=charge.completion_tokens,
        cached_tokens=None if charge.prompt_tokens is None else cached,
        cost_usd=charge.usd,
        attempts=(attempt,),
    )


async def _send(endpoint: Endpoint, call: Call, timeout_s: float, wire: Wire) -> Any:
    """litellm's response; where it cannot read an answer, its reading of that answer made readable."""
    try:
        return await _ask(endpoint, call, timeout_s)
    except Exception as error:
        if wire.body is None or (readable := made_readable(wire.body)) is None:
            raise
        return await _replayed(endpoint, call, timeout_s, readable, error)


def _reader(call: Call) -> Callable[[Call, Any, Body], Answer]:
    if call.measure is None:
        return read_response
    return read_echo if call.measure.is_completion else read_choice


async def _ask(endpoint: Endpoint, call: Call, timeout_s: float) -> Any:
    asked = endpoint.request(call, timeout_s)
    if call.measure is not None and call.measure.is_completion:
        return await litellm_client.litellm().atext_completion(**asked)
    return await litellm_client.complete(**asked)


async def _replayed(endpoint: Endpoint, call: Call, timeout_s: float, body: bytes, error: Exception) -> Any:
    """litellm's reading of an answer that was paid for: no request goes out.

    Raises:
        Exception: the first error, where more than that is wrong with the answer.
    """

    def play(asked: httpx.Request, _: bytes) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "application/json"}, content=body)

    token, recording = STAND_IN.set(play), WIRE.set(Wire())
    try:
        return await _ask(endpoint, call, timeout_s)
    except Exception:  # noqa: BLE001 - whatever it is, the first error says more
        raise error from None
    finally:
        STAND_IN.reset(token)
        WIRE.reset(recording)


def _charge(
    endpoint: Endpoint, call: Call, answer: Answer, wire: Wire, usage: Usage | None, cached: int | None
) -> Charge:
    """What a request cost. A provider charges for what it answered, and perhaps for what never arrived."""
    if not wire.requests or wire.unreachable or (wire.status or 200) >= 300:
        return NO_CHARGE
    if wire.status is None:
        return charge_estimate(call, endpoint.price)
    sent = usage_of(wire.body)
    if usage is None or (sent is not None and not is_counted(sent)):
        usage = sent
    return charge_usage(call, endpoint.price, usage, cached or 0, has_text=answer.text is not None)


def _unsupported(call: Call, failure: Failure) -> Failure:
    """The same failure, unless it says that the server has no such measurement: then words can still be asked for."""
    if call.measure is None or failure.http_status not in UNSUPPORTED[call.measure]:
        return failure
    return replace(failure, outcome=Outcome.NOT_MEASURABLE, retry=False, blocks=False)


def failed(call: Call, failure: Failure) -> Answer:
    """A call that brought no answer."""
    return Answer(call.key, failure.outcome, error=failure.error)
