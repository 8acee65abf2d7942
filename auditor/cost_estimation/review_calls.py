"""The calls of the models that judge traces: verdicts, guesses and restatements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.agents.call_builders import build_review_call
from auditor.config import AuditConfig, ModelSection
from auditor.cost_estimation.call_counts import (
    USABLE_TRACE_SHARES,
    count_judge_calls,
    count_reviewed_traces,
    share_of_cells_asked,
)
from auditor.cost_estimation.planned_calls import PlannedCalls, sample_evenly
from auditor.domain import Call, Cell, Outcome, Purpose, Survey, Trace
from auditor.reports.data.cost.forecast import ForecastRange

MAX_EXAMPLE_TRACES = 5
"""Cells with a trace whose prompts are built."""
GUESS_ANSWER_WORDS = 10
"""Words of a judge's guess, which names three lines by number."""


def plan_review_calls(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> Iterator[PlannedCalls]:
    """Yield the calls of the judging models: each judge's verdicts and guesses, and the rewriter's restatements.

    A guess is of a trace's country, topic and author, to test blinding; a restatement is the trace in neutral words.
    Each author's traces are shared out equally among its judges, `panel_size` of them per trace. An adaptive panel
    asks between a majority and all of its judges.
    """
    verdicts_by_judge = _count_verdicts(config, cells)
    for judge in config.judge_models:
        if judge.name not in verdicts_by_judge or judge.verdicts is not None:
            continue
        # The prompt of a verdict also stands for that of a guess.
        examples = _build_examples(config, survey, cells, judge)
        calls = verdicts_by_judge[judge.name]
        if config.probes.review.rewrite == "neutral" and judge.name != config.probes.review.rewriter:
            calls += calls  # each trace once more, restated
        yield PlannedCalls(judge, Purpose.REVIEW, calls, examples, 0.7 * config.probes.review.max_words)
        if config.probes.review.guess:
            guesses = _count_guesses(config, cells, judge)
            yield PlannedCalls(judge, Purpose.GUESS, guesses, examples, GUESS_ANSWER_WORDS)
    if config.probes.review.rewrite == "neutral":
        yield _plan_restatements(config, survey, cells)


def _count_verdicts(config: AuditConfig, cells: Sequence[Cell]) -> dict[str, ForecastRange]:
    """Number of verdicts by each judge that is asked for any."""
    share, traces = share_of_cells_asked(config, len(cells)), count_reviewed_traces(config, cells)
    verdicts_by_judge: dict[str, ForecastRange] = {}
    for author in config.models:
        judges = config.judges_of(author.name)
        for judge in judges:
            judge_share = config.panel_size(author.name) / len(judges)
            verdicts = share * count_judge_calls(config, traces, author.name, judge_share)
            verdicts_by_judge[judge.name] = verdicts_by_judge.get(judge.name, ForecastRange.from_bounds(0)) + verdicts
    return verdicts_by_judge


def _count_guesses(config: AuditConfig, cells: Sequence[Cell], judge: ModelSection) -> ForecastRange:
    """Number of a judge's guesses: one per cell and author, by the share of the author's traces that the judge gets."""
    judges_by_author = {
        author.name: [panel_judge.name for panel_judge in config.judges_of(author.name)] for author in config.models
    }
    n_assigned_authors = sum(
        config.panel_size(author) / len(judge_names)
        for author, judge_names in judges_by_author.items()
        if judge.name in judge_names
    )
    return share_of_cells_asked(config, len(cells)) * ForecastRange.from_bounds(n_assigned_authors * len(cells))


def _plan_restatements(config: AuditConfig, survey: Survey, cells: Sequence[Cell]) -> PlannedCalls:
    """The restatements by the rewriter of all other models' traces; prompts of verdicts stand for theirs."""
    rewriter = config.model(config.probes.review.rewriter or "")
    n_authors = sum(author.name != rewriter.name for author in config.models)
    traces = count_reviewed_traces(config, cells)
    restatements = share_of_cells_asked(config, len(cells)) * ForecastRange.from_bounds(
        *(usable * n_authors * traces for usable in USABLE_TRACE_SHARES)
    )
    examples = _build_examples(config, survey, cells, rewriter)
    return PlannedCalls(rewriter, Purpose.REWRITE, restatements, examples, config.direct.max_words)


def _build_examples(config: AuditConfig, survey: Survey, cells: Sequence[Cell], judge: ModelSection) -> list[Call]:
    """Calls for verdicts on traces of as many words as are asked for, since no trace is written yet."""
    text = " ".join(["word"] * config.direct.max_words)
    traces = [Trace("", cell, 0, Outcome.OK, 0.0, text) for cell in sample_evenly(cells)[:MAX_EXAMPLE_TRACES]]
    return [build_review_call(config, survey, judge, trace, text) for trace in traces]
