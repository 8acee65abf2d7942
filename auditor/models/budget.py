"""Money: reserved before a call goes out, settled when it comes back, charged for every request that was answered."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from auditor.config import Limits, ModelSection
from auditor.domain import Call
from auditor.errors import ConfigError
from auditor.models.endpoint import token_price
from auditor.models.litellm_client import TokenPrice, listed_max_output
from auditor.models.response_body import TokenUsage

BYTES_PER_TOKEN = 3
"""On the low side, so that an estimate is rather too high than too low; bytes, since a letter of Hindi is a token."""
PROMPT_CHARS_PER_TOKEN = 4
"""Of the prompt of a request that is charged by estimate."""
DEFAULT_MAX_OUTPUT_TOKENS = 16_384
"""Assumed where a call sets no limit and litellm does not list the model's."""
MAX_PLAUSIBLE_TOKENS = 10_000_000
MAX_PLAUSIBLE_TOKEN_RATIO = 100
"""More tokens than this, or than so many times the estimate, are not believed."""
OUTPUT_LIMIT_PARAMS = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True)
class RequestCharge:
    """What one request cost.

    Attributes:
        prompt_tokens, completion_tokens: as the provider counted them; None where it sent no usable counts.
        usd: None where the price is unknown.
        estimated: whether `usd` is our estimate, for want of usable counts.
    """

    prompt_tokens: int | None
    completion_tokens: int | None
    usd: float | None
    estimated: bool


NO_CHARGE = RequestCharge(None, None, 0.0, False)
"""Of a request that no provider charges for: never sent, or refused with an HTTP error."""


def estimate_max_tokens(call: Call) -> float:
    """The most tokens that one request of this call may take, in and out, by estimate."""
    return _estimate_max_prompt_tokens(call) + (_requested_output_limit(call) or 0.0)


def charge_usage(
    call: Call, price: TokenPrice | None, usage: TokenUsage | None, cached_tokens: int, *, has_text: bool
) -> RequestCharge:
    """What a request cost by the provider's token counts, or by estimate where these cannot be believed.

    Args:
        call: what was asked.
        price: of a token; None when unknown.
        usage: the provider's counts; None where it sent none.
        cached: how many of the prompt's tokens the provider had cached.
        has_text: whether the answer has a text, so that no completion tokens at all are no count.
    """
    counts = plausible_token_counts(call, usage, has_text=has_text and call.measure is None)
    if counts is None:
        return charge_estimate(call, price)
    prompt, completion = counts
    usd = (
        None
        if price is None
        else price.request_cost(prompt, completion, cached_tokens if 0 <= cached_tokens <= prompt else 0)
    )
    return RequestCharge(prompt, completion, usd, False)


def charge_estimate(call: Call, price: TokenPrice | None) -> RequestCharge:
    """What an answered request cost by estimate, from the prompt's characters and `max_tokens`."""
    if price is None:
        return RequestCharge(None, None, None, False)
    return RequestCharge(
        None,
        None,
        _estimate_prompt_tokens(call) * price.prompt_usd + _max_output_tokens(call) * price.completion_usd,
        True,
    )


def plausible_token_counts(call: Call, usage: TokenUsage | None, *, has_text: bool) -> tuple[int, int] | None:
    """The tokens of the prompt and of the answer, where they are whole numbers that a request of this size can have."""
    if usage is None:
        return None
    prompt, completion = _as_integer(usage.prompt), _as_integer(usage.completion)
    completion = 0 if completion is None and not has_text else completion
    if not isinstance(prompt, int) or not isinstance(completion, int) or isinstance(prompt, bool):
        return None
    most = min(
        MAX_PLAUSIBLE_TOKENS, MAX_PLAUSIBLE_TOKEN_RATIO * (_estimate_prompt_tokens(call) + _max_output_tokens(call))
    )
    if isinstance(completion, bool) or prompt <= 0 or completion < has_text or prompt + completion > most:
        return None
    return prompt, completion


def _as_integer(count: object) -> object:
    """A count of tokens, of which JSON may write 100 as 100.0."""
    return int(count) if isinstance(count, float) and count.is_integer() else count


def _prompt_texts(call: Call) -> list[str]:
    """The texts of a request; of a measurement on a completions endpoint, one for each end of the sentence."""
    if call.measure is not None and call.measure.needs_completions_endpoint:
        return [call.messages[0].content + end for end in call.continuations]
    return [m.content for m in call.messages]


def _estimate_prompt_tokens(call: Call) -> int:
    return math.ceil(sum(map(len, _prompt_texts(call))) / PROMPT_CHARS_PER_TOKEN)


def _estimate_max_prompt_tokens(call: Call) -> float:
    return sum(len(text.encode()) for text in _prompt_texts(call)) / BYTES_PER_TOKEN


def _requested_output_limit(call: Call) -> float | None:
    limits = [value for name in OUTPUT_LIMIT_PARAMS if isinstance(value := call.params.get(name), (int, float))]
    return float(max(limits)) if limits else None


def _max_output_tokens(call: Call) -> float:
    """The most tokens that an answer may have: by the call, by the model as litellm lists it, or assumed."""
    limit = _requested_output_limit(call)
    return limit if limit is not None else float(listed_max_output(call.model) or DEFAULT_MAX_OUTPUT_TOKENS)


def require_prices(models: Iterable[ModelSection], limits: Limits) -> None:
    """Make sure that a budget can hold.

    Raises:
        ConfigError: there is a budget, and a model whose price is not known.
    """
    unknown = [m.name for m in models if token_price(m) is None] if limits.budget_usd is not None else []
    if unknown:
        raise ConfigError(
            f"limits.budget_usd cannot hold: the price of {', '.join(map(repr, unknown))} is not known.",
            "Give each a price = { input = …, output = … } in US dollars per million tokens (0 for a server of your "
            "own), or leave the budget out.",
        )


class Budget:
    """A limit in US dollars that calls in flight cannot run past together.

    Where there is a limit, every price is known: the gateway takes no other models.
    """

    def __init__(self, limit_usd: float | None, spent_usd: float = 0.0) -> None:
        self.limit_usd = limit_usd
        self.spent_usd = spent_usd
        self._reserved_usd = 0.0

    def estimate_max_cost(self, call: Call, price: TokenPrice | None) -> float:
        """The most that one request of this call may cost; 0 when its price is unknown, and so nothing is limited."""
        if price is None:
            return 0.0
        return _estimate_max_prompt_tokens(call) * price.prompt_usd + _max_output_tokens(call) * price.completion_usd

    def allows(self, estimated_usd: float) -> bool:
        """Whether the limit leaves so much beside what is spent; who waits for a turn has set nothing aside."""
        return self.limit_usd is None or self.spent_usd + estimated_usd <= self.limit_usd

    def reserve(self, estimated_usd: float) -> bool:
        """Set the amount aside; False when the limit would be passed."""
        if self.limit_usd is not None and self.spent_usd + self._reserved_usd + estimated_usd > self.limit_usd:
            return False
        self._reserved_usd += estimated_usd
        return True

    def reserve_unconditionally(self, estimated_usd: float) -> None:
        """Set the amount aside for what went out before, whatever the limit says."""
        self._reserved_usd += estimated_usd

    def settle_reservation(self, estimated_usd: float, cost_usd: float | None) -> None:
        """Replace a reservation by what the request really cost, where that is known."""
        self._reserved_usd = max(0.0, self._reserved_usd - estimated_usd)
        self.spent_usd += cost_usd or 0.0
