"""What an audit would ask and cost, from its real prompts, before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib import metadata

from auditor.agents.call_builders import direct_call, review_call
from auditor.agents.localization import samples_of
from auditor.agents.run_context import Context, Nobody
from auditor.agents.sentence_pairs import comparisons
from auditor.config import EMBEDDED, AuditConfig, BatchSection, ModelSection
from auditor.cost_estimation.call_counts import USABLE, direct_calls, reached, reviewed_traces, seat_calls
from auditor.cost_estimation.planned_calls import SAMPLED, Planned
from auditor.cost_estimation.recorded_usage import actual_costs, recorded_calls
from auditor.cost_estimation.semantic_calls import planned_semantic
from auditor.domain import Call, Cell, Outcome, Purpose, Survey, Trace
from auditor.errors import UsageError
from auditor.models.batches import dialect_of
from auditor.models.endpoint import price_of
from auditor.models.litellm_client import TokenPrice
from auditor.models.logprobs import measures
from auditor.models.structured import SCHEMAS, response_format
from auditor.reports.cost.forecast import Forecast, ForecastRow, Range, total_of
from auditor.storage import audits, costs
from auditor.storage.costs import AnswerMean
from auditor.storage.database import Database

ENOUGH = 20
"""Recorded answers of a model and purpose from which their length is taken."""
BYTES_PER_TOKEN = (4.6, 4.0, 3.0)
"""Of prompts: at most, expected, at least."""
WORDS_PER_TOKEN = 0.75
ESTIMATED = ("direct", "review", "logprob", "logic", "semantic")
GUESS_WORDS = 10
"""Of an answer that names three lines by number."""
FRAME = 25
"""Tokens of an answer beside its words: keys, a score, a verdict."""


def estimate(config: AuditConfig, survey: Survey, cells: Sequence[Cell], db: Database | None = None) -> Forecast:
    """What an audit would ask, by model and stage.

    Args:
        config: the audit.
        survey, cells: as it would be run, see `planned_survey` and `planned_cells`.
        db: where it would be run; tells how long each model's answers were, and what is recorded already.
    """
    means = {(m.model, m.purpose): m for m in (costs.answer_means(db) if db else ())}
    planned = list(_planned(config, survey, cells))
    rows = [_row(plan, means.get((plan.model.model, plan.purpose.value)), config.batch) for plan in planned]
    priced = [row.usd for row in rows if row.usd is not None]
    return Forecast(
        audit=config.name,
        cells=len(cells),
        rows=rows,
        calls=total_of([row.calls for row in rows]),
        usd=total_of(priced) if priced else None,
        unknown_prices=list(dict.fromkeys(row.name for row in rows if row.usd is None)),
        not_estimated=list(_left_out(config)),
        budget_usd=config.limits.budget_usd,
        recorded=recorded_calls(db, config, survey, cells) if db else None,
    )


def estimate_of_audit(db: Database, name: str) -> Forecast:
    """The estimate of an audit that was run, beside what is recorded of it.

    Raises:
        StorageError: there is no such audit.
        UsageError: it was imported, and so asked nothing.
    """
    audit = audits.get(db, name)
    if audit.config is None:
        raise UsageError(f"audit '{name}' was imported: nothing was asked.", "Name one that was run.")
    config = AuditConfig.model_validate_json(audit.config)
    survey = audits.survey_of(db, audit)
    cells = list(survey.asked)
    forecast = estimate(config, survey, cells)
    spent = actual_costs(db, audit.id)
    rows = [row.model_copy(update={"actual": spent.get((row.name, row.stage))}) for row in forecast.rows]
    known = [part.usd for part in spent.values() if part.usd is not None]
    return forecast.model_copy(update={"rows": rows, "actual_usd": sum(known) if known else None})


# --- what is planned --------------------------------------------------------------------------------------------


def _planned(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[Planned]:
    if config.probes.direct and cells:
        yield from _direct(config, survey, cells)
        yield from _reviews(config, survey, cells)
    if config.probes.logprob and cells:
        yield from _logprob(config, cells)
    if config.probes.logic and config.probes.logic.items != "traces":
        yield from _logic(config, survey, cells)
    if config.probes.semantic:
        yield from planned_semantic(config, config.probes.semantic)


def _left_out(config: AuditConfig) -> Iterator[str]:
    """Every probe is estimated or named: what is silently left out would look free."""
    for name in type(config.probes).model_fields:
        if getattr(config.probes, name) is not None and name not in ESTIMATED:
            yield f"The probe '{name}' is not in this estimate."
    if config.probes.logic and config.probes.logic.items == "traces":
        yield "The probe 'logic' over traces is not in this estimate: it depends on the answers."


def _spread(cells: Sequence[Cell]) -> Sequence[Cell]:
    return cells[:: max(1, len(cells) // SAMPLED)][:SAMPLED]


def _direct(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[Planned]:
    calls = direct_calls(config, cells)
    for model in config.models:
        examples = [
            direct_call(config, survey, model, cell, sample)
            for cell in _spread(cells)
            for sample in range(0, samples_of(config, cell.country), config.direct.samples)
        ]
        yield Planned(model, Purpose.DIRECT, calls, examples, config.direct.max_words)


def _reviews(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[Planned]:
    """Every judge's share of the traces; an adaptive panel asks between a majority and all of its seats."""
    share, traces = reached(config, len(cells)), reviewed_traces(config, cells)
    seats: dict[str, Range] = {}
    for author in config.models:
        judges = config.judges_of(author.name)
        for judge in judges:
            given = config.panel_size(author.name) / len(judges)
            asked = share * seat_calls(config, traces, author.name, given)
            seats[judge.name] = seats.get(judge.name, Range.of(0)) + asked
    text = " ".join(["word"] * config.direct.max_words)
    for judge in config.judge_models:
        if judge.name in seats:
            traces_ = [Trace("", cell, 0, Outcome.OK, 0.0, text) for cell in _spread(cells)[:5]]
            examples = [review_call(config, survey, judge, trace, text) for trace in traces_]
            asked = seats[judge.name]
            if config.probes.review.rewrite == "neutral" and judge.name != config.probes.review.rewriter:
                asked += asked  # each trace once more, restated
            yield Planned(judge, Purpose.REVIEW, asked, examples, 0.7 * config.probes.review.max_words)
            if config.probes.review.guess:
                panels = {m.name: [j.name for j in config.judges_of(m.name)] for m in config.models}
                given = sum(config.panel_size(m) / len(p) for m, p in panels.items() if judge.name in p)
                guesses = share * Range.of(given * len(cells))
                yield Planned(judge, Purpose.GUESS, guesses, examples, GUESS_WORDS)
    if config.probes.review.rewrite == "neutral":
        rewriter = config.model(config.probes.review.rewriter or "")
        others = sum(m.name != rewriter.name for m in config.models)
        traces_ = [Trace("", cell, 0, Outcome.OK, 0.0, text) for cell in _spread(cells)[:5]]
        examples = [review_call(config, survey, rewriter, trace, text) for trace in traces_]
        expected = share * Range.of(*(usable * others * traces for usable in USABLE))
        yield Planned(rewriter, Purpose.REWRITE, expected, examples, config.direct.max_words)


def _logprob(config: AuditConfig, cells: Sequence[Cell]) -> Iterator[Planned]:
    """The first way that a model may offer is expected; the ends are those of all ways, which only asking tells."""
    probe = config.probes.logprob
    assert probe is not None
    for model in config.models:
        ways = [
            [c for one in comparisons(model, cells[0], m) for c in one.calls] for m in measures(model, probe.method)
        ]
        counts = [len({call.key for call in way}) * len(cells) for way in ways] or [0]
        yield Planned(model, Purpose.LOGPROB, Range.of(min(counts), counts[0], max(counts)), ways[0] if ways else [], 0)


def _logic(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[Planned]:
    from auditor.agents.logic.graph import judges
    from auditor.agents.logic.item_sets import item_sets
    from auditor.agents.logic.questions import comparison_call, pairs_of, questions_on

    probe = config.probes.logic
    assert probe is not None
    sets = item_sets(Context(config, survey, 0, cells, None, Nobody(), None), probe)  # type: ignore[arg-type]
    pairs = pairs_of(sets, probe, config.seed)
    asked = [question for pair in pairs for question in questions_on(pair, probe)]
    some = asked[:: max(1, len(asked) // SAMPLED)][:SAMPLED]
    for judge in judges(config):
        examples = [comparison_call(config, probe, judge, sets[q.of], q) for q in some]
        words = probe.max_words if probe.cot else 0
        yield Planned(judge, Purpose.LOGIC, Range.of(len(asked)), examples, words)


# --- tokens and money -------------------------------------------------------------------------------------------


def _row(plan: Planned, mean: AnswerMean | None, batch: BatchSection | None) -> ForecastRow:
    sizes = [_prompt_bytes(call) for call in plan.examples] or [0]
    size = sum(sizes) / len(sizes)
    prompt = Range.of(*(size / per for per in BYTES_PER_TOKEN))
    answer, basis = _answer_tokens(plan, mean)
    price, source = _price(plan.model)
    calls = plan.calls
    tokens_in, tokens_out = (calls * tokens for tokens in (prompt, answer))
    cost = None if price is None else tokens_in * Range.of(price[0]) + tokens_out * Range.of(price[1])
    if (
        batch and price and dialect_of(plan.model)
    ):  # repairs, and what a server without batches is asked, cost the whole
        cost = cost and cost * Range.of(batch.price, batch.price, 1)
        source += f"; in batches {batch.price:g} of it"
    return ForecastRow(
        name=plan.model.name,
        model=plan.model.model,
        stage=plan.purpose.value,
        calls=calls,
        prompt_tokens=tokens_in,
        completion_tokens=tokens_out,
        usd=cost,
        price=None if price is None else (round(price[0] * 1e6, 9), round(price[1] * 1e6, 9)),
        price_source=source,
        basis=basis,
    )


def _prompt_bytes(call: Call) -> int:
    """Of the messages, and of the schema of the answer, which providers count in."""
    said = sum(len(m.content.encode()) for m in call.messages)
    asked = response_format(SCHEMAS[call.schema], call.max_words or 0) if call.schema else None
    return said + (len(json.dumps(asked)) if asked else 0)


def _answer_tokens(plan: Planned, mean: AnswerMean | None) -> tuple[Range, str]:
    most = max((int(call.params.get("max_tokens", 0)) for call in plan.examples), default=0)
    if mean is not None and mean.n >= ENOUGH:
        return Range.of(0.7 * mean.tokens, mean.tokens, max(most, mean.tokens)), f"{mean.n} recorded answers"
    if plan.purpose is Purpose.LOGPROB:
        return Range.of(most), "limit of tokens"
    expected = plan.words / WORDS_PER_TOKEN + FRAME
    bounded = min(expected, most) if most else expected
    return Range.of(bounded / 3, bounded, max(most, bounded)), f"{plan.words:.0f} words (a rule of thumb)"


def _price(model: ModelSection) -> tuple[TokenPrice | None, str]:
    price = price_of(model)
    if price is None:
        return None, "unknown"
    if model.model.startswith(EMBEDDED):
        return price, "runs here"
    if model.price is not None:
        return price, f"config{f', {model.price.as_of}' if model.price.as_of else ', undated'}"
    return price, f"list of litellm {metadata.version('litellm')}"
