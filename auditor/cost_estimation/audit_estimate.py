"""Estimate the calls, tokens and cost of an audit from its actual prompts, without sending any."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata

from auditor.agents.call_builders import build_direct_call, build_review_call
from auditor.agents.localization import samples_per_cell
from auditor.agents.logic.item_sets import build_item_sets
from auditor.agents.logic.questions import build_comparison_call, plan_pairs, questions_about
from auditor.agents.run_context import OfflineClient, RunContext
from auditor.agents.sentence_pairs import build_sentence_pairs
from auditor.config import EMBEDDED_PREFIX, AuditConfig, BatchSection, ModelSection, load_stored_config
from auditor.cost_estimation.call_counts import (
    USABLE_TRACE_SHARES,
    count_direct_calls,
    count_judge_calls,
    count_reviewed_traces,
    share_of_cells_asked,
)
from auditor.cost_estimation.detectable_difference import plan_detectable_differences
from auditor.cost_estimation.planned_calls import MAX_EXAMPLES, PlannedCalls
from auditor.cost_estimation.preflight_calls import discovery_check, plan_preflight_calls
from auditor.cost_estimation.recorded_usage import count_recorded_calls, load_recorded_usage
from auditor.cost_estimation.semantic_calls import plan_semantic_calls
from auditor.domain import Call, Cell, Outcome, Purpose, Survey, Trace
from auditor.errors import UsageError
from auditor.models.batches import find_batch_provider
from auditor.models.endpoint import DEFAULT_CAPABILITY, token_price
from auditor.models.litellm_client import TokenPrice
from auditor.models.logprobs import supported_measures
from auditor.models.reasoning import output_limit, thinking_room
from auditor.models.structured import SCHEMA_BY_NAME, response_format
from auditor.reports.data.cost.forecast import CostForecast, ForecastRange, ForecastRow, sum_ranges
from auditor.storage import audits, costs
from auditor.storage.costs import MeanAnswerLength
from auditor.storage.database import Database

MIN_RECORDED_ANSWERS = 20
"""Number of recorded answers of a model and purpose from which their mean length is used."""
BYTES_PER_TOKEN = (4.6, 4.0, 3.0)
"""UTF-8 bytes per token of prompts: at most, expected, at least (the order of a `ForecastRange` of tokens)."""
WORDS_PER_TOKEN = 0.75
"""Words per token of answers, a rule of thumb for English."""
ESTIMATED_PROBES = ("direct", "review", "logprob", "logic", "semantic")
GUESS_ANSWER_WORDS = 10
"""Words of a judge's guess, which names three lines by number."""
ANSWER_OVERHEAD_TOKENS = 25
"""Tokens of an answer besides its prose: JSON keys, a score, a verdict."""


def estimate_audit(
    config: AuditConfig, survey: Survey, cells: Sequence[Cell], db: Database | None = None
) -> CostForecast:
    """Estimate calls, tokens and cost of an audit before it is run: one row per model and stage, and totals.

    Every figure is a range: low, expected and high.

    Args:
        config: the audit's configuration.
        survey, cells: what it would ask about, see `auditor.run.load_planned_survey` and `planned_cells`.
        db: database in which it would be run. It gives the mean lengths of each model's answers, and the number of
            calls that are recorded already. Without it, lengths are rules of thumb, and the number is None.
    """
    length_by_model_and_purpose = {
        (length.model, length.purpose): length for length in (costs.load_mean_answer_lengths(db) if db else ())
    }
    planned_calls = list(_plan_calls(config, survey, cells, discovery_check(db, config.name)))
    rows = [
        _forecast_row(calls, length_by_model_and_purpose.get((calls.model.model, calls.purpose.value)), config.batch)
        for calls in planned_calls
    ]
    known_costs = [row.usd for row in rows if row.usd is not None]
    return CostForecast(
        audit=config.name,
        cells=len(cells),
        rows=rows,
        calls=sum_ranges([row.calls for row in rows]),
        usd=sum_ranges(known_costs) if known_costs else None,
        unknown_prices=list(dict.fromkeys(row.name for row in rows if row.usd is None)),
        not_estimated=list(_unestimated_probes(config)),
        budget_usd=config.limits.budget_usd,
        recorded=count_recorded_calls(db, config, survey, cells) if db else None,
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
        raise UsageError(f"audit '{audit_name}' was imported: nothing was asked.", "Name one that was run.")
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


# --- planned calls ----------------------------------------------------------------------------------------------


def _plan_calls(
    config: AuditConfig, survey: Survey, cells: Sequence[Cell], needs_discovery: Callable[[Call], bool]
) -> Iterator[PlannedCalls]:
    """Yield the planned calls of all configured probes, one entry per model and stage.

    The probe `logic` over traces is left out, since its items depend on the answers.
    """
    if config.probes.direct and cells:
        yield from _plan_direct_calls(config, survey, cells)
        yield from plan_preflight_calls(config, survey, cells[0], needs_discovery)
        yield from _plan_review_calls(config, survey, cells)
    if config.probes.logprob and cells:
        yield from _plan_logprob_calls(config, cells)
    if config.probes.logic and config.probes.logic.items != "traces":
        yield from _plan_logic_calls(config, survey, cells)
    if config.probes.semantic:
        yield from plan_semantic_calls(config, config.probes.semantic)


def _unestimated_probes(config: AuditConfig) -> Iterator[str]:
    """Yield a notice for each configured probe that is not estimated, since it would otherwise look free."""
    for name in type(config.probes).model_fields:
        if getattr(config.probes, name) is not None and name not in ESTIMATED_PROBES:
            yield f"The probe '{name}' is not in this estimate."
    if config.probes.logic and config.probes.logic.items == "traces":
        yield "The probe 'logic' over traces is not in this estimate: it depends on the answers."


def _sample_evenly(cells: Sequence[Cell]) -> Sequence[Cell]:
    """At most `MAX_EXAMPLES` cells at equal distances."""
    return cells[:: max(1, len(cells) // MAX_EXAMPLES)][:MAX_EXAMPLES]


def _plan_direct_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the direct questions to each model; the examples have one sample per language of a cell.

    Samples are numbered language by language, `direct.samples` of each, so every `direct.samples`-th is another one.
    """
    calls = count_direct_calls(config, cells)
    for model in config.models:
        examples = [
            build_direct_call(config, survey, model, cell, sample)
            for cell in _sample_evenly(cells)
            for sample in range(0, samples_per_cell(config, cell.country), config.direct.samples)
        ]
        yield PlannedCalls(model, Purpose.DIRECT, calls, examples, config.direct.max_words)


def _plan_review_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the calls of the judging models: each judge's verdicts and guesses, and the rewriter's restatements.

    A guess is of a trace's country, topic and author, to test blinding; a restatement is the trace in neutral words.
    Each author's traces are shared out equally among its judges, `panel_size` of them per trace. An adaptive panel
    asks between a majority and all of its judges.
    """
    share, traces = share_of_cells_asked(config, len(cells)), count_reviewed_traces(config, cells)
    calls_by_judge: dict[str, ForecastRange] = {}
    for author in config.models:
        judges = config.judges_of(author.name)
        for judge in judges:
            judge_share = config.panel_size(author.name) / len(judges)
            judge_calls = share * count_judge_calls(config, traces, author.name, judge_share)
            calls_by_judge[judge.name] = calls_by_judge.get(judge.name, ForecastRange.from_bounds(0)) + judge_calls
    text = " ".join(["word"] * config.direct.max_words)  # stands for a trace, which is not written yet
    for judge in config.judge_models:
        if judge.name in calls_by_judge:
            example_traces = [Trace("", cell, 0, Outcome.OK, 0.0, text) for cell in _sample_evenly(cells)[:5]]
            # The prompt of a verdict also stands for that of a guess, and below for that of a restatement.
            examples = [build_review_call(config, survey, judge, trace, text) for trace in example_traces]
            judge_calls = calls_by_judge[judge.name]
            if config.probes.review.rewrite == "neutral" and judge.name != config.probes.review.rewriter:
                judge_calls += judge_calls  # each trace once more, restated
            yield PlannedCalls(judge, Purpose.REVIEW, judge_calls, examples, 0.7 * config.probes.review.max_words)
            if config.probes.review.guess:
                judges_by_author = {
                    author.name: [panel_judge.name for panel_judge in config.judges_of(author.name)]
                    for author in config.models
                }
                # The judge's number of authors, each counted by the share of its traces that the judge gets.
                n_assigned_authors = sum(
                    config.panel_size(author) / len(judge_names)
                    for author, judge_names in judges_by_author.items()
                    if judge.name in judge_names
                )
                guesses = share * ForecastRange.from_bounds(n_assigned_authors * len(cells))
                yield PlannedCalls(judge, Purpose.GUESS, guesses, examples, GUESS_ANSWER_WORDS)
    if config.probes.review.rewrite == "neutral":
        rewriter = config.model(config.probes.review.rewriter or "")
        n_authors = sum(author.name != rewriter.name for author in config.models)
        example_traces = [Trace("", cell, 0, Outcome.OK, 0.0, text) for cell in _sample_evenly(cells)[:5]]
        examples = [build_review_call(config, survey, rewriter, trace, text) for trace in example_traces]
        rewrites = share * ForecastRange.from_bounds(*(usable * n_authors * traces for usable in USABLE_TRACE_SHARES))
        yield PlannedCalls(rewriter, Purpose.REWRITE, rewrites, examples, config.direct.max_words)


def _plan_logprob_calls(config: AuditConfig, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the calls for log-probabilities of each model.

    Which measure a model supports is only known after a call. The expected number of calls is that of the first
    measure it may support; low and high are the fewest and the most calls over all these measures.
    """
    probe = config.probes.logprob
    assert probe is not None
    for model in config.models:
        calls_by_measure = [
            [call for sentence_pair in build_sentence_pairs(model, cells[0], measure) for call in sentence_pair.calls]
            for measure in supported_measures(model, probe.method)
        ]
        counts = [len({call.key for call in calls}) * len(cells) for calls in calls_by_measure] or [0]
        yield PlannedCalls(
            model,
            Purpose.LOGPROB,
            ForecastRange.from_bounds(min(counts), counts[0], max(counts)),
            calls_by_measure[0] if calls_by_measure else [],
            0,
        )


def _plan_logic_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the pairwise comparisons of items by each comparing model; all models are asked the same questions."""
    from auditor.agents.logic.graph import comparing_models  # loads langgraph (2 s)

    probe = config.probes.logic
    assert probe is not None
    item_sets = build_item_sets(RunContext(config, survey, 0, cells, None, OfflineClient(), None), probe)  # type: ignore[arg-type]
    pairs = plan_pairs(item_sets, probe, config.seed)
    questions = [question for pair in pairs for question in questions_about(pair, probe)]
    sampled_questions = questions[:: max(1, len(questions) // MAX_EXAMPLES)][:MAX_EXAMPLES]
    for judge in comparing_models(config):
        examples = [
            build_comparison_call(config, probe, judge, item_sets[question.set_index], question)
            for question in sampled_questions
        ]
        words = probe.max_words if probe.cot else 0
        yield PlannedCalls(judge, Purpose.LOGIC, ForecastRange.from_bounds(len(questions)), examples, words)


# --- tokens and cost --------------------------------------------------------------------------------------------


def _forecast_row(
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
    # price[0] is in USD per prompt token, price[1] in USD per answer token.
    cost = (
        None
        if price is None
        else tokens_in * ForecastRange.from_bounds(price[0]) + tokens_out * ForecastRange.from_bounds(price[1])
    )
    # High stays at the full price: repairs are not batched, nor are calls to a server without batches.
    if batch and price and planned.purpose is not Purpose.PREFLIGHT and find_batch_provider(planned.model):
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
        price=None if price is None else (round(price[0] * 1e6, 9), round(price[1] * 1e6, 9)),  # per million tokens
        price_source=source,
        basis=basis,
    )


def _count_prompt_bytes(call: Call) -> int:
    """UTF-8 bytes of a call's messages and of its answer's JSON schema, which providers count as input too."""
    n_message_bytes = sum(len(message.content.encode()) for message in call.messages)
    schema_format = response_format(SCHEMA_BY_NAME[call.schema], call.max_words or 0) if call.schema else None
    return n_message_bytes + (len(json.dumps(schema_format)) if schema_format else 0)


def _estimate_answer_tokens(
    planned: PlannedCalls, recorded_length: MeanAnswerLength | None
) -> tuple[ForecastRange, str]:
    """Tokens of one answer as low, expected and high, and a phrase that names what they are based on.

    Based on the recorded answers if there are enough, else on the limit of tokens (log-probabilities) or the expected
    number of words, with half of the room for thinking that the config leaves. High is the limit that is sent, if
    larger.
    """
    max_tokens = max((output_limit(call, DEFAULT_CAPABILITY) or 0 for call in planned.examples), default=0)
    thinking_tokens = max((thinking_room(call, DEFAULT_CAPABILITY) for call in planned.examples), default=0)
    if recorded_length is not None and recorded_length.n >= MIN_RECORDED_ANSWERS:
        return ForecastRange.from_bounds(
            0.7 * recorded_length.mean_tokens, recorded_length.mean_tokens, max(max_tokens, recorded_length.mean_tokens)
        ), f"{recorded_length.n} recorded answers"
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
    if model.model.startswith(EMBEDDED_PREFIX):
        return price, "local model"
    if model.price is not None:
        return price, f"config{f', {model.price.as_of}' if model.price.as_of else ', undated'}"
    base_model_phrase = f" for {model.base_model}" if model.base_model else ""
    return price, f"list of litellm {metadata.version('litellm')}{base_model_phrase}"
