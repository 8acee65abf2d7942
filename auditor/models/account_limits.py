"""The limits of an account at a provider: requests in flight, requests and tokens per minute, and pauses after 429."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from auditor.config import ENV_PREFIX, Limits, ModelSection
from auditor.config.model_section import KEY_SEPARATOR
from auditor.models.endpoint import embedded_slots
from auditor.models.limiter import DEFAULT_INITIAL_CONCURRENCY, ConcurrencyLimiter, SharedSlots, pause_delay
from auditor.models.rate_limiter import RateLimiter
from auditor.models.request_gate import RequestGate
from auditor.models.retries import ModelSuspension, pause_notice

# Called with the account, the old limit, the new limit and the reason.
LimitChangeCallback = Callable[[str, int, int, str], None]
# Called with a sentence for the user.
NotifyCallback = Callable[[str], None]


class AccountLimits:
    """What the models of one account share, and the limits of each of them.

    Attributes:
        suspensions: of its models.
    """

    def __init__(
        self, models: Sequence[ModelSection], limits: Limits, notify: NotifyCallback, rng: random.Random
    ) -> None:
        """Create the shared limits.

        Args:
            models: of the account; see `ModelSection.rate_limit_key`.
            limits: of the audit.
            notify: called with a sentence when requests wait for long because a provider refuses them.
            rng: source of the jitter of pauses.
        """
        self.suspensions: list[ModelSuspension] = []
        self._limits, self._notify, self._rng = limits, notify, rng
        self._slots = SharedSlots(_max_account_requests(models))
        paused_together = [model for model in models if model.resolved_rate_limit_scope == "account"]
        self._gate = self._make_gate(describe_account(models[0])) if len(paused_together) > 1 else None
        self._rate_limited = [model for model in models if model.rate_limit_scope == "account"]
        self._rate_limiter: RateLimiter | None = None

    def make_limiter(
        self,
        model: ModelSection,
        on_limit_change: LimitChangeCallback,
        is_stopped: Callable[[], bool],
        model_slots: SharedSlots | None,
    ) -> ConcurrencyLimiter:
        """Create the limit on a model's requests in flight, with its pauses after 429.

        Args:
            model: of this account.
            on_limit_change: called when the number of requests that the model may have in flight changes.
            is_stopped: whether no request is sent to the model any more.
            model_slots: limit on the requests in flight with all keys of the model; None if it has one key.
        """
        description = f"{describe_account(model)} for {model.name.partition(KEY_SEPARATOR)[0]}"
        return ConcurrencyLimiter(
            self._make_gate(description),
            model.max_concurrency,
            initial_limit=embedded_slots(model.model) or DEFAULT_INITIAL_CONCURRENCY,
            clock=time.monotonic,
            on_change=functools.partial(on_limit_change, description),
            is_stopped=is_stopped,
            account_gate=self._gate if model.resolved_rate_limit_scope == "account" else None,
            shared_slots=[self._slots] if model_slots is None else [self._slots, model_slots],
        )

    def make_rate_limiter(self, model: ModelSection, is_stopped: Callable[[], bool]) -> RateLimiter:
        """The limits per minute of a model, or of all models of the account whose `rate_limit_scope` says so."""
        if model.rate_limit_scope != "account":
            return RateLimiter(model.rpm, model.tpm, is_stopped, time.monotonic)
        if self._rate_limiter is None:
            rpm, tpm = (
                next((limit for section in self._rate_limited if (limit := getattr(section, key))), None)
                for key in ("rpm", "tpm")
            )
            self._rate_limiter = RateLimiter(rpm, tpm, is_stopped, time.monotonic)
        return self._rate_limiter

    def _make_gate(self, account: str) -> RequestGate:
        """Create what holds requests back after a 429, for a described account or model."""

        def announce(wait_s: float, retry_after_s: float) -> None:
            """Notify the user of a long wait."""
            self._notify(pause_notice(account, wait_s, retry_after_s))

        return RequestGate(
            functools.partial(pause_delay, rng=self._rng),
            clock=time.monotonic,
            max_wait_s=self._limits.max_retry_wait_s,
            on_wait=announce,
        )


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


def describe_account(section: ModelSection) -> str:
    """Describe a model's account for a message: provider, host, and the name of the key's variable."""
    provider, key_reference, base_url = section.rate_limit_key
    words = [
        provider,
        f"at {urlsplit(base_url).hostname}" if base_url else "",
        f"by {key_reference.removeprefix(ENV_PREFIX)}" if key_reference else "",
    ]
    return " ".join(filter(None, words))
