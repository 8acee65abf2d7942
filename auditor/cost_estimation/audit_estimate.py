"""What an audit would ask and cost, from its real prompts, before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib import metadata

from auditor.agents.call_builders import build_direct_call, build_review_call
from auditor.agents.localization import samples_per_cell
from auditor.agents.run_context import OfflineClient, RunContext
from auditor.agents.sentence_pairs import build_sentence_pairs
from auditor.config import EMBEDDED_PREFIX, AuditConfig, BatchSection, ModelSection
from auditor.cost_estimation.call_counts import (
    USABLE_TRACE_SHARES,
    count_direct_calls,
    count_judge_calls,
    count_reviewed_traces,
    share_of_cells_asked,
)
from auditor.cost_estimation.planned_calls import MAX_EXAMPLES, PlannedCalls
from auditor.cost_estimation.recorded_usage import actual_costs, count_recorded_calls
from auditor.cost_estimation.semantic_calls import plan_semantic_calls
from auditor.domain import Call, Cell, Outcome, Purpose, Survey, Trace
from auditor.errors import UsageError
from auditor.models.batches import find_batch_provider
from auditor.models.endpoint import token_price
from auditor.models.litellm_client import TokenPrice
from auditor.models.logprobs import supported_measures
from auditor.models.structured import SCHEMA_BY_NAME, response_format
from auditor.reports.cost.forecast import CostForecast, ForecastRange, ForecastRow, sum_ranges
from auditor.storage import audits, costs
from auditor.storage.costs import MeanAnswerLength
from auditor.storage.database import Database

MIN_RECORDED_ANSWERS = 20
"""Recorded answers of a model and purpose from which their length is taken."""
BYTES_PER_TOKEN = (4.6, 4.0, 3.0)
"""Of prompts: at most, expected, at least."""
WORDS_PER_TOKEN = 0.75
ESTIMATED_PROBES = ("direct", "review", "logprob", "logic", "semantic")
GUESS_ANSWER_WORDS = 10
"""Of an answer that names three lines by number."""
ANSWER_OVERHEAD_TOKENS = 25
"""Tokens of an answer beside its words: keys, a score, a verdict."""


def estimate_audit(
    config: AuditConfig, survey: Survey, cells: Sequence[Cell], db: Database | None = None
) -> CostForecast:
    """What an audit would ask, by model and stage.

    Args:
        config: the audit.
        survey, cells: as it would be run, see `planned_survey` and `planned_cells`.
        db: where it would be run; tells how long each model's answers were, and what is recorded already.
    """
    means = {(m.model, m.purpose): m for m in (costs.mean_answer_lengths(db) if db else ())}
    planned = list(_plan_calls(config, survey, cells))
    rows = [_forecast_row(plan, means.get((plan.model.model, plan.purpose.value)), config.batch) for plan in planned]
    priced = [row.usd for row in rows if row.usd is not None]
    return CostForecast(
        audit=config.name,
        cells=len(cells),
        rows=rows,
        calls=sum_ranges([row.calls for row in rows]),
        usd=sum_ranges(priced) if priced else None,
        unknown_prices=list(dict.fromkeys(row.name for row in rows if row.usd is None)),
        not_estimated=list(_unestimated_probes(config)),
        budget_usd=config.limits.budget_usd,
        recorded=count_recorded_calls(db, config, survey, cells) if db else None,
    )


def estimate_past_audit(db: Database, audit_name: str) -> CostForecast:
    """The estimate of an audit that was run, beside what is recorded of it.

    Raises:
        StorageError: there is no such audit.
        UsageError: it was imported, and so asked nothing.
    """
    audit = audits.get_audit(db, audit_name)
    if audit.config is None:
        raise UsageError(f"audit '{audit_name}' was imported: nothing was asked.", "Name one that was run.")
    config = AuditConfig.model_validate_json(audit.config)
    survey = audits.load_audit_survey(db, audit)
    cells = list(survey.asked_cells)
    forecast = estimate_audit(config, survey, cells)
    spent = actual_costs(db, audit.id)
    rows = [row.model_copy(update={"actual": spent.get((row.name, row.stage))}) for row in forecast.rows]
    known = [part.usd for part in spent.values() if part.usd is not None]
    return forecast.model_copy(update={"rows": rows, "actual_usd": sum(known) if known else None})


# --- what is planned --------------------------------------------------------------------------------------------


def _plan_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    if config.probes.direct and cells:
        yield from _plan_direct_calls(config, survey, cells)
        yield from _plan_review_calls(config, survey, cells)
    if config.probes.logprob and cells:
        yield from _plan_logprob_calls(config, cells)
    if config.probes.logic and config.probes.logic.items != "traces":
        yield from _plan_logic_calls(config, survey, cells)
    if config.probes.semantic:
        yield from plan_semantic_calls(config, config.probes.semantic)


def _unestimated_probes(config: AuditConfig) -> Iterator[str]:
    """Every probe is estimated or named: what is silently left out would look free."""
    for name in type(config.probes).model_fields:
        if getattr(config.probes, name) is not None and name not in ESTIMATED_PROBES:
            yield f"The probe '{name}' is not in this estimate."
    if config.probes.logic and config.probes.logic.items == "traces":
        yield "The probe 'logic' over traces is not in this estimate: it depends on the answers."


def _sample_evenly(cells: Sequence[Cell]) -> Sequence[Cell]:
    return cells[:: max(1, len(cells) // MAX_EXAMPLES)][:MAX_EXAMPLES]


def _plan_direct_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    calls = count_direct_calls(config, cells)
    for model in config.models:
        examples = [
            build_direct_call(config, survey, model, cell, sample)
            for cell in _sample_evenly(cells)
            for sample in range(0, samples_per_cell(config, cell.country), config.direct.samples)
        ]
        yield PlannedCalls(model, Purpose.DIRECT, calls, examples, config.direct.max_words)


def _plan_review_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Every judge's share of the traces; an adaptive panel asks between a majority and all of its seats."""
    share, traces = share_of_cells_asked(config, len(cells)), count_reviewed_traces(config, cells)
    seats: dict[str, ForecastRange] = {}
    for author in config.models:
        judges = config.judges_of(author.name)
        for judge in judges:
            given = config.panel_size(author.name) / len(judges)
            asked = share * count_judge_calls(config, traces, author.name, given)
            seats[judge.name] = seats.get(judge.name, ForecastRange.from_bounds(0)) + asked
    text = " ".join(["word"] * config.direct.max_words)
    for judge in config.judge_models:
        if judge.name in seats:
            traces_ = [Trace("", cell, 0, Outcome.OK, 0.0, text) for cell in _sample_evenly(cells)[:5]]
            examples = [build_review_call(config, survey, judge, trace, text) for trace in traces_]
            asked = seats[judge.name]
            if config.probes.review.rewrite == "neutral" and judge.name != config.probes.review.rewriter:
                asked += asked  # each trace once more, restated
            yield PlannedCalls(judge, Purpose.REVIEW, asked, examples, 0.7 * config.probes.review.max_words)
            if config.probes.review.guess:
                panels = {m.name: [j.name for j in config.judges_of(m.name)] for m in config.models}
                given = sum(config.panel_size(m) / len(p) for m, p in panels.items() if judge.name in p)
                guesses = share * ForecastRange.from_bounds(given * len(cells))
                yield PlannedCalls(judge, Purpose.GUESS, guesses, examples, GUESS_ANSWER_WORDS)
    if config.probes.review.rewrite == "neutral":
        rewriter = config.model(config.probes.review.rewriter or "")
        others = sum(m.name != rewriter.name for m in config.models)
        traces_ = [Trace("", cell, 0, Outcome.OK, 0.0, text) for cell in _sample_evenly(cells)[:5]]
        examples = [build_review_call(config, survey, rewriter, trace, text) for trace in traces_]
        expected = share * ForecastRange.from_bounds(*(usable * others * traces for usable in USABLE_TRACE_SHARES))
        yield PlannedCalls(rewriter, Purpose.REWRITE, expected, examples, config.direct.max_words)


def _plan_logprob_calls(config: AuditConfig, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """The first way that a model may offer is expected; the ends are those of all ways, which only asking tells."""
    probe = config.probes.logprob
    assert probe is not None
    for model in config.models:
        ways = [
            [c for one in build_sentence_pairs(model, cells[0], m) for c in one.calls]
            for m in supported_measures(model, probe.method)
        ]
        counts = [len({call.key for call in way}) * len(cells) for way in ways] or [0]
        yield PlannedCalls(
            model,
            Purpose.LOGPROB,
            ForecastRange.from_bounds(min(counts), counts[0], max(counts)),
            ways[0] if ways else [],
            0,
        )


def _plan_logic_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    from auditor.agents.logic.graph import comparing_models
    from auditor.agents.logic.item_sets import build_item_sets
    from auditor.agents.logic.questions import build_comparison_call, plan_pairs, questions_about

    probe = config.probes.logic
    assert probe is not None
    sets = build_item_sets(RunContext(config, survey, 0, cells, None, OfflineClient(), None), probe)  # type: ignore[arg-type]
    pairs = plan_pairs(sets, probe, config.seed)
    asked = [question for pair in pairs for question in questions_about(pair, probe)]
    some = asked[:: max(1, len(asked) // MAX_EXAMPLES)][:MAX_EXAMPLES]
    for judge in comparing_models(config):
        examples = [build_comparison_call(config, probe, judge, sets[q.set_index], q) for q in some]
        words = probe.max_words if probe.cot else 0
        yield PlannedCalls(judge, Purpose.LOGIC, ForecastRange.from_bounds(len(asked)), examples, words)


# --- tokens and money -------------------------------------------------------------------------------------------


def _forecast_row(
    planned: PlannedCalls, recorded_length: MeanAnswerLength | None, batch: BatchSection | None
) -> ForecastRow:
    sizes = [_count_prompt_bytes(call) for call in planned.examples] or [0]
    size = sum(sizes) / len(sizes)
    prompt = ForecastRange.from_bounds(*(size / per for per in BYTES_PER_TOKEN))
    answer, basis = _estimate_answer_tokens(planned, recorded_length)
    price, source = _find_price(planned.model)
    calls = planned.calls
    tokens_in, tokens_out = (calls * tokens for tokens in (prompt, answer))
    cost = (
        None
        if price is None
        else tokens_in * ForecastRange.from_bounds(price[0]) + tokens_out * ForecastRange.from_bounds(price[1])
    )
    if (
        batch and price and find_batch_provider(planned.model)
    ):  # repairs, and what a server without batches is asked, cost the whole
        cost = cost and cost * ForecastRange.from_bounds(batch.price, batch.price, 1)
        source += f"; in batches {batch.price:g} of it"
    return ForecastRow(
        name=planned.model.name,
        model=planned.model.model,
        stage=planned.purpose.value,
        calls=calls,
        prompt_tokens=tokens_in,
        completion_tokens=tokens_out,
        usd=cost,
        price=None if price is None else (round(price[0] * 1e6, 9), round(price[1] * 1e6, 9)),
        price_source=source,
        basis=basis,
    )


def _count_prompt_bytes(call: Call) -> int:
    """Of the messages, and of the schema of the answer, which providers count in."""
    said = sum(len(m.content.encode()) for m in call.messages)
    asked = response_format(SCHEMA_BY_NAME[call.schema], call.max_words or 0) if call.schema else None
    return said + (len(json.dumps(asked)) if asked else 0)


def _estimate_answer_tokens(
    planned: PlannedCalls, recorded_length: MeanAnswerLength | None
) -> tuple[ForecastRange, str]:
    most = max((int(call.params.get("max_tokens", 0)) for call in planned.examples), default=0)
    if recorded_length is not None and recorded_length.n >= MIN_RECORDED_ANSWERS:
        return ForecastRange.from_bounds(
            0.7 * recorded_length.mean_tokens, recorded_length.mean_tokens, max(most, recorded_length.mean_tokens)
        ), f"{recorded_length.n} recorded answers"
    if planned.purpose is Purpose.LOGPROB:
        return ForecastRange.from_bounds(most), "limit of tokens"
    expected = planned.expected_words / WORDS_PER_TOKEN + ANSWER_OVERHEAD_TOKENS
    bounded = min(expected, most) if most else expected
    return ForecastRange.from_bounds(
        bounded / 3, bounded, max(most, bounded)
    ), f"{planned.expected_words:.0f} words (a rule of thumb)"


def _find_price(model: ModelSection) -> tuple[TokenPrice | None, str]:
    price = token_price(model)
    if price is None:
        return None, "unknown"
    if model.model.startswith(EMBEDDED_PREFIX):
        return price, "runs here"
    if model.price is not None:
        return price, f"config{f', {model.price.as_of}' if model.price.as_of else ', undated'}"
    return price, f"list of litellm {metadata.version('litellm')}"
