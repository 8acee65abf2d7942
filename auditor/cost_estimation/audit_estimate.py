"""Estimate the calls, tokens and cost of an audit from its actual prompts and from recorded answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import metadata

from auditor.agents.answer_parsing import parse_trace
from auditor.agents.call_builders import blind_trace, build_direct_call, build_review_call
from auditor.agents.localization import samples_per_cell
from auditor.config import EMBEDDED, REPLAY, SIMULATED, AuditConfig, BatchSection, ModelSection, load_stored_config
from auditor.cost_estimation.detectable_difference import plan_detectable_differences
from auditor.cost_estimation.planned_calls import (
    PlannedCalls,
    describe_unestimated_probes,
    discovery_check,
    merge_planned_calls,
    plan_calls,
    sample_evenly,
)
from auditor.domain import Answer, Call, Cell, Outcome, Purpose, Survey, Trace
from auditor.errors import UsageError, pluralize
from auditor.models.batches import find_batch_provider
from auditor.models.endpoint import DEFAULT_CAPABILITY
from auditor.models.litellm_client import TokenPrice, token_price
from auditor.models.reasoning import thinking_room
from auditor.models.request_params import max_output_tokens
from auditor.models.structured import find_schema, limited_schema
from auditor.reports.data.cost import CostForecast, ForecastRange, ForecastRow, RecordedUsage, sum_ranges
from auditor.run.fingerprints import keep_earlier_defaults, was_run_with
from auditor.storage import audits, costs, ledger
from auditor.storage.costs import MeanAnswerLength
from auditor.storage.database import Database

MIN_RECORDED_ANSWERS = 20
"""Number of recorded answers of a model and purpose from which their mean length is used."""
BYTES_PER_TOKEN = (4.6, 4.0, 3.0)
"""UTF-8 bytes per token of prompts: at most, expected, at least (the order of a `ForecastRange` of tokens)."""
WORDS_PER_TOKEN = 0.75
"""Words per token of answers, a rule of thumb for English."""
ANSWER_OVERHEAD_TOKENS = 25
"""Tokens of an answer besides its prose: JSON keys, a score, a verdict."""


def build_forecast_row(
    planned: PlannedCalls, recorded_length: MeanAnswerLength | None, batch: BatchSection | None
) -> ForecastRow:
    """Estimate the tokens and the cost of planned calls.

    They follow from the mean size of the example prompts, the expected length of an answer and the price of a token.

    Args:
        recorded_length: mean length of the model's recorded answers for this purpose; None where there is none.
        batch: how calls are sent in batches, at a share `batch.price` of the full price; None without batches.
    """
    sizes = [_count_prompt_bytes(call) for call in planned.examples] or [0]
    mean_size = sum(sizes) / len(sizes)
    prompt = ForecastRange.from_bounds(*(mean_size / bytes_per_token for bytes_per_token in BYTES_PER_TOKEN))
    answer, basis = _estimate_answer_tokens(planned, recorded_length)
    price, source = _find_price(planned.model)
    calls = planned.calls
    tokens_in, tokens_out = (calls * tokens for tokens in (prompt, answer))
    cost = None
    if price is not None:
        # High, the whole prompt is written to the provider's cache.
        prompt_usd = ForecastRange.from_bounds(
            price.prompt_usd, price.prompt_usd, price.prompt_usd + price.highest_write_fee(planned.model.params)
        )
        cost = tokens_in * prompt_usd + tokens_out * ForecastRange.from_bounds(price.completion_usd)
    # High stays at the full price: repairs are not batched, nor are calls to a server without batches.
    if batch and price and planned.purpose is not Purpose.PREFLIGHT and find_batch_provider(planned.model, batch):
        cost = cost and cost * ForecastRange.from_bounds(batch.price, batch.price, 1)
        source += f"; in batches, {batch.price:g} times this"
    return ForecastRow(
        name=planned.model.name,
        model=planned.model.model,
        stage=planned.purpose.value,
        calls=calls,
        prompt_tokens=tokens_in,
        completion_tokens=tokens_out,
        usd=cost,
        price=None if price is None else (round(price[0] * 1e6, 9), round(price[1] * 1e6, 9)),  # per million tokens
        price_source=source,
        basis=basis,
    )


def _count_prompt_bytes(call: Call) -> int:
    """UTF-8 bytes of a call's messages and of its answer's JSON schema, which providers count as input too."""
    n_message_bytes = sum(len(message.content.encode()) for message in call.messages)
    if call.schema is None:
        return n_message_bytes
    schema = limited_schema(find_schema(call.schema), call.max_words or 0)
    # As `structured.response_format`, which loads instructor (1 s).
    schema_format = {"type": "json_schema", "json_schema": {"name": call.schema, "schema": schema, "strict": True}}
    return n_message_bytes + len(json.dumps(schema_format))


def _estimate_answer_tokens(
    planned: PlannedCalls, recorded_length: MeanAnswerLength | None
) -> tuple[ForecastRange, str]:
    """Tokens of one answer as low, expected and high, and a phrase that names what they are based on.

    Based on the recorded answers if there are enough, else on the limit of tokens (log-probabilities) or the expected
    number of words, with half of the room for thinking that the config leaves. High is the limit that is sent, if
    larger.
    """
    max_tokens = max((max_output_tokens(call, DEFAULT_CAPABILITY) or 0 for call in planned.examples), default=0)
    thinking_tokens = max((thinking_room(call, DEFAULT_CAPABILITY) for call in planned.examples), default=0)
    if recorded_length is not None and recorded_length.n >= MIN_RECORDED_ANSWERS:
        return ForecastRange.from_bounds(
            0.7 * recorded_length.mean_tokens, recorded_length.mean_tokens, max(max_tokens, recorded_length.mean_tokens)
        ), pluralize(recorded_length.n, "recorded answer")
    if planned.purpose is Purpose.LOGPROB:
        return ForecastRange.from_bounds(max_tokens), "token limit"
    expected = planned.expected_words / WORDS_PER_TOKEN + ANSWER_OVERHEAD_TOKENS
    capped = min(expected, max_tokens - thinking_tokens) if max_tokens else expected
    words = f"{planned.expected_words:.0f} words"
    basis = f"{words} and {thinking_tokens / 2:.0f} tokens of thinking" if thinking_tokens else words
    return ForecastRange.from_bounds(
        capped / 3, capped + thinking_tokens / 2, max(max_tokens, capped)
    ), f"{basis} (assumed)"


def _find_price(model: ModelSection) -> tuple[TokenPrice | None, str]:
    """Price of a model's tokens, None if unknown, and a phrase that names where it comes from."""
    price = token_price(model)
    if price is None:
        return None, "unknown"
    if model.provider in (EMBEDDED, SIMULATED):
        return price, "local model"
    if model.provider is REPLAY:
        return price, "recorded answers"
    if model.price is not None:
        return price, f"config{f', {model.price.as_of}' if model.price.as_of else ', undated'}"
    base_model_phrase = f" for {model.base_model}" if model.base_model else ""
    return price, f"list of litellm {metadata.version('litellm')}{base_model_phrase}"


MAX_SAMPLED_CELLS = 5
"""Cells whose recorded answers are read, to find the reviews of them."""


def estimate_recorded_shares(
    db: Database, config: AuditConfig, survey: Survey, cells: Sequence[Cell], planned: Sequence[PlannedCalls]
) -> list[float] | None:
    """Estimate the share of calls with a recorded answer, by a sample of the calls of each model and stage.

    Returns:
        The shares in the order of `planned`; None if no call of the samples has an answer.
    """
    traces_by_cell = _load_recorded_traces(db, config, survey, cells)
    shares = [
        _share_of_reviews(db, config, survey, traces_by_cell, calls.model)
        if calls.purpose is Purpose.REVIEW
        else _share_answered(db, calls.examples)
        for calls in planned
    ]
    return shares if any(shares) else None


def _sum_remaining(ranges: Sequence[ForecastRange | None], recorded_shares: Sequence[float]) -> ForecastRange:
    """Sum numbers or costs of calls, without the shares that are recorded; unknown costs are left out."""
    return sum_ranges(
        [
            ForecastRange.from_bounds(1 - share) * amount
            for amount, share in zip(ranges, recorded_shares, strict=True)
            if amount is not None
        ]
    )


def _share_answered(db: Database, calls: Sequence[Call]) -> float:
    """The share of calls that have a recorded answer; 0 without calls."""
    keys = {call.key for call in calls}
    return len(ledger.find_answered_keys(db, keys)) / len(keys) if keys else 0.0


def _share_of_reviews(
    db: Database,
    config: AuditConfig,
    survey: Survey,
    traces_by_cell: Sequence[Sequence[Trace] | None],
    judge: ModelSection,
) -> float:
    """The share of reviews by a judge that have a recorded answer: of one trace in each cell, by changing authors.

    A review depends on the answer that it is of: without one, it is not recorded either.
    """
    calls: list[Call] = []
    n_unanswered = 0
    for i, traces in enumerate(traces_by_cell):
        if traces is None:
            n_unanswered += 1
        elif judged := [trace for trace in traces if judge in config.judges_of(trace.model)]:
            trace = judged[i % len(judged)]
            calls.append(build_review_call(config, survey, judge, trace, blind_trace(config, survey, trace)))
    return _share_answered(db, calls) * len(calls) / (len(calls) + n_unanswered) if calls else 0.0


def _load_recorded_traces(
    db: Database, config: AuditConfig, survey: Survey, cells: Sequence[Cell]
) -> list[list[Trace] | None]:
    """For each of a few cells, the models' first answers with a score; None where no answer is recorded."""
    if not config.probes.direct or not config.judge_models or survey.task is not None:
        return []
    calls = [
        [(model.name, build_direct_call(config, survey, model, cell, 0)) for model in config.models]
        for cell in sample_evenly(cells, MAX_SAMPLED_CELLS)
    ]
    answers = ledger.load_answers(db, (call.key for of_cell in calls for _, call in of_cell))
    return [_parse_traces(config, of_cell, answers) for of_cell in calls]


def _parse_traces(
    config: AuditConfig, calls: Sequence[tuple[str, Call]], answers: Mapping[str, Answer]
) -> list[Trace] | None:
    """The answers with a score to the calls of a cell, by the names of their models; None without any answer."""
    traces = [
        parse_trace(answers[call.key], name, call.cell, 0, config.direct.mode, call.language, call.request_text)
        for name, call in calls
        if call.key in answers and call.cell is not None
    ]
    return [trace for trace in traces if trace.outcome is Outcome.OK] if traces else None


MAX_CALLS_CHECKED = 50_000
"""Number of planned calls up to which the recorded ones are counted; more take too long."""


def count_recorded_calls(db: Database, config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> int | None:
    """Count the planned direct calls that have a recorded answer; None without direct calls, or with too many."""
    planned = sum(samples_per_cell(config, cell.country) for cell in cells) * len(config.models)
    if not config.probes.direct or planned > MAX_CALLS_CHECKED:
        return None
    calls = (
        build_direct_call(config, survey, model, cell, sample)
        for model in config.models
        for cell in cells
        for sample in range(samples_per_cell(config, cell.country))
    )
    return len(ledger.find_answered_keys(db, (call.key for call in calls)))


def count_remaining_calls(db: Database, config: AuditConfig, rows: Sequence[ForecastRow]) -> ForecastRange | None:
    """Count the calls of a config's audit that are still to be sent: the planned ones without those answered in it.

    Once the audit has reached its last stage, the expected and the high number of calls no longer count: what was not
    needed, such as repairs, will not be sent.

    Args:
        rows: forecast of the whole audit, by model and stage.

    Returns:
        None if the audit was not begun, or with other settings.
    """
    audit = audits.find_audit(db, config.name)
    if audit is None or not was_run_with(audit, config):
        return None
    usage_by_stage = load_recorded_usage(db, audit.id)
    remaining = []
    for row in rows:
        usage = usage_by_stage.get((row.name, row.stage))
        n_answers = usage.sums.answers if usage else 0
        low, *others = (max(0, end - n_answers) for end in (row.calls.low, row.calls.expected, row.calls.high))
        remaining.append(ForecastRange.from_bounds(low, *([] if audit.stage in audits.FINAL_STAGES else others)))
    return sum_ranges(remaining)


def load_recorded_usage(db: Database, audit_id: int) -> Mapping[tuple[str, str], RecordedUsage]:
    """Load an audit's recorded usage by (model name, purpose of the calls).

    Calls that cost different amounts are counted in separate rows, which are added up here. The cost leaves out calls
    whose price is unknown, which are counted as `unpriced`; it is None where no price is known.
    """
    usage_by_stage: dict[tuple[str, str], RecordedUsage] = {}
    for counts in costs.count_calls(db, audit_id):
        previous = usage_by_stage.get((counts.name, counts.purpose))
        # `cost_usd` is the cost of one call, the same for all calls of the row.
        cost = None if counts.cost_usd is None else counts.cost_usd * counts.sums.calls
        known_costs = [usd for usd in (previous.usd if previous else None, cost) if usd is not None]
        usage_by_stage[counts.name, counts.purpose] = RecordedUsage(
            sums=costs.CallSums.total([counts.sums, *([previous.sums] if previous else [])]),
            usd=sum(known_costs) if known_costs else None,
        )
    return usage_by_stage


def estimate_audit(
    config: AuditConfig,
    survey: Survey,
    cells: Sequence[Cell],
    db: Database | None = None,
    *,
    experiment_calls: Sequence[PlannedCalls] = (),
    is_asked: bool = True,
) -> CostForecast:
    """Estimate calls, tokens and cost of an audit before it is run: one row per model and stage, and totals.

    Every figure is a range: low, expected and high.

    Args:
        config: the audit's configuration.
        survey, cells: what it would ask about, see `auditor.run.load_planned_survey`.
        db: database in which it would be run. It gives the mean lengths of each model's answers, and the number of
            calls that are recorded already. Without it, lengths are rules of thumb, and the number is None.
        experiment_calls: of experiments on the audit, which are added.
        is_asked: whether the audit asks its own questions, or only experiments need it.
    """
    if db is not None:
        config = keep_earlier_defaults(audits.find_audit(db, config.name), config)
    length_by_model_and_purpose = {
        (length.model, length.purpose): length for length in (costs.load_mean_answer_lengths(db) if db else ())
    }
    own_calls = plan_calls(config, survey, cells, discovery_check(db, config.name)) if is_asked else ()
    planned_calls = [*own_calls, *experiment_calls]
    rows = [
        build_forecast_row(
            calls, length_by_model_and_purpose.get((calls.model.model, calls.purpose.value)), config.batch
        )
        for calls in (merge_planned_calls(planned_calls) if experiment_calls else planned_calls)
    ]
    known_costs = [row.usd for row in rows if row.usd is not None]
    counted = count_remaining_calls(db, config, rows) if db else None
    shares = estimate_recorded_shares(db, config, survey, cells, planned_calls) if db and counted is None else None
    return CostForecast(
        audit=config.name,
        cells=len(cells),
        rows=rows,
        calls=sum_ranges([row.calls for row in rows]),
        usd=sum_ranges(known_costs) if known_costs else None,
        unknown_prices=list(dict.fromkeys(row.name for row in rows if row.usd is None)),
        not_estimated=list(describe_unestimated_probes(config)),
        budget_usd=config.limits.budget_usd,
        recorded=count_recorded_calls(db, config, survey, cells) if db else None,
        remaining=counted or (shares and _sum_remaining([calls.calls for calls in planned_calls], shares)),
        is_remaining_sampled=shares is not None,
        remaining_usd=_sum_remaining([row.usd for row in rows], shares) if shares and not experiment_calls else None,
        detectable=plan_detectable_differences(config, survey, cells, db),
    )


def estimate_past_audit(db: Database, audit_name: str) -> CostForecast:
    """Estimate an audit that was run, as if before its run, and add its recorded usage and cost for comparison.

    Raises:
        StorageError: there is no such audit.
        UsageError: the audit was imported, so it asked nothing.
    """
    audit = audits.get_audit(db, audit_name)
    if audit.config is None:
        raise UsageError(f"audit '{audit_name}' was imported, so it sent no requests.", "Name one that was run.")
    config = load_stored_config(audit.config)
    survey = audits.load_audit_survey(db, audit)
    cells = list(survey.asked_cells)
    forecast = estimate_audit(config, survey, cells)
    usage_by_stage = load_recorded_usage(db, audit.id)
    rows = [row.model_copy(update={"actual": usage_by_stage.get((row.name, row.stage))}) for row in forecast.rows]
    known_costs = [usage.usd for usage in usage_by_stage.values() if usage.usd is not None]
    return forecast.model_copy(
        update={"rows": rows, "actual_usd": sum(known_costs) if known_costs else None, "detectable": None}
    )
