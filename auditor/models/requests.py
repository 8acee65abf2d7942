"""One request for a call, and what came of it: whatever a provider does becomes a value here."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from auditor.domain import Answer, Attempt, Call, Outcome
from auditor.models import door
from auditor.models.endpoint import Endpoint
from auditor.models.failures import Failure, classify, is_unreachable, let_go
from auditor.models.likelihood import UNSUPPORTED, read_choice, read_echo
from auditor.models.record import recorded, redacted_body
from auditor.models.responses import read_response
from auditor.models.transport import WIRE, Wire
from auditor.redaction import redact_fields


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a request: an answer with its one attempt, and why it is none.

    Attributes:
        unreachable: no server answered at all.
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
    wire = Wire()
    WIRE.set(wire)
    try:
        # litellm's timeout is one of each read, which a server that drips outlasts; and it keeps a client for each
        # value, so it must always be the same.
        async with asyncio.timeout(limit_s):
            answer = await _send(endpoint, call, timeout_s)
        if answer.outcome is Outcome.SERVER_ERROR:
            failure = Failure(Outcome.SERVER_ERROR, True, False, answer.error or "an empty answer", 200)
    except Exception as error:  # noqa: BLE001 - the one place where a provider's failure becomes a value
        failure = _unsupported(call, classify(error))
        answer, unreachable = failed(call, failure), is_unreachable(error)
        let_go(error)
    if wire.requests:
        answer = recorded(answer, call, wire)
    attempt = Attempt(
        number=number,
        started_at=started,
        latency_s=time.monotonic() - clock,
        outcome=answer.outcome,
        http_status=wire.status or (failure.http_status if failure else 200),
        error=answer.error,
        retry_after_s=failure.retry_after_s if failure else None,
        body=redacted_body(wire),
    )
    return redact_fields(Reply(replace(answer, attempts=(attempt,)), failure, unreachable))


async def _send(endpoint: Endpoint, call: Call, timeout_s: float) -> Answer:
    asked, price = endpoint.request(call, timeout_s), endpoint.price
    if call.measure is not None and call.measure.is_completion:
        return read_echo(call, await door.litellm().atext_completion(**asked), price)
    read = read_response if call.measure is None else read_choice
    return read(call, await door.complete(**asked), price)


def _unsupported(call: Call, failure: Failure) -> Failure:
    """The same failure, unless it says that the server has no such measurement: then words can still be asked for."""
    if call.measure is None or failure.http_status not in UNSUPPORTED[call.measure]:
        return failure
    return replace(failure, outcome=Outcome.NOT_MEASURABLE, retry=False, blocks=False)


def failed(call: Call, failure: Failure) -> Answer:
    """A call that brought no answer."""
    return Answer(call.key, failure.outcome, error=failure.error)
