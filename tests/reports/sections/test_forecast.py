"""The document of a cost forecast: unknown prices, the budget, and the recorded cost."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.reports.data.cost import CostForecast, ForecastRange, ForecastRow, RecordedUsage
from auditor.reports.render.plain_text import render_text
from auditor.reports.sections.forecast import build_forecast_document, describe_forecast
from auditor.storage.costs import CallSums

COST = ForecastRange(low=1.5, expected=2.25, high=4.0)
CALLS = ForecastRange(low=32.4, expected=51.3, high=1080)


def make_forecast(
    usd: ForecastRange | None = COST, actual: RecordedUsage | None = None, **changes: Any
) -> CostForecast:
    """A forecast of one model in one stage."""
    tokens = ForecastRange.from_bounds(4321)
    row = ForecastRow(
        name="gpt", model="openai/gpt", stage="direct", calls=CALLS, prompt_tokens=tokens, completion_tokens=tokens,
        usd=usd, price=None if usd is None else (2.5, 10), price_source="config", basis="words", actual=actual,
    )  # fmt: skip
    figures = {"audit": "x", "cells": 9, "rows": [row], "calls": CALLS, "usd": usd, "unknown_prices": []}
    figures |= {"not_estimated": [], "budget_usd": None, "recorded": None}
    return CostForecast.model_validate({**figures, **changes})


def test_the_lead_states_calls_and_cost() -> None:
    assert describe_forecast(make_forecast()) == "About 51 (32 to 1\u202f080) calls and $2.25 ($1.50 to $4.00)."
    assert describe_forecast(make_forecast(unknown_prices=["b"])).endswith(", for the models with a known price.")
    assert describe_forecast(make_forecast(usd=None)).endswith("calls; the cost is unknown.")
    assert describe_forecast(make_forecast(usd=ForecastRange.from_bounds(0))).endswith("calls, at no cost.")


def test_every_figure_of_the_forecast_is_shown() -> None:
    text = render_text(build_forecast_document(make_forecast()), width=200)
    for figure in ("32", "51", "1\u202f080", "4\u202f321", "$1.50", "$2.25", "$4.00", "$2.50", "$10.00", "words"):
        assert figure in text
    assert "9 cells, planned" in text
    assert "unknown" in render_text(build_forecast_document(make_forecast(usd=None)))


@pytest.mark.parametrize(("budget", "phrase"), [(1.0, "will"), (2.0, "is expected to"), (3.0, "may"), (5.0, None)])
def test_a_budget_that_may_end_the_run_is_a_reason_for_caution(budget: float, phrase: str | None) -> None:
    text = render_text(build_forecast_document(make_forecast(budget_usd=budget)), width=200)
    assert (f"{phrase} end the run before it is complete" in text) is (phrase is not None)


def test_gaps_of_the_estimate_are_reasons_for_caution() -> None:
    forecast = make_forecast(unknown_prices=["b", "c"], not_estimated=["'logic' is not estimated."], recorded=27)
    text = render_text(build_forecast_document(forecast), width=200)
    assert "Unknown price: b, c. How to fix: set price = {" in text
    assert "'logic' is not estimated." in text
    assert "27 direct calls will not be repeated" in text


@pytest.mark.parametrize(
    ("usd", "unpriced", "shown"),
    [
        (3.0, 0, ("$3.00", "1.33", "yes")),
        (9.0, 0, ("$9.00", "4.00", "no")),
        (3.0, 2, ("≥ $3.00",)),
        (None, 5, ("unknown",)),
    ],
)
def test_the_forecast_is_compared_with_the_recorded_cost(
    usd: float | None, unpriced: int, shown: tuple[str, ...]
) -> None:
    actual = RecordedUsage(
        sums=CallSums(answers=50, prompt_tokens=9, completion_tokens=777, unpriced=unpriced), usd=usd
    )
    document = build_forecast_document(make_forecast(actual=actual, actual_usd=3.0))
    assert (document.kind, document.subtitle) == ("Estimate and outcome", "9 cells, as run")
    text = render_text(document, width=200)
    for figure in (f"Recorded so far: {'≥ ' if unpriced else ''}$3.00.", "777", *shown):
        assert figure in text
