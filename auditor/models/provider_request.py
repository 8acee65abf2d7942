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
from auditor.models.budget import NO_CHARGE, RequestCharge, charge_estimate, charge_usage
from auditor.models.endpoint import Endpoint
from auditor.models.exchange_record import add_exchange_details, redact_response_body
from auditor.models.failures import RequestFailure, classify_failure, clear_traceback_frames, is_unreachable
from auditor.models.logprobs import UNSUPPORTED_STATUSES, parse_choice_logprobs, parse_echo_logprobs
from auditor.models.response_body import TokenUsage, fill_missing_fields, has_integer_counts, parse_usage
from auditor.models.responses import ResponseBody, litellm_token_usage, parse_response, sanitize_strings
from auditor.models.transport import CURRENT_EXCHANGE, SERVER_STUB, HttpExchange


@dataclass(frozen=True, slots=True)
class ProviderReply:
    """What came of a request: an answer with its one attempt, and why it is none.

    Attributes:
        unreachable: no connection to the server could be made.
    """

    answer: Answer
    failure: RequestFailure | None
    unreachable: bool = False


async def send_request(
    endpoint: Endpoint, call: Call, *, attempt_number: int, timeout_s: float, total_timeout_s: float | None = None
) -> ProviderReply:
    """Send one request, and read its answer as what was asked for.

    Args:
        number: which attempt at the call this is, from 1.
        timeout_s: of each read, as litellm is told.
        limit_s: of the whole request; None where none can be passed.
    """
    started, clock = datetime.now(UTC), time.monotonic()
    failure, unreachable = None, False
    wire = HttpExchange(total_timeout_s=total_timeout_s)
    CURRENT_EXCHANGE.set(wire)
    try:
        # litellm's timeout is one of each read, which a server that drips outlasts; and it keeps a client for each
        # value, so it must always be the same.
        async with asyncio.timeout(total_timeout_s):
            response = await _send_and_repair(endpoint, call, timeout_s, wire)
        answer = _response_parser(call)(call, response, wire.json_body)
        usage, cached = litellm_token_usage(response)
        if answer.outcome is Outcome.SERVER_ERROR:
            failure = RequestFailure(Outcome.SERVER_ERROR, True, False, answer.error or "an empty answer", wire.status)
    except Exception as error:  # noqa: BLE001 - the one place where a provider's failure becomes a value
        failure = _mark_unsupported_measure(call, classify_failure(error, wire))
        answer, unreachable = failed_answer(call, failure), is_unreachable(error, wire)
        usage, cached = None, None
        clear_traceback_frames(error)
    if wire.n_requests:
        answer = add_exchange_details(answer, call, wire)
    charge = _request_charge(endpoint, call, answer, wire, usage, cached)
    attempt = Attempt(attempt_number, started, time.monotonic() - clock, answer.outcome)
    return sanitize_strings(
        ProviderReply(_with_attempt(answer, attempt, wire, failure, charge, cached), failure, unreachable)
    )


def _with_attempt(
    answer: Answer,
    attempt: Attempt,
    exchange: HttpExchange,
    failure: RequestFailure | None,
    charge: RequestCharge,
    cached_tokens: int | None,
) -> Answer:
    """The answer with its one attempt, and in both what the request cost; the attempt also has what the wire says."""
    attempt = replace(
        attempt,
        http_status=exchange.status,
        error=answer.error,
        retry_after_s=failure.retry_after_s if failure else None,
        body=redact_response_body(exchange),
        prompt_tokens=charge.prompt_tokens,
        completion_tokens=charge.completion_tokens,
        cost_usd=charge.usd,
        estimated=charge.estimated,
    )
    return replace(
        answer,
        prompt_tokens=charge.prompt_tokens,
        completion_tokens=charge.completion_tokens,
        cached_tokens=None if charge.prompt_tokens is None else cached_tokens,
        cost_usd=charge.usd,
        attempts=(attempt,),
    )


async def _send_and_repair(endpoint: Endpoint, call: Call, timeout_s: float, exchange: HttpExchange) -> Any:
    """litellm's response; where it cannot read an answer, its reading of that answer made readable."""
    try:
        return await _call_litellm(endpoint, call, timeout_s)
    except Exception as error:
        if exchange.json_body is None or (readable := fill_missing_fields(exchange.json_body)) is None:
            raise
        return await _reread_body(endpoint, call, timeout_s, readable, error)


def _response_parser(call: Call) -> Callable[[Call, Any, ResponseBody], Answer]:
    if call.measure is None:
        return parse_response
    return parse_echo_logprobs if call.measure.needs_completions_endpoint else parse_choice_logprobs


async def _call_litellm(endpoint: Endpoint, call: Call, timeout_s: float) -> Any:
    asked = endpoint.request_kwargs(call, timeout_s)
    if call.measure is not None and call.measure.needs_completions_endpoint:
        return await litellm_client.load_litellm().atext_completion(**asked)
    return await litellm_client.complete_chat(**asked)


async def _reread_body(endpoint: Endpoint, call: Call, timeout_s: float, body: bytes, error: Exception) -> Any:
    """litellm's reading of an answer that was paid for: no request goes out.

    Raises:
        Exception: the first error, where more than that is wrong with the answer.
    """

    def play(asked: httpx.Request, _: bytes) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "application/json"}, content=body)

    token, recording = SERVER_STUB.set(play), CURRENT_EXCHANGE.set(HttpExchange())
    try:
        return await _call_litellm(endpoint, call, timeout_s)
    except Exception:  # noqa: BLE001 - whatever it is, the first error says more
        raise error from None
    finally:
        SERVER_STUB.reset(token)
        CURRENT_EXCHANGE.reset(recording)


def _request_charge(
    endpoint: Endpoint,
    call: Call,
    answer: Answer,
    exchange: HttpExchange,
    usage: TokenUsage | None,
    cached_tokens: int | None,
) -> RequestCharge:
    """What a request cost. A provider charges for what it answered, and perhaps for what never arrived."""
    if not exchange.n_requests or exchange.unreachable or (exchange.status or 200) >= 300:
        return NO_CHARGE
    if exchange.status is None:
        return charge_estimate(call, endpoint.price)
    sent = parse_usage(exchange.json_body)
    if usage is None or (sent is not None and not has_integer_counts(sent)):
        usage = sent
    return charge_usage(call, endpoint.price, usage, cached_tokens or 0, has_text=answer.text is not None)


def _mark_unsupported_measure(call: Call, failure: RequestFailure) -> RequestFailure:
    """The same failure, unless it says that the server has no such measurement: then words can still be asked for."""
    if call.measure is None or failure.http_status not in UNSUPPORTED_STATUSES[call.measure]:
        return failure
    return replace(failure, outcome=Outcome.NOT_MEASURABLE, is_retryable=False, blocks_model=False)


def failed_answer(call: Call, failure: RequestFailure) -> Answer:
    """A call that brought no answer."""
    return Answer(call.key, failure.outcome, error=failure.error)
