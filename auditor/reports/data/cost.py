"""Cost of an audit: forecast, recorded cost, and savings by smaller designs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Self

from auditor.config import AuditConfig, ModelSection
from auditor.domain import Outcome, total_cost
from auditor.models.litellm_client import token_price
from auditor.reports.data.report_model import FlatRow, ReportModel, publish
from auditor.reports.document import Column
from auditor.storage import audits
from auditor.storage.audits import Audit
from auditor.storage.batches import UnreadBatch
from auditor.storage.costs import CallCounts, CallSums, UnreturnedCallCount

if TYPE_CHECKING:
    from auditor.reports.data.report_source import ReportSource


class CostRow(FlatRow):
    """Calls, tokens and cost of one model for one purpose."""

    name: Annotated[str | None, Column("Model", "name")]
    """Null in the total."""
    purpose: Annotated[str | None, Column("Purpose")]
    sums: Annotated[
        CallSums,
        publish(
            *("calls", "attempts", "answers", "prompt_tokens", "completion_tokens", "unpriced"),
            known_cached_tokens="cached_tokens",
            answers_without_usage="untold_tokens",
            prompt_tokens_with_cache_count="told_tokens",
            known_reasoning_tokens="reasoning_tokens",
            estimated_attempts="estimated_requests",
        ),
        Column("Calls", part="calls"),
        Column("Requests", part="attempts"),
        Column("Answers", part="answers"),
        Column("Prompt tokens", part="prompt_tokens"),
        Column("From cache", "share", "from_cache"),
        Column("Completion tokens", part="completion_tokens"),
        Column("Of these, reasoning", part="known_reasoning_tokens", is_optional=True),
    ]
    usd: Annotated[
        float | None,
        Column("Cost", style="usd", emphasis=True),
        Column("Without price", "number", "unpriced", path="sums.unpriced"),
    ]
    """Cost of all requests, retries included; null when none has a known price."""
    lower_bound: bool
    """Whether some cost is unknown, or token counts contradict each other, so that `usd` is a lower bound."""
    excess_cached_tokens: bool = False
    """Whether answers report more cached tokens than prompt tokens: the prompt tokens then leave some out."""
    estimated_usd: float = 0.0
    """Part of `usd` that is estimated, where token counts are unusable: characters / 4, and `max_tokens`."""
    reasoning_usd: Annotated[float | None, Column("Of the cost, reasoning", style="usd", is_optional=True)] = None
    """Part of `usd` that hidden reasoning costs, by the price of completion tokens; null where a price is unknown."""


class CostReport(ReportModel):
    """Cost of all requests of the audit, including reused answers that were asked for earlier.

    A call that two models share is counted for each.
    """

    total: CostRow
    rows: list[CostRow]
    lost: int
    """Calls without an answer, in flight when a run was interrupted, or now, and those in a batch whose results were
    never read, and will not be: they may have been charged."""
    lost_usd: float | None
    """Upper bound of their cost, from the dearest answer of each model and purpose, and what was reserved for those in
    a batch; null where unknown."""


def build_cost_report(source: ReportSource) -> CostReport:
    """Compute the cost by model and purpose, and in total; models in the order of the audit, then judges."""
    order = {name: i for i, name in enumerate([*source.models, *source.judge_names])}
    groups: dict[tuple[str, str], list[CallCounts]] = {}  # by (model or judge, purpose)
    for counts in source.call_counts:
        groups.setdefault((counts.name, counts.purpose), []).append(counts)
    keys = sorted(groups, key=lambda key: (order.get(key[0], len(order)), key))
    sections = source.config.models_by_name if source.config else {}
    rows = [_build_cost_row(*key, groups[key], sections.get(key[0])) for key in keys]
    total = _build_cost_row(None, None, source.call_counts)
    return CostReport(
        total=total.model_copy(
            update={
                "reasoning_usd": total_cost(
                    [row.reasoning_usd for row in rows if row.sums.known_reasoning_tokens is not None]
                )
            }
        ),
        rows=rows,
        lost=sum(unreturned.calls for unreturned in source.failed_attempt_counts)
        + sum(_count_lost_calls(batch, source.audit) for batch in source.unread_batches),
        lost_usd=total_cost(
            [
                _bound_unanswered_cost(source.failed_attempt_counts, groups),
                *(_bound_batch_cost(batch, source) for batch in source.unread_batches),
            ]
        ),
    )


def _count_lost_calls(batch: UnreadBatch, audit: Audit) -> int:
    """Number of a batch's calls whose results will not be read: an audit that has come to its end needs none of them.

    Its configuration changed while they waited.
    """
    return batch.n_calls if audit.stage in audits.FINAL_STAGES else batch.n_calls - batch.n_waiting


def _bound_batch_cost(batch: UnreadBatch, source: ReportSource) -> float | None:
    """Bound the cost of a batch's calls whose results will not be read, in US dollars; None if it is unknown."""
    n_lost = _count_lost_calls(batch, source.audit)
    has_price = batch.usd_per_call or any(
        counts.name == batch.model_name and counts.cost_usd is not None for counts in source.call_counts
    )
    return n_lost * batch.usd_per_call if has_price or not n_lost else None


def _bound_unanswered_cost(
    unanswered: Sequence[UnreturnedCallCount], call_groups: Mapping[tuple[str, str], Sequence[CallCounts]]
) -> float | None:
    """Bound the cost of calls without an answer, by the dearest call of the same model and purpose.

    Returns:
        US dollars; None where a model and purpose with such calls has no known price.
    """
    max_cost_by_group = {
        key: max((counts.cost_usd for counts in group if counts.cost_usd is not None), default=None)
        for key, group in call_groups.items()
    }
    bounds = [
        (unreturned.calls, max_cost_by_group.get((unreturned.name, unreturned.purpose))) for unreturned in unanswered
    ]
    known = [n_calls * max_cost for n_calls, max_cost in bounds if max_cost is not None]
    return math.fsum(known) if len(known) == len(bounds) else None


def _reasoning_cost(call_counts: Sequence[CallCounts], model: ModelSection | None) -> float | None:
    """Cost of the hidden reasoning of one model's calls in US dollars; None where a price is unknown.

    It is a share of the recorded cost, so that the lower price of a batch counts. Of the model's price, only the ratios
    between prompt, cached and completion tokens matter.
    """
    reasoning_counts = [counts for counts in call_counts if counts.sums.reasoning_tokens]
    if not reasoning_counts:
        return 0.0
    price = None if model is None else token_price(model)
    if price is None or any(counts.cost_usd is None for counts in reasoning_counts):
        return None
    costs = []
    for counts in reasoning_counts:
        sums = counts.sums
        cached_tokens = min(sums.cached_tokens, sums.prompt_tokens)
        list_cost = price.request_cost(sums.prompt_tokens, sums.completion_tokens, cached_tokens)
        share = sums.reasoning_tokens * price.completion_usd / list_cost if list_cost else 0.0
        costs.append(min(share, 1.0) * (counts.cost_usd or 0.0) * sums.calls)
    return math.fsum(costs)


def _build_cost_row(
    name: str | None, purpose: str | None, call_counts: Sequence[CallCounts], model: ModelSection | None = None
) -> CostRow:
    """Sum calls, tokens and cost over groups of like calls.

    `cost_usd` and `estimated_usd` of a group are US dollars per call. `name` and `purpose` are None in the total, whose
    cost of reasoning is the sum of the other rows'.
    """
    priced = [counts.cost_usd * counts.sums.calls for counts in call_counts if counts.cost_usd is not None]
    sums = CallSums.total(counts.sums for counts in call_counts)
    has_excess = any(counts.sums.cached_tokens > counts.sums.prompt_tokens_with_cache_count for counts in call_counts)
    return CostRow(
        name=name,
        purpose=purpose,
        sums=sums,
        usd=math.fsum(priced) if priced else None,
        lower_bound=sums.unpriced > 0 or has_excess,
        excess_cached_tokens=has_excess,
        estimated_usd=math.fsum(counts.estimated_usd * counts.sums.calls for counts in call_counts),
        reasoning_usd=None if sums.known_reasoning_tokens is None else _reasoning_cost(call_counts, model),
    )


TOKEN_ESTIMATE_CAVEAT = (
    "Numbers of tokens are estimates. Tokens in come from the length of the real prompts, at 4.6, 4 and 3 bytes of "
    "UTF-8 per token (low, expected and high). Tokens out come from the requested number of words, or from recorded "
    "answers of the same model if there are enough. Their high end is the token limit of the request. Hidden reasoning "
    "that a provider charges for may come close to it. Not counted are failed requests that are sent again, and second "
    "requests for answers to questions that cannot be read."
)


class ForecastRange(ReportModel):
    """An estimate with a low and a high end; `high` is an upper limit if the prompts are as planned and no request is
    sent again."""

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


class RecordedUsage(FlatRow):
    """Recorded usage of one model in one stage."""

    sums: Annotated[CallSums, publish("answers", "prompt_tokens", "completion_tokens", "unpriced")]
    usd: float | None


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
    remaining_usd: ForecastRange | None = None
    """Cost of such estimated calls, over the models whose price is known; null if `remaining` is no such estimate."""
    caveat: str = TOKEN_ESTIMATE_CAVEAT
    actual_usd: float | None = None
    """Recorded cost, as far as prices are known."""
    detectable: DetectableDifferences | None = None
    """What the audit can be expected to find; null where no scores are compared with a survey, or after the run."""


def sum_ranges(ranges: Sequence[ForecastRange]) -> ForecastRange:
    """Add ranges end by end; all zeros for an empty sequence."""
    return sum(ranges, ForecastRange.from_bounds(0))


class SavingsRow(ReportModel):
    """Calls of one stage, and those of the full design."""

    stage: str
    """`direct` or `review`."""
    made: int
    full: int
    """Every sample of every cell; every judge on every trace. For reviews it is an estimate: traces that were not asked
    for are assumed to have a score as often as those that were."""
    means: list[str]
    """Settings that saved calls, as the configuration names them."""


def build_savings_rows(source: ReportSource) -> list[SavingsRow]:
    """Build a row for each stage whose settings have saved calls.

    Empty also for an audit that has not ended: calls that are still to come are not saved.
    """
    config = source.config
    if config is None or not config.probes.direct or source.audit.stage not in audits.FINAL_STAGES:
        return []
    direct_settings = list(_list_direct_settings(config))
    review_settings = [*direct_settings, *_list_review_settings(config)]
    rows = [_build_direct_row(source, config, direct_settings)] if direct_settings else []
    if review_settings and config.judge_models:
        rows.append(_build_review_row(source, config, review_settings))
    return [row for row in rows if row.made < row.full]


def _list_direct_settings(config: AuditConfig) -> Iterator[str]:
    """Yield the settings that save direct calls, each as `name = value`."""
    if config.direct.tolerance is not None:
        yield f"probes.direct.tolerance = {config.direct.tolerance:g}"
    if config.direct.target_width is not None:
        yield f"probes.direct.target_width = {config.direct.target_width:g}"


def _list_review_settings(config: AuditConfig) -> Iterator[str]:
    """Yield the settings that save verdicts, as the configuration names them."""
    if config.probes.review.traces != "all":
        yield f"probes.review.traces = {config.probes.review.traces}"
    if config.panel.judges_per_trace is not None:
        yield f"panel.judges_per_trace = {config.panel.judges_per_trace}"
    if config.panel.adaptive:
        yield "panel.adaptive"


def _build_direct_row(source: ReportSource, config: AuditConfig, saving_settings: list[str]) -> SavingsRow:
    """Compare the recorded samples with all planned samples of every cell and model."""
    full = sum(config.samples_by_cell(source.survey).values()) * len(config.models)
    return SavingsRow(
        stage="direct", made=sum(count.n for count in source.trace_counts), full=full, means=saving_settings
    )


def _build_review_row(source: ReportSource, config: AuditConfig, saving_settings: list[str]) -> SavingsRow:
    """Compare the verdicts asked for with those of every judge on every usable trace of a full design.

    The usable traces of the full design are estimated from each model's recorded share of usable traces.
    """
    n_traces, n_usable = Counter[str](), Counter[str]()
    for count in source.trace_counts:
        n_traces[count.model] += count.n
        n_usable[count.model] += count.n if count.outcome == Outcome.OK else 0
    samples_per_model = sum(config.samples_by_cell(source.survey).values())
    full = sum(
        samples_per_model * n_usable[model.name] / n_traces[model.name] * len(config.judges_of(model.name))
        for model in config.models
        if n_traces[model.name]
    )
    return SavingsRow(
        stage="review",
        made=sum(judge_count.n for judge_count in source.judge_counts),
        full=round(full),
        means=saving_settings,
    )
