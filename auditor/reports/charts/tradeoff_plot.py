"""Trade-off plot: accuracy against cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor.reports.charts.theme import VegaLiteSpec


@dataclass(frozen=True, slots=True)
class TradeoffPoint:
    """One setting or method.

    Attributes:
        label: drawn beside the dot, such as the setting's value.
        series: dots of one series have one colour, such as those of one model; empty for a single series.
        ci_low, ci_high: interval of the accuracy.
        spread: drawn as the size of the dot; None for the smallest.
    """

    label: str
    cost: float
    accuracy: float
    series: str = ""
    ci_low: float | None = None
    ci_high: float | None = None
    spread: float | None = None


def tradeoff_plot(
    points: Sequence[TradeoffPoint], *, cost_title: str, accuracy_title: str, log_cost: bool = False
) -> VegaLiteSpec:
    """Specify a plot of accuracy (up) against cost (right).

    Args:
        log_cost: a logarithmic axis of cost; all costs must be positive then.
    """
    raise NotImplementedError
