"""`auditor doctor CONFIG --ping`: ask each model one question, and show what works as a table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.console.output import print_message, print_table
from auditor.redaction import redact
from auditor.reports.number_format import pluralize

if TYPE_CHECKING:
    from auditor.run.ping import PingPlan
    from auditor.run.ping_results import PingResult

COLUMNS = (
    "",
    "model",
    "reachable",
    "key",
    "form",
    "temperature",
    "seed",
    "logprobs",
    "latency",
    "price (in / out, per million)",
)

EXPECTED_ANSWER_WORDS = 120
"""Words of an answer to a question without a limit of words, for the likely cost."""


def ping_config(path: Path, overrides: Sequence[str] = ()) -> tuple[PingPlan, list[PingResult]]:
    """Say what asking the models of a config costs at most, and ask them.

    Raises:
        AuditorError: the config cannot be used, a key would go to a server that the user has not allowed, or the
            greatest cost exceeds the budget. Nothing was sent then.
    """
    from auditor.config import load_config
    from auditor.run.ping import ping_models, plan_pings

    config = load_config(path, overrides)
    plan = plan_pings(config)
    print_message(describe_plan(plan))
    return plan, ping_models(config, plan, _print_progress if sys.stderr.isatty() else None)


def describe_plan(plan: PingPlan) -> str:
    """How many requests are sent at most, and what they likely cost and cost at most."""
    from auditor.models.capability_registry import MAX_DISCOVERY_REQUESTS  # loads litellm's client (0.3 s)

    n_models = sum(ping.call is not None for ping in plan.pings)
    unpriced = plan.unpriced_models
    without = f", without {', '.join(unpriced)}, whose price is unknown" if unpriced else ""
    return (
        f"Asking {n_models} of {pluralize(len(plan.pings), 'model')}: at most "
        f"{pluralize(plan.max_requests, 'request')} in all. Likely cost: ${estimate_likely_cost(plan):.4f}; at most "
        f"${plan.max_cost_usd:.4f}, if every test fails and every answer is as long as its limit{without}. Each model "
        f"gets at most {MAX_DISCOVERY_REQUESTS} requests that test what its server accepts, and one for "
        "log-probabilities if it may offer them."
    )


def estimate_likely_cost(plan: PingPlan) -> float:
    """Expected cost in US dollars of a plan whose servers accept the first request, without unpriced models."""
    from auditor.cost_estimation.planned_calls import PlannedCalls
    from auditor.cost_estimation.token_forecast import build_forecast_row
    from auditor.reports.data.cost.forecast import ForecastRange

    likely_usd = 0.0
    for ping in plan.pings:
        for call in filter(None, (ping.call, ping.logprob_call)):
            words = float(call.max_words or EXPECTED_ANSWER_WORDS)
            planned = PlannedCalls(ping.model, call.purpose, ForecastRange.from_bounds(1), [call], words)
            row = build_forecast_row(planned, None, None)
            likely_usd += 0.0 if row.usd is None else row.usd.expected
    return min(likely_usd, plan.max_cost_usd)


def _print_progress(ping: PingResult) -> None:
    """Print that a model was asked."""
    print_message(f"{ping.state:<4}  {ping.model}: {pluralize(ping.requests, 'request')}")


def print_pings(results: list[PingResult]) -> None:
    """Print a row for each model, then what is wrong with those that cannot be used, and what the requests cost."""
    rows = [
        [
            result.state,
            result.model,
            _yes_or_no(result.reachable),
            result.key,
            result.form,
            result.temperature,
            result.seed,
            result.logprobs,
            None if result.latency_s is None else _format_latency(result.latency_s),
            result.price,
        ]
        for result in results
    ]
    print_table(COLUMNS, [[None if cell is None else redact(str(cell)) for cell in row] for row in rows])
    problems = [
        [result.model, redact(result.problem), redact(result.how_to_fix or "")] for result in results if result.problem
    ]
    if problems:
        print_table(["model", "problem", "how to fix"], problems)
    print_message(_describe_cost(results))


def pings_to_json(plan: PingPlan, results: list[PingResult]) -> dict[str, Any]:
    """The results for programs."""
    models = [
        {name: redact(value) if isinstance(value, str) else value for name, value in asdict(result).items()}
        for result in results
    ]
    return {
        "max_requests": plan.max_requests,
        "likely_cost_usd": estimate_likely_cost(plan),
        "max_cost_usd": plan.max_cost_usd,
        "models": models,
    }


def _format_latency(seconds: float) -> str:
    """A duration in seconds, or in milliseconds if it is short."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def _yes_or_no(state: bool | None) -> str | None:
    """A state in words; None if it is not known."""
    return None if state is None else "yes" if state else "no"


def _describe_cost(results: list[PingResult]) -> str:
    """Number of requests sent, and their cost."""
    asked = [result for result in results if result.requests]
    known_usd = sum(result.cost_usd or 0.0 for result in asked)
    unknown = [result.model for result in asked if result.cost_usd is None]
    without = f", without {', '.join(unknown)}, whose price is unknown" if unknown else ""
    n_requests = sum(result.requests for result in asked)
    return f"{pluralize(n_requests, 'request')}, ${known_usd:.4f}{without}. Nothing was stored."
