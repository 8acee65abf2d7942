"""Document of a cost forecast; after the run, compared with the recorded cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.reports.data.cost import (
    CostForecast,
    DetectableDifferences,
    ForecastRange,
    ForecastRow,
    RecordedUsage,
)
from auditor.reports.document import Callout, Column, Document, List, LowerBound, Paragraph, Reason, Row, Section, Table
from auditor.reports.number_format import format_count, format_number, format_usd, pluralize

UNKNOWN = "unknown"
LARGE_R_DIFFERENCE = 0.5
"""Detectable difference in r above which a design can hardly separate models by r."""
SERIES_COLUMNS = (Column("Model", "name"), Column("Stage"))
CALL_COLUMNS = (
    *(Column(title, "number") for title in ("Calls, low", "Calls, expected", "Calls, high")),
    Column("Tokens in", "number"), Column("Tokens out", "number"), Column("Length of answers from"),
)  # fmt: skip
COST_COLUMNS = tuple(
    Column(title, "number", style="usd")
    for title in ("USD, low", "USD, expected", "USD, high", "USD per million tokens in", "USD per million tokens out")
)
OUTCOME_COLUMNS = (
    *(Column(title, "number") for title in ("Answers expected", "Answers", "Tokens out expected", "Tokens out")),
    Column("USD expected", "number", style="usd"), Column("USD", "number", style="usd"),
    Column("USD / expected", "number"), Column("Within low and high"),
)  # fmt: skip


def build_forecast_document(forecast: CostForecast) -> Document:
    """Build the document of a forecast, and of the recorded cost if there is one."""
    is_planned = forecast.actual_usd is None
    is_new = forecast.remaining is None
    cautions = list(_list_cautions(forecast))
    reuse = (
        f"{pluralize(forecast.recorded or 0, 'direct call')} will not be repeated: the answers are already recorded."
    )
    opening: Sequence[Paragraph | Callout] = [
        Paragraph(describe_forecast(forecast), role="lead"),
        *([Paragraph(describe_detectable_differences(forecast.detectable))] if forecast.detectable else []),
        *([Callout("Reasons for caution", [List(cautions)])] if cautions else []),
        *([Paragraph(reuse, role="note")] if forecast.recorded and (is_new or forecast.is_remaining_sampled) else []),
    ]
    stages = Section("stages", "By model and stage", [Paragraph(forecast.caveat), *_build_tables(forecast)])
    return Document(
        "Estimate" if is_planned else "Estimate and outcome",
        forecast.audit,
        f"{pluralize(forecast.cells, 'cell')}, {'planned' if is_planned else 'as run'}",
        [stages, *_build_outcome_sections(forecast)],
        opening,
    )


def describe_forecast(forecast: CostForecast) -> str:
    """Describe the expected calls and cost of the audit, and how many calls of a begun one are still to be sent."""
    call_phrase = f"About {_format_calls(forecast.calls)} calls"
    remaining_phrase = _describe_remaining(forecast)
    if forecast.usd is None:
        return f"{call_phrase}; the cost is unknown.{remaining_phrase}"
    scope_phrase = ", for the models with a known price" if forecast.unknown_prices else ""
    if forecast.usd.high == 0:
        return f"{call_phrase}, at no cost{scope_phrase}.{remaining_phrase}"
    low, expected, high = (format_usd(usd) for usd in _list_ends(forecast.usd))
    return f"{call_phrase} and {expected} ({low} to {high}){scope_phrase}.{remaining_phrase}"


def _describe_remaining(forecast: CostForecast) -> str:
    """A sentence on the calls that are still to be sent, after a space; empty if none of its calls was answered."""
    if forecast.remaining is None or forecast.remaining == forecast.calls:
        return ""
    if forecast.is_remaining_sampled:
        left = "None seems" if forecast.remaining.expected < 1 else f"About {_format_calls(forecast.remaining)} seem"
        return f" {left} to be left to send: by a sample of the calls, other audits have answers to the rest."
    if forecast.remaining.high == 0:
        return " None is left to send: all answers are recorded."
    return f" About {_format_calls(forecast.remaining)} are left to send; the other answers are recorded."


def describe_detectable_differences(detectable: DetectableDifferences) -> str:
    """State the smallest difference between two models that the audit is expected to find."""
    if detectable.mae is None:
        return f"The smallest detectable difference between models is not available: {detectable.reason}."
    r, caution = detectable.pearson_r, ""
    if r is not None and r > LARGE_R_DIFFERENCE:
        caution = " This design hardly distinguishes models by r: compare them by mean absolute error."
    r_text = "" if r is None else f" and about {format_number(r)} in r"
    size = (
        f"{pluralize(detectable.countries, 'country', 'countries')}, {pluralize(detectable.topics, 'topic')} and "
        f"{pluralize(detectable.samples, 'sample')} a cell"
    )
    return (
        f"With {size}, the smallest detectable difference between two models is about {format_number(detectable.mae)} "
        f"in mean absolute error{r_text} (80% power, two-sided 5%). Smaller differences are likely to be "
        f"missed.{caution} How much models vary is taken from {detectable.basis}."
    )


def _format_calls(calls: ForecastRange) -> str:
    """Format the expected number of calls, with low and high ends in brackets where they differ."""
    low, expected, high = (format_count(round(n)) for n in _list_ends(calls))
    return expected if calls.low == calls.high else f"{expected} ({low} to {high})"


def _list_ends(forecast_range: ForecastRange) -> tuple[float, float, float]:
    """The low, expected and high value of a range."""
    return forecast_range.low, forecast_range.expected, forecast_range.high


def _list_cautions(forecast: CostForecast) -> Iterator[str]:
    """Yield sentences on unknown prices, probes that are not estimated, and the budget."""
    if forecast.unknown_prices:
        names = ", ".join(forecast.unknown_prices)
        yield f"Unknown price: {names}. How to fix: set price = {{ input = …, output = … }} in the config."
    yield from forecast.not_estimated
    budget = forecast.budget_usd
    cost = forecast.usd if forecast.remaining_usd is None else forecast.remaining_usd  # other audits paid for the rest
    if budget is not None and cost is not None and cost.high > budget:
        verb_phrase = "will" if cost.low > budget else "is expected to" if cost.expected > budget else "may"
        yield f"The budget of {format_usd(budget)} {verb_phrase} end the run before it is complete."


def _build_tables(forecast: CostForecast) -> Iterator[Table]:
    """Build the tables of calls and tokens, and of cost and prices, with one row for each model and stage."""
    yield Table(
        "calls",
        "Expected calls and tokens",
        "Expected calls and tokens of each model and stage. Tokens in: of prompts. Tokens out: of answers.",
        (*SERIES_COLUMNS, *CALL_COLUMNS),
        [
            (
                row.name, row.stage, *map(round, _list_ends(row.calls)), round(row.prompt_tokens.expected),
                round(row.completion_tokens.expected), row.basis,
            )
            for row in forecast.rows
        ],
    )  # fmt: skip
    yield Table(
        "costs",
        "Expected cost",
        "Expected cost of each model and stage, in US dollars.",
        (*SERIES_COLUMNS, *COST_COLUMNS, Column("Price from")),
        [
            (
                row.name, row.stage, *([Reason(UNKNOWN, 3)] if row.usd is None else _list_ends(row.usd)),
                *([Reason(UNKNOWN, 2)] if row.price is None else row.price), row.price_source,
            )
            for row in forecast.rows
        ],
    )  # fmt: skip


def _build_outcome_sections(forecast: CostForecast) -> Iterator[Section]:
    """Yield the comparison of forecast and recorded usage; nothing before any call is recorded."""
    if not any(row.actual for row in forecast.rows):
        return
    table = Table(
        "usage",
        "Estimate and outcome",
        "Estimate and recorded usage of each model and stage, in US dollars. “≥” marks a lower bound: some answers "
        "have no known price. USD / expected: recorded cost divided by expected cost.",
        (*SERIES_COLUMNS, *OUTCOME_COLUMNS),
        [_build_outcome_row(row, row.actual) for row in forecast.rows if row.actual is not None],
    )
    has_unpriced = any(row.actual.sums.unpriced for row in forecast.rows if row.actual is not None)
    recorded = Paragraph(f"Recorded so far: {format_usd(forecast.actual_usd, has_unpriced)}.")
    yield Section("outcome", "Recorded cost", [recorded, table])


def _build_outcome_row(row: ForecastRow, actual: RecordedUsage) -> Row:
    """Compare forecast and recorded usage; the comparison of costs needs all prices."""
    expected, cost, unknown = row.usd, actual.usd, Reason(UNKNOWN)
    ratio: float | None = None
    within_range: str | None = None
    if expected is not None and cost is not None and not actual.sums.unpriced:
        ratio = cost / expected.expected if expected.expected else None
        within_range = "yes" if expected.low <= cost <= expected.high else "no"
    return Row([
        row.name, row.stage, round(row.calls.expected), actual.sums.answers, round(row.completion_tokens.expected),
        actual.sums.completion_tokens, unknown if expected is None else expected.expected,
        unknown if cost is None else LowerBound(cost) if actual.sums.unpriced else cost, ratio, within_range,
    ])  # fmt: skip
