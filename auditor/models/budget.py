"""The audit's budget and the cost of requests: an estimate is reserved before a request, and replaced by its cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from auditor.config import LimitsSection, ModelSection
from auditor.domain import Answer, Call, Capability, total_cost
from auditor.errors import ConfigError, pluralize
from auditor.models.endpoint import DEFAULT_CAPABILITY
from auditor.models.litellm_client import TokenPrice, listed_max_output, token_price
from auditor.models.reasoning import sent_output_limit
from auditor.models.request_params import max_output_tokens
from auditor.models.response_body import TokenUsage

BYTES_PER_TOKEN = 3
"""For upper bounds on a prompt's tokens, so rather low; bytes, since one letter of Hindi can be a token."""
PROMPT_CHARS_PER_TOKEN = 4
"""For the estimated cost of a request whose provider reported no usable token counts."""
DEFAULT_MAX_OUTPUT_TOKENS = 16_384
"""Assumed if a call sets no limit and litellm does not list the model's."""
MAX_PLAUSIBLE_TOKENS = 10_000_000
MAX_PLAUSIBLE_TOKEN_RATIO = 100
"""Reported counts above `MAX_PLAUSIBLE_TOKENS`, or this many times the estimate, are taken for an error."""
"""Providers at which a model is a deployment, whose name its owner chose."""


@dataclass(frozen=True, slots=True)
class RequestCharge:
    """What one request cost.

    Attributes:
        prompt_tokens, completion_tokens: the provider's counts; None if it sent no usable ones.
        usd: cost in US dollars; None if the price is unknown.
        estimated: whether `usd` is an estimate, since there are no usable counts.
    """

    prompt_tokens: int | None
    completion_tokens: int | None
    usd: float | None
    estimated: bool


NO_CHARGE = RequestCharge(None, None, 0.0, False)
"""Cost of a request that is free: never sent, or refused with an HTTP error."""


def estimate_max_tokens(call: Call, capability: Capability = DEFAULT_CAPABILITY) -> float:
    """Upper estimate of a request's tokens: the prompt's, plus the limit on output tokens that is sent, if any."""
    return _estimate_max_prompt_tokens(call) + (max_output_tokens(call, capability) or 0.0)


def charge_usage(
    call: Call,
    price: TokenPrice | None,
    usage: TokenUsage | None,
    cached_tokens: int,
    *,
    has_text: bool,
    written_tokens: int = 0,
    hour_tokens: int = 0,
    capability: Capability = DEFAULT_CAPABILITY,
) -> RequestCharge:
    """Compute a request's cost from the provider's token counts, or by estimate if they are implausible.

    Args:
        call: the call that was sent.
        price: per token; None if unknown.
        usage: the provider's counts; None if it sent none.
        cached_tokens: number of prompt tokens that the provider had cached.
        has_text: whether the answer has a text; a count of 0 completion tokens is implausible then.
        written_tokens: number of prompt tokens that the provider wrote to its cache.
        hour_tokens: number of those that it wrote for an hour.
        capability: what the call was sent under.
    """
    has_text = has_text and call.measure is None
    counts = plausible_token_counts(call, usage, has_text=has_text, capability=capability)
    if counts is None:
        return charge_estimate(call, price, capability)
    prompt_tokens, completion_tokens = counts
    usd = (
        None
        if price is None
        else price.request_cost(
            prompt_tokens,
            completion_tokens,
            cached_tokens if 0 <= cached_tokens <= prompt_tokens else 0,
            min(max(written_tokens, hour_tokens), prompt_tokens),
            min(hour_tokens, prompt_tokens),
        )
    )
    return RequestCharge(prompt_tokens, completion_tokens, usd, False)


def charge_estimate(call: Call, price: TokenPrice | None, capability: Capability = DEFAULT_CAPABILITY) -> RequestCharge:
    """Estimate a request's cost from the characters of its prompt and the limit on output tokens that was sent."""
    if price is None:
        # No token counts and no cost: without a price there is not even an estimate.
        return RequestCharge(None, None, None, False)
    return RequestCharge(
        None,
        None,
        _estimate_prompt_tokens(call) * price.prompt_usd + _max_output_tokens(call, capability) * price.completion_usd,
        True,
    )


def estimate_sent_cost(price: TokenPrice, request: str, sent: str) -> float:
    """Estimate the cost of a recorded request in US dollars as `charge_estimate` does.

    Args:
        price: per token.
        request: what was asked, as JSON.
        sent: JSON of the parameters as they were sent.
    """
    completion_tokens = sent_output_limit(sent) or DEFAULT_MAX_OUTPUT_TOKENS
    return len(request) / PROMPT_CHARS_PER_TOKEN * price.prompt_usd + completion_tokens * price.completion_usd


def charge_unknown_attempts(
    call: Call, price: TokenPrice | None, answer: Answer, capability: Capability = DEFAULT_CAPABILITY
) -> Answer:
    """Charge an estimate for attempts whose cost is unknown, because the process that sent them died."""
    if not any(attempt.estimated is None for attempt in answer.attempts):
        return answer
    charge = charge_estimate(call, price, capability)
    attempts = [
        replace(attempt, cost_usd=charge.usd, estimated=charge.estimated) if attempt.estimated is None else attempt
        for attempt in answer.attempts
    ]
    return replace(answer, attempts=tuple(attempts), cost_usd=total_cost([attempt.cost_usd for attempt in attempts]))


def plausible_token_counts(
    call: Call, usage: TokenUsage | None, *, has_text: bool, capability: Capability = DEFAULT_CAPABILITY
) -> tuple[int, int] | None:
    """Return (prompt tokens, completion tokens) as the provider reported them; None if implausible for this call.

    Args:
        call: the call that was sent.
        usage: the provider's counts, of any type; None if it sent none.
        has_text: whether the answer has a text; a missing or zero count of completion tokens is implausible then.
        capability: what the call was sent under.
    """
    if usage is None:
        return None
    prompt_tokens, completion_tokens = _as_integer(usage.prompt), _as_integer(usage.completion)
    completion_tokens = 0 if completion_tokens is None and not has_text else completion_tokens
    if not isinstance(prompt_tokens, int) or not isinstance(completion_tokens, int) or isinstance(prompt_tokens, bool):
        return None
    estimated_tokens = _estimate_prompt_tokens(call) + _max_output_tokens(call, capability)
    max_tokens = min(MAX_PLAUSIBLE_TOKENS, MAX_PLAUSIBLE_TOKEN_RATIO * estimated_tokens)
    if (
        # `has_text` counts as 1: an answer with a text has at least one completion token.
        isinstance(completion_tokens, bool)
        or prompt_tokens <= 0
        or completion_tokens < has_text
        or prompt_tokens + completion_tokens > max_tokens
    ):
        return None
    return prompt_tokens, completion_tokens


def _as_integer(count: object) -> object:
    """Convert a whole float to an integer, since a provider may write 100 tokens as 100.0; return others unchanged."""
    return int(count) if isinstance(count, float) and count.is_integer() else count


def _prompt_texts(call: Call) -> list[str]:
    """Texts of a request: its messages or, at a completions endpoint, the prompt with each continuation."""
    if call.measure is not None and call.measure.needs_completions_endpoint:
        return [call.messages[0].content + continuation for continuation in call.continuations]
    return [message.content for message in call.messages] + [call.structure_instruction or ""]


def _estimate_prompt_tokens(call: Call) -> int:
    """Estimate the number of the prompt's tokens from its characters, to compute a cost."""
    return math.ceil(sum(map(len, _prompt_texts(call))) / PROMPT_CHARS_PER_TOKEN)


def _estimate_max_prompt_tokens(call: Call) -> float:
    """Upper estimate of the number of the prompt's tokens from its bytes, to reserve a part of the budget."""
    return sum(len(text.encode()) for text in _prompt_texts(call)) / BYTES_PER_TOKEN


def _max_output_tokens(call: Call, capability: Capability) -> float:
    """Limit on an answer's tokens: the one that is sent, else the model's in litellm's list, else the default."""
    limit = max_output_tokens(call, capability)
    return float(listed_max_output(call.listed_model) or DEFAULT_MAX_OUTPUT_TOKENS) if limit is None else float(limit)


def _limit_cost(call: Call, price: TokenPrice, capability: Capability) -> float:
    """Cost of a request in US dollars if its prompt and its answer are as long as its limits allow."""
    max_output_usd = _max_output_tokens(call, capability) * price.completion_usd
    return (
        _estimate_max_prompt_tokens(call) * (price.prompt_usd + price.highest_write_fee(call.params)) + max_output_usd
    )


def require_prices(models: Iterable[ModelSection], limits: LimitsSection) -> None:
    """Check that every model has a known price if there is a budget.

    Raises:
        ConfigError: there is a budget, and a model's price is not known.
    """
    unpriced_models = list_unpriced_models(models) if limits.budget_usd is not None else []
    if unpriced_models:
        raise ConfigError(
            f"limits.budget_usd: cannot be enforced: the price of {join_names(unpriced_models)} is unknown.",
            f"{price_advice(unpriced_models)} Or remove the budget.",
        )


def list_unpriced_models(models: Iterable[ModelSection]) -> list[ModelSection]:
    """The models whose price is not known."""
    return [model for model in models if token_price(model) is None]


def price_advice(unpriced_models: Sequence[ModelSection]) -> str:
    """Sentences that name the keys which give the models a price."""
    return " ".join(_price_advice(unpriced_models))


def _price_advice(unpriced_models: Sequence[ModelSection]) -> Iterator[str]:
    """Yield a sentence for each key that gives some of the models a price."""
    misnamed_models = [model for model in unpriced_models if model.base_model]
    deployments = [model for model in unpriced_models if not model.base_model and model.provider.base_model_example]
    if misnamed_models:
        base_models = ", ".join(f"'{model.base_model}'" for model in misnamed_models)
        yield f"Correct base_model of {join_names(misnamed_models)}: {base_models} has no listed price."
    if deployments:
        yield (
            f"For {join_names(deployments)}, add the model behind the Azure deployment, such as "
            f'base_model = "{deployments[0].provider.base_model_example}".'
        )
    others = [model for model in unpriced_models if model not in [*misnamed_models, *deployments]]
    start = f"For {join_names(others)}, add" if others else "Or add"
    yield f"{start} price = {{ input = …, output = … }} in US dollars per million tokens (0 for your own server)."


def join_names(models: Sequence[ModelSection]) -> str:
    """The names of models in quotes, separated by commas."""
    return ", ".join(repr(model.name) for model in models)


OVER_BUDGET_ERROR = "the budget left does not cover the largest possible cost of another request"
"""Why a call was not sent; the same for all calls, so that they are one group of failures."""


class Budget:
    """Spending limit in US dollars that also holds for all requests in flight together.

    If there is a limit, the price of every model is known (`require_prices`).

    Attributes:
        limit_usd: None for no limit.
        spent_usd: cost of all completed requests.
    """

    def __init__(
        self, limit_usd: float | None, spent_usd: float = 0.0, largest_usd: Mapping[str, float] | None = None
    ) -> None:
        """Create a budget without reservations.

        Args:
            limit_usd: limit in US dollars; None for no limit.
            spent_usd: cost of earlier requests, in US dollars.
            largest_usd: cost of the most expensive earlier request to each model: a server that exceeded its limit
                in an earlier run is expected to do so again.
        """
        self.limit_usd = limit_usd
        self._largest_usd = largest_usd or {}
        self.spent_usd = spent_usd
        self._reserved_usd = 0.0
        # Largest excess of an answer over its limits, and the largest that the user was told of, by model.
        self._excess_usd: dict[str, float] = {}
        self._announced_usd: dict[str, float] = {}

    def estimate_max_cost(
        self, call: Call, price: TokenPrice | None, capability: Capability = DEFAULT_CAPABILITY
    ) -> float:
        """Upper estimate of a request's cost in US dollars; 0 if the price is unknown, which implies no limit.

        It has the largest excess so far of the model's answers over their limits, and is at least the cost of the
        model's most expensive request in earlier runs.
        """
        if price is None:
            return 0.0
        limit_usd = _limit_cost(call, price, capability) + self._excess_usd.get(call.name, 0.0)
        return max(limit_usd, self._largest_usd.get(call.name, 0.0))

    def record_excess(
        self, call: Call, price: TokenPrice | None, answer: Answer, capability: Capability = DEFAULT_CAPABILITY
    ) -> str | None:
        """Record by how much an answer cost more than its limits allow, for later estimates of this model's requests.

        Returns:
            A sentence for the user, if there is a limit and the excess is more than twice the largest one that the
            user was told of; else None.
        """
        if price is None or answer.cost_usd is None:
            return None
        excess_usd = answer.cost_usd - _limit_cost(call, price, capability)
        if excess_usd <= self._excess_usd.get(call.name, 0.0):
            return None
        self._excess_usd[call.name] = excess_usd
        if self.limit_usd is None or excess_usd <= 2 * self._announced_usd.get(call.name, 0.0):
            return None
        self._announced_usd[call.name] = excess_usd
        tokens = pluralize(answer.completion_tokens or 0, "token")
        return (
            f"'{call.name}' exceeds its limit: an answer with {tokens}, where at most "
            f"{_max_output_tokens(call, capability):,.0f} were allowed, cost ${excess_usd:.4g} more than was reserved. "
            "From now on, this excess is reserved for each request to it too."
        )

    def allows(self, estimated_usd: float) -> bool:
        """Whether the limit leaves this amount after what is spent; reservations are not counted.

        Checked before a call waits for its turn; it reserves the amount only when its turn comes.
        """
        return self.limit_usd is None or self.spent_usd + estimated_usd <= self.limit_usd

    def has_room(self, estimated_usd: float) -> bool:
        """Whether the limit leaves this amount after what is spent and reserved."""
        return self.limit_usd is None or self.spent_usd + self._reserved_usd + estimated_usd <= self.limit_usd

    def reserve(self, estimated_usd: float) -> bool:
        """Reserve an amount for a request; False, and nothing reserved, if the limit would be exceeded."""
        if not self.has_room(estimated_usd):
            return False
        self._reserved_usd += estimated_usd
        return True

    def reserve_unconditionally(self, estimated_usd: float) -> None:
        """Reserve an amount for a request that was sent before, even if the limit is exceeded."""
        self._reserved_usd += estimated_usd

    def settle_reservation(self, estimated_usd: float, cost_usd: float | None) -> None:
        """Release a request's reservation of `estimated_usd` and add its cost to what is spent; None counts as 0."""
        self._reserved_usd = max(0.0, self._reserved_usd - estimated_usd)
        self.spent_usd += cost_usd or 0.0
