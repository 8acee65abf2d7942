"""State of each model during a run: its limits, its suspension, and whether it can be used at all."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from auditor.config import ENV_PREFIX, Limits, ModelSection
from auditor.domain import Answer, Call, Outcome
from auditor.error_messages import how_to_fix
from auditor.errors import ModelSetupError
from auditor.models.endpoint import embedded_slots
from auditor.models.failure_streaks import ModelFailures
from auditor.models.failures import RequestFailure
from auditor.models.limiter import DEFAULT_INITIAL_CONCURRENCY, ConcurrencyLimiter, RateLimiter
from auditor.models.litellm_client import TokenPrice
from auditor.models.model_prices import token_price
from auditor.models.provider_request import failed_answer
from auditor.models.retries import ModelSuspension, pause_notice

# Called with the account, the old limit, the new limit and the reason.
LimitChangeCallback = Callable[[str, int, int, str], None]
# Called with a sentence for the user.
NotifyCallback = Callable[[str], None]


@dataclass(slots=True)
class ModelConnection:
    """State of one model during a run.

    Attributes:
        section: the model's section in the config.
        price: per token; None if unknown.
        limiter: of its requests in flight, which also takes a slot of its account.
        rate_limiter: the model's limits per minute.
        first_request_lock: held by the first call, which shows whether the model can be used.
        suspension: set while the provider asks for too long a wait.
        is_confirmed: whether the first call showed that the model can be used.
        n_inconclusive_calls: number of calls that were to show what the server accepts, and failed.
        blocking_failure: a failure that every further request would repeat; None if there was none.
        failures: of its calls in this run.
    """

    section: ModelSection
    price: TokenPrice | None
    limiter: ConcurrencyLimiter
    rate_limiter: RateLimiter
    first_request_lock: asyncio.Lock
    suspension: ModelSuspension
    failures: ModelFailures
    is_confirmed: bool = False
    n_inconclusive_calls: int = 0
    blocking_failure: RequestFailure | None = None

    def blocked_answer(self, call: Call) -> Answer | None:
        """The answer to a call if no request may be sent for it; None if one may."""
        if self.blocking_failure is not None:
            return failed_answer(call, self.blocking_failure)
        if (stopped_answer := self.failures.streak(call.purpose).stopped_answer(call)) is not None:
            return stopped_answer
        reason = self.suspension.reason
        return None if reason is None else Answer(call.key, Outcome.RATE_LIMITED, error=reason)

    def record_response(self, failure: RequestFailure | None, sent_at: float) -> None:
        """Update the suspension and the model's concurrency limit after a request.

        Args:
            failure: None for a success.
            sent_at: time at which the request was sent, as the limiter's `slot` yielded it.
        """
        self.suspension.record_response(failure)
        if failure is None:
            self.limiter.record_success(sent_at)
        elif failure.outcome is Outcome.RATE_LIMITED:
            self.limiter.record_throttling(failure.retry_after_s, sent_at)
        elif failure.outcome in (Outcome.SERVER_ERROR, Outcome.TIMEOUT):
            self.limiter.record_server_error()

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
) -> dict[str, ModelConnection]:
    """Create the state of each model, by its name; models of one account share its slots.

    Args:
        models: all models that may be called, with unique names.
        limits: of the audit.
        on_limit_change: called when the number of requests that a model may have in flight changes.
        notify: called with a sentence when requests wait for long because a provider asks for it.
        is_stopped: whether the run was stopped.
    """
    clock = time.monotonic
    account_slots = {
        account: asyncio.Semaphore(_max_account_requests([m for m in models if m.rate_limit_key == account]))
        for account in {model.rate_limit_key for model in models}
    }
    return {
        model.name: ModelConnection(
            section=model,
            price=token_price(model),
            limiter=ConcurrencyLimiter(
                model.max_concurrency,
                initial_limit=embedded_slots(model.model) or DEFAULT_INITIAL_CONCURRENCY,
                clock=clock,
                on_change=functools.partial(on_limit_change, _describe_account(model)),
                is_stopped=is_stopped,
                max_wait_s=limits.max_retry_wait_s,
                on_wait=functools.partial(_notify_pause, notify, _describe_account(model)),
                account_slots=account_slots[model.rate_limit_key],
            ),
            rate_limiter=RateLimiter(model.rpm, model.tpm, is_stopped, clock),
            first_request_lock=asyncio.Lock(),
            suspension=ModelSuspension(limits, clock),
            failures=ModelFailures(model.name, notify),
        )
        for model in models
    }


def _max_account_requests(account_models: Sequence[ModelSection]) -> int:
    """Requests that may be in flight for an account: the sum of the `concurrency` that its models set.

    If none sets it, the largest default. An embedded model's limit is at most the slots of its servers: requests that
    wait in a server would time out.
    """
    configured_limit = sum(model.concurrency for model in account_models if model.concurrency) or max(
        model.max_concurrency for model in account_models
    )
    slots = embedded_slots(account_models[0].model)
    return configured_limit if slots is None else min(configured_limit, slots)


def _notify_pause(notify: NotifyCallback, account: str, wait_s: float, retry_after_s: float) -> None:
    """Notify the user that requests to a model wait.

    Args:
        notify: called with the message.
        account: description of the model's account.
        wait_s: how long requests wait, in seconds.
        retry_after_s: how long the provider asks to wait, in seconds.
    """
    notify(pause_notice(account, wait_s, retry_after_s))


def _describe_account(section: ModelSection) -> str:
    """Describe a model's account for a message: provider, host, the name of the key's variable, and the model's."""
    provider, key_reference, base_url = section.rate_limit_key
    words = [
        provider,
        f"at {urlsplit(base_url).hostname}" if base_url else "",
        f"by {key_reference.removeprefix(ENV_PREFIX)}" if key_reference else "",
        f"for {section.name}",
    ]
    return " ".join(filter(None, words))
