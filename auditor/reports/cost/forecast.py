"""What an audit will ask and cost, as data and as a page; beside what it did cost, once it ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from auditor.reports.measurement_schema import Part
from auditor.reports.pages.number_format import count, plural, usd
from auditor.reports.pages.report_page import Chapter, Grid, Page

CAVEAT = (
    "Tokens are estimated: those of prompts from the length of the real prompts (4.6, 4 and 3 bytes of UTF-8 a token "
    "for low, expected and high), those of answers from the words that are asked for, or from recorded answers of the "
    "same model where there are enough; their high end is the limit of tokens that is sent. Hidden reasoning that a "
    "provider charges for may come near it."
)


class Range(Part):
    """A guess with its ends; `high` is not to be passed where the prompts are as planned."""

    low: float
    expected: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(low=self.low + other.low, expected=self.expected + other.expected, high=self.high + other.high)

    def __mul__(self, other: Range) -> Range:
        return Range(low=self.low * other.low, expected=self.expected * other.expected, high=self.high * other.high)

    @classmethod
    def of(cls, low: float, expected: float | None = None, high: float | None = None) -> Self:
        """One number for all three, or three in order."""
        middle = low if expected is None else expected
        return cls(low=low, expected=middle, high=middle if high is None else high)


class ActualPart(Part):
    """What is recorded of one model and stage."""

    answers: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None
    unpriced: int


class ForecastRow(Part):
    """One model at one stage."""

    name: str
    model: str
    stage: str
    calls: Range
    prompt_tokens: Range
    completion_tokens: Range
    usd: Range | None
    """Null where the price is unknown."""
    price: tuple[float, float] | None
    """US dollars per million tokens, in and out."""
    price_source: str
    """Where the price is from, with its date or version."""
    basis: str
    """What the length of answers was taken from."""
    actual: ActualPart | None = None


class Forecast(Part):
    """What an audit will ask, by model and stage."""

    audit: str
    cells: int
    rows: list[ForecastRow]
    calls: Range
    usd: Range | None
    """Over the models whose price is known; null where none is."""
    unknown_prices: list[str]
    not_estimated: list[str]
    """Probes of the config that are not in this estimate, and why."""
    budget_usd: float | None
    recorded: int | None
    """Calls of the first stage that the storage knows already; null where there is no storage, or too many."""
    caveat: str = CAVEAT
    actual_usd: float | None = None
    """What the audit did cost, as far as prices are known."""


def total_of(rows: Sequence[Range]) -> Range:
    """The sum, 0 of nothing."""
    return sum(rows, Range.of(0))


def page_of(forecast: Forecast) -> Page:
    """The estimate as a page."""
    return Page(
        kicker="Estimate" if forecast.actual_usd is None else "Estimate and outcome",
        title=forecast.audit,
        subtitle=f"{plural(forecast.cells, 'cell')}, {'planned' if forecast.actual_usd is None else 'as run'}",
        answer=headline(forecast),
        warnings=list(_warnings(forecast)),
        chapters=[_by_stage(forecast), *_outcome(forecast)],
    )


def headline(forecast: Forecast) -> str:
    """Calls and cost in one sentence."""
    calls = forecast.calls
    between = _whole(calls)
    if forecast.usd is None:
        return f"About {between} calls; what they cost is unknown."
    partly = " for the models whose price is known" if forecast.unknown_prices else ""
    cost = forecast.usd
    if cost.high == 0:
        return f"About {between} calls, at no cost{partly}."
    return f"About {between} calls and {usd(cost.expected)} ({usd(cost.low)} to {usd(cost.high)}){partly}."


def _whole(r: Range) -> str:
    return count(round(r.expected)) + (f" ({count(round(r.low))} to {count(round(r.high))})" if r.low != r.high else "")


def _warnings(forecast: Forecast) -> Iterator[str]:
    if forecast.unknown_prices:
        names = ", ".join(forecast.unknown_prices)
        yield f"The price of {names} is not known: give price = {{ input = …, output = … }} in the config."
    yield from forecast.not_estimated
    budget, cost = forecast.budget_usd, forecast.usd
    if budget is not None and cost is not None and cost.high > budget:
        sure = "will" if cost.low > budget else "is expected to" if cost.expected > budget else "may"
        yield f"The budget of {usd(budget)} {sure} end the run before it is whole."
    if forecast.recorded:
        yield f"{plural(forecast.recorded, 'direct call')} will not be asked again: their answers are recorded."


def _by_stage(forecast: Forecast) -> Chapter:
    columns = ["Model", "Stage", "Calls", "Tokens in", "Tokens out", "USD low", "USD expected", "USD high"]
    columns += ["USD per million in / out", "Price from", "Answers from"]
    rows = [
        [
            row.name, row.stage, _whole(row.calls), count(round(row.prompt_tokens.expected)),
            count(round(row.completion_tokens.expected)), *_money(row.usd), _price(row), row.price_source, row.basis,
        ]
        for row in forecast.rows
    ]  # fmt: skip
    grid = Grid("Expected calls, tokens and cost, by model and stage.", columns, rows)
    return Chapter("By model and stage", [forecast.caveat], grids=[grid])


def _money(cost: Range | None) -> list[str]:
    return ["unknown"] * 3 if cost is None else [usd(cost.low), usd(cost.expected), usd(cost.high)]


def _price(row: ForecastRow) -> str:
    return "unknown" if row.price is None else f"{row.price[0]:g} / {row.price[1]:g}"


def _outcome(forecast: Forecast) -> Iterator[Chapter]:
    if not any(row.actual for row in forecast.rows):
        return
    columns = ["Model", "Stage", "Answers expected", "Answers", "Tokens out expected", "Tokens out"]
    columns += ["USD expected", "USD", "Real / expected", "Within low and high"]
    rows = [_compared(row, row.actual) for row in forecast.rows if row.actual is not None]
    told = "unknown" if forecast.actual_usd is None else usd(forecast.actual_usd)
    yield Chapter(
        "What it did cost", [f"Recorded so far: {told}."], grids=[Grid("Estimate and outcome.", columns, rows)]
    )


def _compared(row: ForecastRow, actual: ActualPart) -> list[str]:
    ratio, inside = "–", "–"
    if row.usd is not None and actual.usd is not None and not actual.unpriced:
        ratio = f"{actual.usd / row.usd.expected:.2f}" if row.usd.expected else "–"
        inside = "yes" if row.usd.low <= actual.usd <= row.usd.high else "no"
    return [
        row.name, row.stage, count(round(row.calls.expected)), count(actual.answers),
        count(round(row.completion_tokens.expected)), count(actual.completion_tokens),
        _money(row.usd)[1], usd(actual.usd, actual.unpriced > 0), ratio, inside,
    ]  # fmt: skip
