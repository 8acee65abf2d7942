"""Send one request to a provider and turn the response, or any failure, into a `ProviderReply`."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import httpx

from auditor.config.providers import provider_of
from auditor.domain import Answer, Attempt, Call, Capability, Outcome
from auditor.models import litellm_client
from auditor.models.answer_details import add_exchange_details, redact_response_body
from auditor.models.budget import NO_CHARGE, RequestCharge, charge_estimate, charge_usage
from auditor.models.endpoint import DEFAULT_CAPABILITY, Endpoint
from auditor.models.failures import RequestFailure, classify_failure, clear_traceback_frames, is_unreachable
from auditor.models.logprobs import UNSUPPORTED_STATUSES, parse_choice_logprobs, parse_echo_logprobs
from auditor.models.response_body import (
    TokenUsage,
    fill_missing_fields,
    is_responses_body,
    parse_hour_tokens,
    parse_served_tier,
    parse_surcharged_place,
    parse_usage,
    parse_written_tokens,
)
from auditor.models.response_reader import read_response
from auditor.models.responses import ResponseBody, litellm_token_usage, parse_response, sanitize_strings
from auditor.models.transport import CURRENT_EXCHANGE, SERVER_STUB, HttpExchange


@dataclass(frozen=True, slots=True)
class ProviderReply:
    """Outcome of one request.

    Attributes:
        answer: the answer with its one attempt; of a failed request, with the error and no text.
        failure: why the request failed; None if it succeeded.
        unreachable: whether no connection to the server could be made.
    """

    answer: Answer
    failure: RequestFailure | None
    unreachable: bool = False


async def send_request(
    endpoint: Endpoint,
    call: Call,
    *,
    attempt_number: int,
    timeout_s: float,
    total_timeout_s: float | None = None,
    capability: Capability = DEFAULT_CAPABILITY,
) -> ProviderReply:
    """Send one request for a call and parse the response; a failure of the provider is returned, not raised.

    Args:
        endpoint: where the request is sent.
        call: the call to send.
        attempt_number: number of this attempt at the call, from 1.
        timeout_s: time limit of each read from the connection, in seconds, passed to litellm.
        total_timeout_s: time limit of the whole request, in seconds; None for no limit.
        capability: what the model's server accepts.
    """
    litellm_client.ensure_http_clients()  # takes seconds the first time, which no time limit may include
    started_at, start_s = datetime.now(UTC), time.monotonic()
    failure, unreachable = None, False
    exchange = HttpExchange(total_timeout_s=total_timeout_s)
    CURRENT_EXCHANGE.set(exchange)
    try:
        # litellm's timeout holds for each read, so a server that sends byte by byte never exceeds it. litellm also
        # caches one client per timeout value, so that value must stay the same.
        async with asyncio.timeout(total_timeout_s):
            if endpoint.tokens is not None:
                exchange.access_token = await endpoint.tokens.fetch()
            response = await _send_and_repair(endpoint, call, timeout_s, exchange, capability)
        answer = _response_parser(call, capability)(call, response, exchange.json_body)
        usage, cached_tokens = litellm_token_usage(response)
        if answer.outcome is Outcome.SERVER_ERROR:
            # Retryable (True), and does not block the model (False).
            failure = RequestFailure(
                Outcome.SERVER_ERROR, True, False, answer.error or "an empty answer", exchange.status
            )
    except Exception as error:  # noqa: BLE001 - every failure of a provider is returned as a value
        failure = _mark_unsupported_measure(call, classify_failure(error, exchange))
        answer, unreachable = failed_answer(call, failure), is_unreachable(error, exchange)
        usage, cached_tokens = None, None
        clear_traceback_frames(error)
    answer = replace(answer, capability=capability.id)
    if failure is not None and not failure.is_retryable and not exchange.n_requests:
        # Refused by litellm before sending: no attempt, and no cost.
        return sanitize_strings(ProviderReply(replace(answer, cost_usd=0.0), failure))
    if exchange.n_requests:
        answer = add_exchange_details(answer, call, exchange)
    charge = _request_charge(endpoint, call, answer, exchange, usage, cached_tokens, capability)
    # Without the time that litellm needs, which is seconds at a provider's first request.
    latency_s = exchange.network_s or time.monotonic() - start_s
    attempt = Attempt(attempt_number, started_at, latency_s, answer.outcome)
    return sanitize_strings(
        ProviderReply(
            _with_attempt(answer, attempt, exchange, failure, charge, cached_tokens),
            failure,
            unreachable,
        )
    )


def _with_attempt(
    answer: Answer,
    attempt: Attempt,
    exchange: HttpExchange,
    failure: RequestFailure | None,
    charge: RequestCharge,
    cached_tokens: int | None,
) -> Answer:
    """Add the attempt to the answer, and the request's cost to both; the attempt also gets the HTTP status and body."""
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


async def _send_and_repair(
    endpoint: Endpoint, call: Call, timeout_s: float, exchange: HttpExchange, capability: Capability
) -> Any:
    """Send by litellm; if it cannot read a successful response, repair the body, else read it without litellm.

    Raises:
        Exception: the request failed, or the body has no known format.
    """
    try:
        response = await _call_litellm(endpoint, call, timeout_s, capability)
        is_lossy = exchange.json_body is not None and is_responses_body(exchange.json_body)
        return read_response(exchange.json_body or {}, provider_of(endpoint.model)) if is_lossy else response
    except Exception as error:
        if exchange.json_body is None or exchange.json_body.get("error"):
            raise
        repaired_body = fill_missing_fields(exchange.json_body)
        response = repaired_body and await _reread_body(endpoint, call, timeout_s, capability, repaired_body)
        response = response or read_response(exchange.json_body, provider_of(endpoint.model))
        if response is None:
            raise error
        return response


def _response_parser(call: Call, capability: Capability) -> Callable[[Call, Any, ResponseBody], Answer]:
    """The function that parses the response to a call: of a text, or of its log-probability measure."""
    if call.measure is None:
        return functools.partial(parse_response, capability=capability)
    return parse_echo_logprobs if call.measure.needs_completions_endpoint else parse_choice_logprobs


async def _call_litellm(endpoint: Endpoint, call: Call, timeout_s: float, capability: Capability) -> Any:
    """Send one request by litellm to the chat or completions endpoint and return its response object."""
    request_kwargs = endpoint.request_kwargs(call, timeout_s, capability)
    if call.measure is not None and call.measure.needs_completions_endpoint:
        return await litellm_client.load_litellm().atext_completion(**request_kwargs)
    return await litellm_client.complete_chat(**request_kwargs)


async def _reread_body(endpoint: Endpoint, call: Call, timeout_s: float, capability: Capability, body: bytes) -> Any:
    """Let litellm read a repaired body of an answer that was paid for; None if it cannot. No request is sent."""

    def replay_body(request: httpx.Request, _: bytes) -> httpx.Response:
        """Answer any request with the repaired body."""
        return httpx.Response(200, headers={"content-type": "application/json"}, content=body)

    stub_token, exchange_token = SERVER_STUB.set(replay_body), CURRENT_EXCHANGE.set(HttpExchange())
    try:
        return await _call_litellm(endpoint, call, timeout_s, capability)
    except Exception:  # noqa: BLE001 - the body is then read without litellm
        return None
    finally:
        SERVER_STUB.reset(stub_token)
        CURRENT_EXCHANGE.reset(exchange_token)


def _request_charge(
    endpoint: Endpoint,
    call: Call,
    answer: Answer,
    exchange: HttpExchange,
    usage: TokenUsage | None,
    cached_tokens: int | None,
    capability: Capability,
) -> RequestCharge:
    """Compute the cost of a request.

    Nothing if it was not sent or failed with an HTTP error; an estimate if it was sent and no answer came, since the
    provider may charge for it; else by the provider's token counts.

    Args:
        endpoint: holds the price.
        call: the call that was sent.
        answer: the parsed or failed answer.
        exchange: record of the request and response.
        usage: token counts as litellm read them, for formats that `parse_usage` does not know; None if unknown.
        cached_tokens: number of prompt tokens that the provider had cached; None if unknown.
        capability: what the call was sent under.
    """
    # A missing status is not an error: the request was sent, and no response began.
    if not exchange.n_requests or exchange.unreachable or (exchange.status or 200) >= 300:
        return NO_CHARGE
    if exchange.status is None:
        return charge_estimate(call, endpoint.price, capability)
    tier, place = parse_served_tier(exchange.json_body), parse_surcharged_place(exchange.json_body)
    return charge_usage(
        call,
        litellm_client.served_token_price(endpoint.price, endpoint.listed_price, tier, place),
        parse_usage(exchange.json_body) or usage,
        cached_tokens or 0,
        has_text=answer.text is not None,
        written_tokens=parse_written_tokens(exchange.json_body),
        hour_tokens=parse_hour_tokens(exchange.json_body),
        capability=capability,
    )


def _mark_unsupported_measure(call: Call, failure: RequestFailure) -> RequestFailure:
    """Change a failure's outcome to `not_measurable` if its HTTP status means that the server lacks this measure.

    The model is not blocked then: calls without the measure may succeed. A refused prompt, and a key or a model that
    the server rejects with the same status, say nothing about the measure.
    """
    if call.measure is None or failure.http_status not in UNSUPPORTED_STATUSES[call.measure]:
        return failure
    is_other_cause = failure.outcome is Outcome.REFUSED or (failure.blocks_model and failure.http_status != 404)
    if is_other_cause:
        return failure
    return replace(failure, outcome=Outcome.NOT_MEASURABLE, is_retryable=False, blocks_model=False)


def failed_answer(call: Call, failure: RequestFailure) -> Answer:
    """Create the answer of a failed call: the failure's outcome and error, without a text."""
    return Answer(call.key, failure.outcome, error=failure.error)


def sender_died_reply(call: Call, attempt_number: int, started_at: datetime) -> ProviderReply:
    """Reply for a request whose sending process died: a retryable failure of unknown cost, as it may be charged."""
    error = "the process that sent it died"
    latency_s = (datetime.now(UTC) - started_at).total_seconds()
    failure = RequestFailure(Outcome.SERVER_ERROR, is_retryable=True, blocks_model=False, error=error)
    attempt = Attempt(
        number=attempt_number, started_at=started_at, latency_s=latency_s, outcome=failure.outcome, error=error
    )
    return ProviderReply(replace(failed_answer(call, failure), attempts=(attempt,)), failure)
