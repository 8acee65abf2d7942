"""State of each model during a run: its limits, its suspension, and whether it can be used at all."""

from __future__ import annotations

import asyncio
import functools
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from auditor.config import ENV_PREFIX, LimitsSection, ModelSection
from auditor.domain import Answer, Call, Outcome
from auditor.error_messages import how_to_fix
from auditor.errors import ModelSetupError
from auditor.models.failure_streaks import ModelFailures
from auditor.models.failures import RequestFailure
from auditor.models.limiter import ConcurrencyLimiter, HeldBack, HeldSlot, RateLimiter, SharedSlots
from auditor.models.litellm_client import TokenPrice, token_price
from auditor.models.provider_request import ProviderReply, failed_answer
from auditor.models.retries import (
    AccountLimits,
    LimitChangeCallback,
    ModelSuspension,
    NotifyCallback,
    suspension_notice,
)

MAX_UNREACHABLE_ATTEMPTS = 2
ONE_KEY_STATUSES = (401, 402, 403, 429)
"""HTTP statuses of failures that block the model, and may hold for one key: no access, no credit."""


@dataclass(slots=True)
class KeyConnection:
    """State of one of a model's keys, or of its only or missing one.

    Attributes:
        section: the model's section with this key alone.
        limiter: of the requests in flight with it, which also takes a slot of its account.
        rate_limiter: limits per minute, of the model or of the key's account.
        suspension: set while the provider refuses every request, or asks for too long a wait.
        account_suspensions: of the models of its account, this one included.
        is_unusable: whether the provider does not accept the key any more, as when its credit is used up.
        n_chosen: number of requests for which it was chosen.
    """

    section: ModelSection
    limiter: ConcurrencyLimiter
    rate_limiter: RateLimiter
    suspension: ModelSuspension
    account_suspensions: Sequence[ModelSuspension]
    is_unusable: bool = False
    n_chosen: int = 0

    @property
    def may_send(self) -> bool:
        """Whether requests can be sent with it, now or after a wait."""
        return not self.is_unusable and self.suspension.cause is None

    def record_response(self, failure: RequestFailure | None, sent_at: float) -> None:
        """Update the suspension and the limits after a request, before its slots are released.

        Args:
            failure: None for a success.
            sent_at: time at which the request was sent, by the limiter's clock.
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


class RequestSlot(NamedTuple):
    """Permission to send one request: with which key, and the slots of its limiter, to be released afterwards."""

    key: KeyConnection
    held: HeldSlot


@dataclass(slots=True)
class ModelConnection:
    """State of one model during a run.

    Attributes:
        section: the model's section in the config.
        price: per token; None if unknown.
        timeout_s: time limit of a request, in seconds.
        deadline_s: time limit of a call, in seconds.
        keys: state of each of its keys, which share its requests; one even if it has no key.
        first_request_lock: held by the first call, which shows whether the model can be used.
        notify: called with a sentence for the user.
        is_confirmed: whether the first call showed that the model can be used.
        n_inconclusive_calls: number of calls that were to show what the server accepts, and failed.
        blocking_failure: a failure that every further request would repeat; None if there was none.
        failures: of its calls in this run.
    """

    section: ModelSection
    price: TokenPrice | None
    timeout_s: float
    deadline_s: float
    keys: Sequence[KeyConnection]
    first_request_lock: asyncio.Lock
    failures: ModelFailures
    notify: NotifyCallback
    is_confirmed: bool = False
    n_inconclusive_calls: int = 0
    blocking_failure: RequestFailure | None = None

    def blocked_answer(self, call: Call, *, has_attempts: bool = False) -> Answer | None:
        """The answer to a call if no request may be sent for it, or no further one; None if one may."""
        if self.blocking_failure is not None:
            return failed_answer(call, self.blocking_failure)
        if (stopped_answer := self.failures.streak(call.purpose).stopped_answer(call)) is not None:
            return stopped_answer
        causes = [key.suspension.cause for key in self.keys if not key.is_unusable]
        if not all(causes):
            return None
        cause = next(iter(causes), "no key is usable")
        error = f"no {'further ' if has_attempts else ''}request was sent: {cause}"
        return Answer(call.key, Outcome.RATE_LIMITED, error=error)

    async def take_slot(
        self, priority: int, estimate_tokens: Callable[[], float], deadline: float | None
    ) -> RequestSlot | None:
        """Wait until all limits allow a request, or until the run is stopped; its slots are held until released.

        Args:
            priority: of the requests that wait, one with the lowest number goes first.
            estimate_tokens: about how many tokens it takes; called if they are limited.
            deadline: end of the call's time, by `time.monotonic`; None before its first request.

        Returns:
            With which key it may be sent, and since when; None if the deadline passed before.
        """
        if deadline is None:
            return await self._take_slot_of_key(priority, estimate_tokens, is_retry=False)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                return await self._take_slot_of_key(priority, estimate_tokens, is_retry=True)
        return None

    async def _take_slot_of_key(
        self, priority: int, estimate_tokens: Callable[[], float], *, is_retry: bool
    ) -> RequestSlot:
        """Wait until a request may be sent with one of the keys; one that rests is left as soon as another is free."""
        admitted_by: list[RateLimiter] = []
        while True:
            key = min(
                [key for key in self.keys if key.may_send] or self.keys,
                key=lambda key: (key.limiter.wait_s() > 0, key.limiter.load, key.n_chosen),
            )
            key.n_chosen += 1
            if not key.rate_limiter.is_unlimited and key.rate_limiter not in admitted_by:
                await key.rate_limiter.acquire(estimate_tokens(), is_retry=is_retry, priority=priority)
                admitted_by.append(key.rate_limiter)
            may_leave = functools.partial(self.has_free_key, but=key)
            with suppress(HeldBack):
                held = await key.limiter.take_slot(is_retry=is_retry, priority=priority, may_leave=may_leave)
                return RequestSlot(key, held)

    def has_free_key(self, but: KeyConnection | None = None) -> bool:
        """Whether requests with one of the keys, other than `but`, are not held back now."""
        return any(key is not but and key.may_send and not key.limiter.wait_s() for key in self.keys)

    def wait_s(self) -> float:
        """Seconds for which requests with every key are held back after a 429."""
        return min(key.limiter.wait_s() for key in self.keys)

    def block_if_unusable(self, reply: ProviderReply, n_tries: int, key: KeyConnection) -> bool:
        """Block the model if a reply to the request number `n_tries` shows that every further request would fail.

        Returns:
            Whether only the key is blocked: its credit is used up, or it is refused, and the model has others.
        """
        failure = reply.failure
        is_unreachable = reply.unreachable and not self.is_confirmed and n_tries >= MAX_UNREACHABLE_ATTEMPTS
        if failure is None or not (failure.blocks_model or is_unreachable):
            return False
        others = [other for other in self.keys if other is not key and not other.is_unusable]
        if failure.http_status in ONE_KEY_STATUSES and others:
            if not key.is_unusable:
                variable = key.section.api_keys[0].removeprefix(ENV_PREFIX)
                self.notify(f"'{self.section.name}' goes on without the key in {variable}: {failure.error}")
            key.is_unusable = True
            return True
        self.blocking_failure = failure
        return False

    def unusable_error(self, failure: RequestFailure) -> ModelSetupError:
        """The error for a model that cannot be used, with a fix that depends on the failure."""
        model_text = f"model '{self.section.name}' ({self.section.model}"
        model_text += f" at {self.section.api_base})" if self.section.api_base else ")"
        fix = how_to_fix(failure.http_status, failure.error) or "Check the model's name and the server's address."
        if failure.http_status == 401:
            fix = (
                f"Check the key in {' and '.join(self.section.api_keys)}."
                if self.section.api_keys
                else 'Add api_key = "os.environ/…" to the model, with the name of the variable that holds its key.'
            )
        elif failure.http_status is not None:
            fix += " To finish the audit without this model, remove it from the config: its recorded answers are kept."
        return ModelSetupError(f"{model_text} cannot be used: {failure.error.rstrip(' .')}.", fix)


def connect_models(
    models: Sequence[ModelSection],
    limits: LimitsSection,
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
    accounts: dict[object, AccountLimits] = {}
    sections = {model.name: model.split_by_key() for model in models}
    for key in {section.rate_limit_key for model_sections in sections.values() for section in model_sections}:
        members = [s for model_sections in sections.values() for s in model_sections if s.rate_limit_key == key]
        accounts[key] = AccountLimits(members, limits, notify, rng)
    connections = {}
    for model in models:
        has_common_limit = model.concurrency is not None and len(sections[model.name]) > 1
        model_slots = SharedSlots(model.max_concurrency) if has_common_limit else None
        keys = [
            _connect_key(
                model,
                section,
                accounts[section.rate_limit_key],
                limits,
                on_limit_change,
                notify,
                is_stopped,
                model_slots,
            )
            for section in sections[model.name]
        ]
        if model.rate_limit_scope != "account":  # the limits per minute are those of the model
            keys = [replace(key, rate_limiter=keys[0].rate_limiter) for key in keys]
        connections[model.name] = ModelConnection(
            section=model,
            price=token_price(model),
            timeout_s=model.resolved_timeout_s,
            deadline_s=limits.resolved_deadline_s(model.resolved_timeout_s),
            keys=keys,
            first_request_lock=asyncio.Lock(),
            failures=ModelFailures(model.name, notify),
            notify=notify,
        )
    return connections


def _connect_key(
    model: ModelSection,
    section: ModelSection,
    account: AccountLimits,
    limits: LimitsSection,
    on_limit_change: LimitChangeCallback,
    notify: NotifyCallback,
    is_stopped: Callable[[], bool],
    model_slots: SharedSlots | None,
) -> KeyConnection:
    """Create the state of one of a model's keys, which `section` has alone.

    The others are as in `connect_models` and `AccountLimits.make_limiter`.
    """

    def announce(cause: str, wait_s: float) -> None:
        """Notify the user that no requests are sent for a time."""
        variable = section.api_keys[0].removeprefix(ENV_PREFIX) if len(model.api_keys) > 1 else None
        notify(suspension_notice(model.name, cause, wait_s, variable))

    suspension = ModelSuspension(limits, limits.resolved_deadline_s(model.resolved_timeout_s), announce, time.monotonic)
    account.suspensions.append(suspension)
    return KeyConnection(
        section=section,
        limiter=account.make_limiter(
            section, on_limit_change, lambda: is_stopped() or suspension.cause is not None, model_slots
        ),
        rate_limiter=account.make_rate_limiter(section, is_stopped),
        suspension=suspension,
        account_suspensions=account.suspensions,
    )
