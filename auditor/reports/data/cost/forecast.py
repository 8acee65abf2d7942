"""Forecast of an audit's calls and cost; after the run, with the recorded usage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from auditor.reports.data.report_model import ReportModel

TOKEN_ESTIMATE_CAVEAT = (
    "Numbers of tokens are estimates. Tokens in come from the length of the real prompts, at 4.6, 4 and 3 bytes of "
    "UTF-8 per token (low, expected and high). Tokens out come from the requested number of words, or from recorded "
    "answers of the same model if there are enough. Their high end is the token limit of the request. Hidden reasoning "
    "that a provider charges for may come close to it."
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


class DetectableDifferences(ReportModel):
    """The smallest true difference between two models that an audit is expected to find: a planning figure.

    With 80% power, by the two-sided test at 5% over countries and topics.
    """

    mae: float | None
    """Difference of the mean absolute error, from 0 to 2."""
    pearson_r: float | None
    countries: int
    topics: int
    samples: int
    """Of each cell."""
    basis: str
    """Where the components of variance come from: an earlier audit, or the prediction of each cell by the mean of its
    topic, and by that of its country."""
    reason: str | None = None
    """Why there is no figure."""


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
    remaining: ForecastRange | None = None
    """Calls still to be sent; null if that is not known."""
    is_remaining_sampled: bool = False
    """Whether `remaining` is an estimate: the audit was not begun, or with other settings, but other audits have
    answers to some of its calls."""
    caveat: str = TOKEN_ESTIMATE_CAVEAT
    actual_usd: float | None = None
    """Recorded cost, as far as prices are known."""
    detectable: DetectableDifferences | None = None
    """What the audit can be expected to find; null where no scores are compared with a survey, or after the run."""


def sum_ranges(ranges: Sequence[ForecastRange]) -> ForecastRange:
    """Add ranges end by end; all zeros for an empty sequence."""
    return sum(ranges, ForecastRange.from_bounds(0))
