"""Forecast of an audit's calls and cost, as data and as a page; after the run, compared with the recorded cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from auditor.reports.data.measurement_schema import ReportModel
from auditor.reports.number_format import format_count, format_usd, pluralize
from auditor.reports.pages.report_page import PageSection, PageTable, ReportPage

TOKEN_ESTIMATE_CAVEAT = (
    "Tokens are estimated: those of prompts from the length of the real prompts (4.6, 4 and 3 bytes of UTF-8 a token "
    "for low, expected and high), those of answers from the words that are asked for, or from recorded answers of the "
    "same model where there are enough; their high end is the limit of tokens that is sent. Hidden reasoning that a "
    "provider charges for may come near it."
)


class ForecastRange(ReportModel):
    """An estimate with a low and a high end; `high` is an upper limit if the prompts are as planned."""

    low: float
    expected: float
    high: float

    def __add__(self, other: ForecastRange) -> ForecastRange:
        """Add two ranges end by end."""
        return ForecastRange(
            low=self.low + other.low, expected=self.expected + other.expected, high=self.high + other.high
        )

    def __mul__(self, other: ForecastRange) -> ForecastRange:
        """Multiply two ranges end by end, such as calls by tokens per call."""
        return ForecastRange(
            low=self.low * other.low, expected=self.expected * other.expected, high=self.high * other.high
        )

    @classmethod
    def from_bounds(cls, low: float, expected: float | None = None, high: float | None = None) -> Self:
        """Build a range from one number for all three, or from three in order."""
        middle = low if expected is None else expected
        return cls(low=low, expected=middle, high=middle if high is None else high)


class RecordedUsage(ReportModel):
    """Recorded usage of one model in one stage."""

    answers: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None
    unpriced: int


class ForecastRow(ReportModel):
    """Forecast of one model in one stage."""

    name: str
    model: str
    stage: str
    calls: ForecastRange
    prompt_tokens: ForecastRange
    completion_tokens: ForecastRange
    usd: ForecastRange | None
    """Null where the price is unknown."""
    price: tuple[float, float] | None
    """US dollars per million prompt tokens and per million completion tokens."""
    price_source: str
    """Source of the price, with its date or version."""
    basis: str
    """Source of the expected length of answers."""
    actual: RecordedUsage | None = None


class CostForecast(ReportModel):
    """Calls, tokens and cost that an audit is expected to take, by model and stage."""

    audit: str
    cells: int
    rows: list[ForecastRow]
    calls: ForecastRange
    usd: ForecastRange | None
    """Cost over the models whose price is known; null where none is."""
    unknown_prices: list[str]
    not_estimated: list[str]
    """Probes of the configuration that are not in this estimate, with the reason."""
    budget_usd: float | None
    recorded: int | None
    """Calls of the first stage whose answers are already stored; null without storage, or if too many to check."""
    caveat: str = TOKEN_ESTIMATE_CAVEAT
    actual_usd: float | None = None
    """Recorded cost, as far as prices are known."""


def sum_ranges(ranges: Sequence[ForecastRange]) -> ForecastRange:
    """Add ranges end by end; all zeros for an empty sequence."""
    return sum(ranges, ForecastRange.from_bounds(0))


def build_forecast_page(forecast: CostForecast) -> ReportPage:
    """Build a page that shows the forecast, and the recorded cost where there is one."""
    return ReportPage(
        kicker="Estimate" if forecast.actual_usd is None else "Estimate and outcome",
        title=forecast.audit,
        subtitle=f"{pluralize(forecast.cells, 'cell')}, {'planned' if forecast.actual_usd is None else 'as run'}",
        headline=describe_forecast(forecast),
        warnings=list(_list_warnings(forecast)),
        sections=[_build_stage_section(forecast), *_build_outcome_sections(forecast)],
    )


def describe_forecast(forecast: CostForecast) -> str:
    """Describe the expected calls and cost in one sentence."""
    calls = forecast.calls
    call_range = _format_count_range(calls)
    if forecast.usd is None:
        return f"About {call_range} calls; what they cost is unknown."
    scope_phrase = " for the models whose price is known" if forecast.unknown_prices else ""
    cost = forecast.usd
    if cost.high == 0:
        return f"About {call_range} calls, at no cost{scope_phrase}."
    return (
        f"About {call_range} calls and {format_usd(cost.expected)} ({format_usd(cost.low)} to "
        f"{format_usd(cost.high)}){scope_phrase}."
    )


def _format_count_range(count_range: ForecastRange) -> str:
    """Format the expected count, rounded, with low and high ends in brackets where they differ."""
    return format_count(round(count_range.expected)) + (
        f" ({format_count(round(count_range.low))} to {format_count(round(count_range.high))})"
        if count_range.low != count_range.high
        else ""
    )


def _list_warnings(forecast: CostForecast) -> Iterator[str]:
    """Yield sentences on unknown prices, parts not estimated, the budget, and calls answered already."""
    if forecast.unknown_prices:
        names = ", ".join(forecast.unknown_prices)
        yield f"The price of {names} is not known: give price = {{ input = …, output = … }} in the config."
    yield from forecast.not_estimated
    budget, cost = forecast.budget_usd, forecast.usd
    if budget is not None and cost is not None and cost.high > budget:
        verb_phrase = "will" if cost.low > budget else "is expected to" if cost.expected > budget else "may"
        yield f"The budget of {format_usd(budget)} {verb_phrase} end the run before it is whole."
    if forecast.recorded:
        yield f"{pluralize(forecast.recorded, 'direct call')} will not be asked again: their answers are recorded."


def _build_stage_section(forecast: CostForecast) -> PageSection:
    """Build the table of expected calls, tokens and cost, with one row per model and stage."""
    columns = ["Model", "Stage", "Calls", "Tokens in", "Tokens out", "USD low", "USD expected", "USD high"]
    columns += ["USD per million in / out", "Price from", "Answers from"]
    rows = [
        [
            row.name, row.stage, _format_count_range(row.calls), format_count(round(row.prompt_tokens.expected)),
            format_count(round(row.completion_tokens.expected)), *_format_usd_range(row.usd),
            _format_price(row), row.price_source, row.basis,
        ]
        for row in forecast.rows
    ]  # fmt: skip
    table = PageTable("Expected calls, tokens and cost, by model and stage.", columns, rows)
    return PageSection("By model and stage", [forecast.caveat], tables=[table])


def _format_usd_range(cost: ForecastRange | None) -> list[str]:
    """Format the low, expected and high cost, in this order."""
    return ["unknown"] * 3 if cost is None else [format_usd(cost.low), format_usd(cost.expected), format_usd(cost.high)]


def _format_price(row: ForecastRow) -> str:
    # US dollars per million prompt tokens, and per million completion tokens.
    return "unknown" if row.price is None else f"{row.price[0]:g} / {row.price[1]:g}"


def _build_outcome_sections(forecast: CostForecast) -> Iterator[PageSection]:
    """Yield the table of forecast against recorded usage; nothing before any call is recorded."""
    if not any(row.actual for row in forecast.rows):
        return
    columns = ["Model", "Stage", "Answers expected", "Answers", "Tokens out expected", "Tokens out"]
    columns += ["USD expected", "USD", "Real / expected", "Within low and high"]
    rows = [_format_outcome_row(row, row.actual) for row in forecast.rows if row.actual is not None]
    recorded_cost = "unknown" if forecast.actual_usd is None else format_usd(forecast.actual_usd)
    yield PageSection(
        "What it did cost",
        [f"Recorded so far: {recorded_cost}."],
        tables=[PageTable("Estimate and outcome.", columns, rows)],
    )


def _format_outcome_row(row: ForecastRow, actual: RecordedUsage) -> list[str]:
    """Format one row of forecast against recorded usage; the comparison of costs needs all prices."""
    ratio, within_range = "–", "–"
    if row.usd is not None and actual.usd is not None and not actual.unpriced:
        ratio = f"{actual.usd / row.usd.expected:.2f}" if row.usd.expected else "–"
        within_range = "yes" if row.usd.low <= actual.usd <= row.usd.high else "no"
    return [
        row.name, row.stage, format_count(round(row.calls.expected)), format_count(actual.answers),
        format_count(round(row.completion_tokens.expected)), format_count(actual.completion_tokens),
        # The second item is the expected cost.
        _format_usd_range(row.usd)[1], format_usd(actual.usd, actual.unpriced > 0), ratio, within_range,
    ]  # fmt: skip
