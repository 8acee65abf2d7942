"""State of each model during a run: its limits, its suspension, and whether it can be used at all."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

from auditor.config import Limits, ModelSection
from auditor.domain import Answer, Call, Outcome
from auditor.error_messages import how_to_fix
from auditor.errors import ModelSetupError
from auditor.models.account_limits import AccountLimits, LimitChangeCallback, NotifyCallback
from auditor.models.failure_streaks import ModelFailures
from auditor.models.failures import RequestFailure
from auditor.models.limiter import ConcurrencyLimiter
from auditor.models.litellm_client import TokenPrice
from auditor.models.model_prices import token_price
from auditor.models.provider_request import ProviderReply, failed_answer
from auditor.models.rate_limiter import RateLimiter
from auditor.models.retries import ModelSuspension, suspension_notice

MAX_UNREACHABLE_ATTEMPTS = 2


@dataclass(slots=True)
class ModelConnection:
    """State of one model during a run.

    Attributes:
        section: the model's section in the config.
        price: per token; None if unknown.
        deadline_s: time limit of a call, in seconds.
        limiter: of its requests in flight, which also takes a slot of its account.
        rate_limiter: limits per minute, of the model or of its account.
        first_request_lock: held by the first call, which shows whether the model can be used.
        suspension: set while the provider refuses every request, or asks for too long a wait.
        account_suspensions: of the models of its account, this one included.
        is_confirmed: whether the first call showed that the model can be used.
        n_inconclusive_calls: number of calls that were to show what the server accepts, and failed.
        blocking_failure: a failure that every further request would repeat; None if there was none.
        failures: of its calls in this run.
    """

    section: ModelSection
    price: TokenPrice | None
    deadline_s: float
    limiter: ConcurrencyLimiter
    rate_limiter: RateLimiter
    first_request_lock: asyncio.Lock
    suspension: ModelSuspension
    account_suspensions: Sequence[ModelSuspension]
    failures: ModelFailures
    is_confirmed: bool = False
    n_inconclusive_calls: int = 0
    blocking_failure: RequestFailure | None = None

    def blocked_answer(self, call: Call, *, has_attempts: bool = False) -> Answer | None:
        """The answer to a call if no request may be sent for it, or no further one; None if one may."""
        if self.blocking_failure is not None:
            return failed_answer(call, self.blocking_failure)
        if (stopped_answer := self.failures.streak(call.purpose).stopped_answer(call)) is not None:
            return stopped_answer
        if (cause := self.suspension.cause) is None:
            return None
        error = f"no {'further ' if has_attempts else ''}request was sent: {cause}"
        return Answer(call.key, Outcome.RATE_LIMITED, error=error)

    @asynccontextmanager
    async def request_slot(self, tokens: float, deadline: float | None) -> AsyncIterator[float | None]:
        """Wait until all limits allow a request, or until the run is stopped; hold its slots until exit.

        Args:
            tokens: about how many tokens it takes.
            deadline: end of the call's time, by `time.monotonic`; None before its first request.

        Yields:
            The time at which it may be sent, by the limiter's clock; None if the deadline passed before.
        """
        async with AsyncExitStack() as stack:
            sent_at: float | None = None
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await self.rate_limiter.acquire(tokens)
                    sent_at = await stack.enter_async_context(self.limiter.slot(is_retry=deadline is not None))
            yield sent_at

    def record_response(self, failure: RequestFailure | None, sent_at: float) -> None:
        """Update the suspension and the limits after a request, before its slots are released.

        Args:
            failure: None for a success.
            sent_at: time at which the request was sent, as `request_slot` yielded it.
        """
        self.suspension.record_response(failure)
        if failure is None:
            self.limiter.record_success(sent_at)
        elif failure.outcome is Outcome.RATE_LIMITED:
            if self.limiter.record_throttling(failure.retry_after_s, sent_at):
                for suspension in self.account_suspensions:
                    suspension.record_account_refusal(failure)
        elif failure.outcome in (Outcome.SERVER_ERROR, Outcome.TIMEOUT):
            self.limiter.record_server_error(failure.retry_after_s, sent_at)

    def block_if_unusable(self, reply: ProviderReply, n_tries: int) -> None:
        """Block the model if a reply to the request number `n_tries` shows that every further request would fail."""
        failure = reply.failure
        is_unreachable = reply.unreachable and not self.is_confirmed and n_tries >= MAX_UNREACHABLE_ATTEMPTS
        if failure is not None and (failure.blocks_model or is_unreachable):
            self.blocking_failure = failure

    def unusable_error(self, failure: RequestFailure) -> ModelSetupError:
        """The error for a model that cannot be used, with a fix that depends on the failure."""
        model_text = f"model '{self.section.name}' ({self.section.model}"
        model_text += f" at {self.section.api_base})" if self.section.api_base else ")"
        fix = how_to_fix(failure.http_status, failure.error) or "Check the model's name and the server's address."
        if failure.http_status == 401:
            fix = (
                f"Check the key in {self.section.api_key}."
                if self.section.api_key
                else 'Add api_key = "os.environ/…" to the model, with the name of the variable that holds its key.'
            )
        return ModelSetupError(f"{model_text} cannot be used: {failure.error.rstrip(' .')}.", fix)


def connect_models(
    models: Sequence[ModelSection],
    limits: Limits,
    on_limit_change: LimitChangeCallback,
    notify: NotifyCallback,
    is_stopped: Callable[[], bool],
    rng: random.Random,
) -> dict[str, ModelConnection]:
    """Create the state of each model, by its name.

    Args:
        models: all models that may be called, with unique names.
        limits: of the audit.
        on_limit_change: called when the number of requests that a model may have in flight changes.
        notify: called with a sentence when requests wait for long, or are not sent, because a provider refuses them.
        is_stopped: whether the run was stopped.
        rng: source of the jitter of pauses.
    """
    accounts = {
        key: AccountLimits([m for m in models if m.rate_limit_key == key], limits, notify, rng)
        for key in {model.rate_limit_key for model in models}
    }
    return {
        model.name: _connect(model, accounts[model.rate_limit_key], limits, on_limit_change, notify, is_stopped)
        for model in models
    }


def _connect(
    model: ModelSection,
    account: AccountLimits,
    limits: Limits,
    on_limit_change: LimitChangeCallback,
    notify: NotifyCallback,
    is_stopped: Callable[[], bool],
) -> ModelConnection:
    """Create the state of one model; the arguments are those of `connect_models`, and the limits of its account."""
    deadline_s = limits.resolved_deadline_s(model.resolved_timeout_s)
    suspension = ModelSuspension(
        limits,
        deadline_s,
        lambda cause, wait_s: notify(suspension_notice(model.name, cause, wait_s)),
        time.monotonic,
    )
    account.suspensions.append(suspension)
    return ModelConnection(
        section=model,
        price=token_price(model),
        deadline_s=deadline_s,
        limiter=account.make_limiter(model, on_limit_change, lambda: is_stopped() or suspension.cause is not None),
        rate_limiter=account.make_rate_limiter(model, is_stopped),
        first_request_lock=asyncio.Lock(),
        suspension=suspension,
        account_suspensions=account.suspensions,
        failures=ModelFailures(model.name, notify),
    )
