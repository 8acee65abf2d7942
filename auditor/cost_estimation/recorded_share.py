"""How many calls of an audit that was not begun have answers already, since other audits asked the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.agents.answer_parsing import parse_trace
from auditor.agents.call_builders import blind_trace, build_direct_call, build_review_call
from auditor.config import AuditConfig, ModelSection
from auditor.cost_estimation.planned_calls import PlannedCalls, sample_evenly
from auditor.domain import Answer, Call, Cell, Outcome, Purpose, Survey, Trace
from auditor.reports.data.cost.forecast import ForecastRange, sum_ranges
from auditor.storage import ledger
from auditor.storage.database import Database

MAX_SAMPLED_CELLS = 5
"""Cells whose recorded answers are read, to find the reviews of them."""


def estimate_remaining_calls(
    db: Database, config: AuditConfig, survey: Survey, cells: Sequence[Cell], planned: Sequence[PlannedCalls]
) -> ForecastRange | None:
    """Estimate the calls without a recorded answer, by a sample of the calls of each model and stage.

    Returns:
        None if no call of the samples has an answer.
    """
    traces_by_cell = _load_recorded_traces(db, config, survey, cells)
    shares = [
        _share_of_reviews(db, config, survey, traces_by_cell, calls.model)
        if calls.purpose is Purpose.REVIEW
        else _share_answered(db, calls.examples)
        for calls in planned
    ]
    if not any(shares):
        return None
    remaining = [
        ForecastRange.from_bounds(
            *((1 - share) * end for end in (calls.calls.low, calls.calls.expected, calls.calls.high))
        )
        for calls, share in zip(planned, shares, strict=True)
    ]
    return sum_ranges(remaining)


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
