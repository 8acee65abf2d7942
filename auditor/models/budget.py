"""Money: reserved before a call goes out, settled when it comes back."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.config import Limits, ModelSection
from auditor.domain import Call
from auditor.errors import ConfigError
from auditor.models.door import TokenPrice
from auditor.models.endpoint import price_of

BYTES_PER_TOKEN = 3
"""On the low side, so that an estimate is rather too high than too low; bytes, since a letter of Hindi is a token."""


def size(call: Call) -> float:
    """The most tokens that one request of this call may take, in and out, by estimate."""
    return _prompt(call) + _answer(call)


def _prompt(call: Call) -> float:
    return sum(len(m.content.encode()) for m in call.messages) / BYTES_PER_TOKEN


def _answer(call: Call) -> float:
    return float(call.params.get("max_tokens", 0))


def require_prices(models: Iterable[ModelSection], limits: Limits) -> None:
    """Make sure that a budget can hold.

    Raises:
        ConfigError: there is a budget, and a model whose price is not known.
    """
    unknown = [m.name for m in models if price_of(m) is None] if limits.budget_usd is not None else []
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
        self._reserved = 0.0

    def estimate(self, call: Call, price: TokenPrice | None) -> float:
        """The most that one request of this call may cost; 0 when its price is unknown, and so nothing is limited."""
        if price is None:
            return 0.0
        return _prompt(call) * price[0] + _answer(call) * price[1]

    def allows(self, estimate: float) -> bool:
        """Whether the limit leaves so much beside what is spent; who waits for a turn has set nothing aside."""
        return self.limit_usd is None or self.spent_usd + estimate <= self.limit_usd

    def reserve(self, estimate: float) -> bool:
        """Set the amount aside; False when the limit would be passed."""
        if self.limit_usd is not None and self.spent_usd + self._reserved + estimate > self.limit_usd:
            return False
        self._reserved += estimate
        return True

    def hold(self, estimate: float) -> None:
        """Set the amount aside for what went out before, whatever the limit says."""
        self._reserved += estimate

    def settle(self, estimate: float, cost: float | None) -> None:
        """Replace a reservation by what the request really cost, where that is known."""
        self._reserved = max(0.0, self._reserved - estimate)
        self.spent_usd += cost or 0.0
