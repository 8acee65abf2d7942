"""Elicitation of direct scores, with one repair attempt for each unreadable answer."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from auditor.agents.answer_parsing import describe_parse_problem, merge_repaired_trace, parse_task_trace, parse_trace
from auditor.agents.call_builders import build_direct_call
from auditor.agents.call_runner import REPEATABLE_OUTCOMES, find_unsent_repairs, repeat_unusable, run_calls
from auditor.agents.cell_scoring import texts_by_language
from auditor.agents.localization import first_samples, language_of_sample, question_prompt_fields
from auditor.agents.run_context import RunContext
from auditor.config import DirectProbe, ModelSection
from auditor.config.providers import REPLAY, provider_of
from auditor.domain import ENGLISH, Answer, Call, Cell, Message, Outcome, Trace
from auditor.metrics.people.savings import is_settled
from auditor.models.answer_schemas import MoralJudgement
from auditor.models.reasoning import strip_thinking
from auditor.models.structured_reading import parse_structured_answer
from auditor.prompts import load_prompt
from auditor.storage.records import save_records
from auditor.text_safety import truncate_middle

STAGE = "elicit"


@dataclass(slots=True)
class SampleSeries:
    """The samples of one model on one cell in one language.

    Attributes:
        first_sample: number of the first sample of the series.
        traces: traces parsed so far, in order.
    """

    model: ModelSection
    cell: Cell
    first_sample: int
    traces: list[Trace] = field(default_factory=list)

    def samples_to_take(self, probe: DirectProbe) -> range:
        """Numbers of the samples to take next: all guaranteed ones, then one at a time until the scores converge."""
        n_taken = len(self.traces)
        converged = _has_converged(probe, [trace.score for trace in self.traces])
        target_count = probe.guaranteed_samples if n_taken < probe.guaranteed_samples else n_taken + (not converged)
        return range(self.first_sample + n_taken, self.first_sample + min(target_count, probe.samples))


def find_surplus_samples(
    probe: DirectProbe, reached_cells: Collection[Cell], samples: Iterable[tuple[str, Cell, int, float | None]]
) -> list[tuple[str, Cell, int]]:
    """Find stored samples that the stopping rule does not require.

    An earlier run can have taken them because calls had failed at the time.

    Args:
        reached_cells: the cells that models are asked about.
        samples: model, cell, number and score of all stored samples, in order.

    Returns:
        Model, cell and number of the surplus samples.
    """
    samples_by_series: dict[tuple[str, Cell, int], list[tuple[int, float | None]]] = {}
    for model, cell, sample, score in samples:
        language_index, _ = probe.split_sample(sample)
        samples_by_series.setdefault((model, cell, language_index), []).append((sample, score))
    surplus = []
    for (model, cell, _), series_samples in samples_by_series.items():
        n_needed = 0 if cell not in reached_cells else probe.guaranteed_samples
        while 0 < n_needed < len(series_samples) and not _has_converged(
            probe, [score for _, score in series_samples[:n_needed]]
        ):
            n_needed += 1
        surplus += [(model, cell, sample) for sample, _ in series_samples[n_needed:]]
    return surplus


def _has_converged(probe: DirectProbe, scores: Iterable[float | None]) -> bool:
    """Whether scores agree within the configured tolerance; False if no tolerance is configured."""
    return probe.tolerance is not None and is_settled([score for score in scores if score is not None], probe.tolerance)


async def elicit_traces(context: RunContext, model: ModelSection, cells: Sequence[Cell]) -> None:
    """Ask a model about some cells, and store the traces.

    It is asked k times in every language or, with a configured tolerance, until its samples converge. This
    depends on recorded answers only, so that every run over the same ledger asks the same questions.
    """
    probe = context.config.direct
    series = [
        SampleSeries(model, cell, first_sample)
        for cell in cells
        for first_sample in first_samples(context.config, cell.country)
    ]
    while not context.stop_event.is_set():
        planned_samples = [
            (sample_series, sample) for sample_series in series for sample in sample_series.samples_to_take(probe)
        ]
        if not planned_samples:
            return
        new_traces = await _take_samples(
            context, [(sample_series.model, sample_series.cell, sample) for sample_series, sample in planned_samples]
        )
        for sample_series, sample in planned_samples:
            if (trace := new_traces.get((sample_series.model.name, sample_series.cell, sample))) is not None:
                sample_series.traces.append(trace)
        _submit_complete_cells(context, series)


def _submit_complete_cells(context: RunContext, series: Iterable[SampleSeries]) -> None:
    """Let the texts of cells be compared that need no more samples, while other cells are asked about."""
    if context.consistency is None:
        return
    series_by_cell: dict[tuple[str, Cell], list[SampleSeries]] = {}
    for sample_series in series:
        series_by_cell.setdefault((sample_series.model.name, sample_series.cell), []).append(sample_series)
    for model_cell, cell_series in series_by_cell.items():
        if not any(sample_series.samples_to_take(context.config.direct) for sample_series in cell_series):
            traces = [trace for sample_series in cell_series for trace in sample_series.traces]
            context.consistency.submit(model_cell, texts_by_language(traces))


async def _take_samples(
    context: RunContext, samples: Sequence[tuple[ModelSection, Cell, int]]
) -> dict[tuple[str, Cell, int], Trace]:
    """Ask for samples, repair unreadable answers, and store and return the traces by (model, cell, sample).

    Samples that a stopped run leaves unanswered are missing.
    """
    config = context.config
    requests = [
        (build_direct_call(config, context.survey, model, cell, sample), model.name, cell, sample)
        for model, cell, sample in samples
    ]
    arrivals = _Arrivals(context, requests)
    if context.consistency is not None:
        await context.consistency.start({(model, cell) for _, model, cell, _ in requests})
    answers = await run_calls(context, STAGE, [call for call, *_ in requests], arrivals.add)
    traces = [
        (call, arrivals.traces[model, cell, sample]) for call, model, cell, sample in requests if call.key in answers
    ]
    repaired, unsent_repairs = await _repair_traces(context, traces, answers)

    def read(position: int, answer: Answer) -> Trace:
        """Parse the second answer to a call."""
        call, trace = repaired[position]
        return _parse_sample(context, call, answer, trace.model, trace.cell, trace.sample)

    final_traces = [
        _mark_unsent_repair(trace, unsent_repairs) for trace in await repeat_unusable(context, STAGE, repaired, read)
    ]
    await asyncio.to_thread(save_records, context.db, context.audit_id, final_traces)
    return {(final_trace.model, final_trace.cell, final_trace.sample): final_trace for final_trace in final_traces}


async def _repair_traces(
    context: RunContext, asked: Sequence[tuple[Call, Trace]], answers: Mapping[str, Answer]
) -> tuple[list[tuple[Call, Trace]], dict[str, Outcome]]:
    """Ask once more for unreadable answers; see `find_unsent_repairs` for the second result.

    Samples whose repair a stopped run leaves unanswered are missing.

    Args:
        context: the run's context.
        asked: the first calls, each with the trace parsed from its answer.
        answers: the answers to them, by key.
    """
    repair_calls = [build_repair_call(context, call, trace, answers[call.key].text) for call, trace in asked]
    repair_answers = await run_calls(context, STAGE, [call for call in repair_calls if call is not None])
    repaired: list[tuple[Call, Trace]] = []
    for (call, trace), repair_call in zip(asked, repair_calls, strict=True):
        if repair_call is None:
            repaired.append((call, trace))
        elif (answer := repair_answers.get(repair_call.key)) is not None:
            second = _parse_sample(context, repair_call, answer, trace.model, trace.cell, trace.sample)
            repaired.append((call, merge_repaired_trace(trace, second, context.config.direct.mode)))
    return repaired, await find_unsent_repairs(context, repair_answers.values())


def _mark_unsent_repair(trace: Trace, unsent_repairs: Mapping[str, Outcome]) -> Trace:
    """The trace of an unreadable answer as lost with its repair, which another run sends; see `find_unsent_repairs`."""
    outcome = unsent_repairs.get(trace.repair_key or "")
    return trace if outcome is None or trace.repeat_key is not None else replace(trace, outcome=outcome)


class _Arrivals:
    """Parses answers as they arrive, and hands the texts of each complete cell over to be compared.

    Attributes:
        traces: parsed so far, by model, cell and sample.
    """

    def __init__(self, context: RunContext, requests: Sequence[tuple[Call, str, Cell, int]]) -> None:
        """Set up for requests: call, model's name, cell and sample of each."""
        self._context = context
        self.traces: dict[tuple[str, Cell, int], Trace] = {}
        self._calls = {call.key: call for call, *_ in requests}
        self._samples_by_key: dict[str, list[tuple[str, Cell, int]]] = {}
        self._samples_by_cell: dict[tuple[str, Cell], list[int]] = {}
        for call, model, cell, sample in requests:
            self._samples_by_key.setdefault(call.key, []).append((model, cell, sample))
            self._samples_by_cell.setdefault((model, cell), []).append(sample)
        self._n_missing = {key: len(samples) for key, samples in self._samples_by_cell.items()}

    def add(self, call_key: str, answer: Answer) -> None:
        """Parse an answer; called once for each call's key."""
        for model, cell, sample in self._samples_by_key[call_key]:
            trace = self.traces[model, cell, sample] = _parse_sample(
                self._context, self._calls[call_key], answer, model, cell, sample
            )
            self._context.unread_answers.record(model, trace.outcome)
            self._n_missing[model, cell] -= 1
            if not self._n_missing[model, cell]:
                self._submit(model, cell)

    def _submit(self, model: str, cell: Cell) -> None:
        """Submit the texts of a cell, unless more samples or calls may change them: then the round's end does."""
        traces = [self.traces[model, cell, sample] for sample in self._samples_by_cell[model, cell]]
        may_change = any(trace.outcome in REPEATABLE_OUTCOMES for trace in traces)
        if self._context.consistency is None or self._context.config.direct.tolerance is not None or may_change:
            return
        self._context.consistency.submit((model, cell), texts_by_language(traces))


def _parse_sample(context: RunContext, call: Call, answer: Answer, model: str, cell: Cell, sample: int) -> Trace:
    """Parse the answer to a survey question or a task item into a trace."""
    config, task = context.config, context.survey.task
    if task is not None:
        return parse_task_trace(answer, task, model, cell, sample, config.direct.mode, call.request_text)
    language = language_of_sample(config, cell.country, sample)
    return parse_trace(answer, model, cell, sample, config.direct.mode, language, call.request_text)


def build_repair_call(context: RunContext, call: Call, trace: Trace, text: str | None) -> Call | None:
    """Build the repair call, which shows the model its unreadable answer without its thinking.

    None if it is not needed or not configured, if there is nothing to show, or if the model only replays a file.

    Args:
        call, text: the first call, and the text of its answer.
        trace: parsed from that answer.
    """
    probe, max_chars = context.config.direct, context.config.probes.review.max_trace_chars
    visible_text = strip_thinking(text or "")
    if not probe.repair or trace.outcome is not Outcome.UNPARSED or provider_of(call.model) is REPLAY:
        return None
    if not text or not visible_text.strip():
        return None
    task = context.survey.task
    if task is not None:
        prompt, field_values = load_prompt(f"repair.task.{probe.mode}"), dict[str, str]()
        problem = describe_parse_problem(task, text, call.request_text)
    else:
        fields = question_prompt_fields(context.survey, trace.cell, ENGLISH)
        prompt, field_values = (
            load_prompt(f"repair.{probe.mode}"),
            # The labels of the scale's ends, -1 and +1.
            {field_name: fields[field_name] for field_name in ("never", "always")},
        )
        problem = str(parse_structured_answer(MoralJudgement, text, call.request_text))
    question = prompt.render(
        **field_values, **({"problem": truncate_middle(problem, max_chars)} if probe.mode == "structured" else {})
    )[-1]
    shown_answer = Message("assistant", truncate_middle(visible_text, max_chars))
    return replace(call, messages=(*call.messages, shown_answer, question))
