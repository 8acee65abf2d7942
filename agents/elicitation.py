"""Asking for direct scores: the first question, and the one attempt to repair an answer that cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from auditor.agents.answer_parsing import merge_repaired_trace, parse_trace
from auditor.agents.call_builders import build_direct_call
from auditor.agents.call_runner import run_calls
from auditor.agents.localization import language_of_sample, question_prompt_fields, samples_per_cell
from auditor.agents.run_context import RunContext
from auditor.agents.task_answer_parsing import describe_parse_problem, parse_task_trace
from auditor.config import DirectProbe, ModelSection
from auditor.domain import ENGLISH, Answer, Call, Cell, Message, Outcome, Trace
from auditor.metrics.stopping import is_settled
from auditor.models.structured import MoralJudgement, parse_structured_answer
from auditor.prompts import load_prompt
from auditor.storage import results
from auditor.text_safety import truncate_middle

STAGE = "elicit"


@dataclass(slots=True)
class SampleSeries:
    """The samples of one cell by one model in one language: the first one's number, and what was read so far."""

    model: ModelSection
    cell: Cell
    first_sample: int
    traces: list[Trace] = field(default_factory=list)

    def samples_to_take(self, probe: DirectProbe) -> range:
        """Numbers of the samples to be taken now: those that are in any case, then one by one until they agree."""
        taken = len(self.traces)
        settled = _has_converged(probe, [t.score for t in self.traces])
        ends = probe.guaranteed_samples if taken < probe.guaranteed_samples else taken + (not settled)
        return range(self.first_sample + taken, self.first_sample + min(ends, probe.samples))


def find_surplus_samples(
    probe: DirectProbe, reached_cells: Collection[Cell], samples: Iterable[tuple[str, Cell, int, float | None]]
) -> list[tuple[str, Cell, int]]:
    """Samples that an earlier run asked for, when calls had failed, and that are not asked for by what is known now.

    Args:
        reached: the cells that are asked about.
        samples: model, cell, number and score of all that are stored, in order.
    """
    series: dict[tuple[str, Cell, int], list[tuple[int, float | None]]] = {}
    for model, cell, sample, score in samples:
        series.setdefault((model, cell, sample // probe.samples), []).append((sample, score))
    found = []
    for (model, cell, _), taken in series.items():
        enough = 0 if cell not in reached_cells else probe.guaranteed_samples
        while 0 < enough < len(taken) and not _has_converged(probe, [score for _, score in taken[:enough]]):
            enough += 1
        found += [(model, cell, sample) for sample, _ in taken[enough:]]
    return found


def _has_converged(probe: DirectProbe, scores: Iterable[float | None]) -> bool:
    return probe.tolerance is not None and is_settled([s for s in scores if s is not None], probe.tolerance)


async def elicit_traces(context: RunContext, cells: Sequence[Cell]) -> None:
    """Ask every model about some cells, and store what was read.

    Each is asked k times in every language or, where the configuration says how exact is exact enough, until the
    samples agree so far. That depends on recorded answers only, so any run over the same ledger asks the same.
    """
    probe = context.config.direct
    series = [
        SampleSeries(model, cell, first)
        for model in context.config.models
        for cell in cells
        for first in range(0, samples_per_cell(context.config, cell.country), probe.samples)
    ]
    while not context.stop_event.is_set():
        wanted = [(one, sample) for one in series for sample in one.samples_to_take(probe)]
        if not wanted:
            return
        found = await _take_samples(context, [(one.model, one.cell, sample) for one, sample in wanted])
        for one, sample in wanted:
            if (trace := found.get((one.model.name, one.cell, sample))) is not None:
                one.traces.append(trace)


async def _take_samples(
    context: RunContext, samples: Sequence[tuple[ModelSection, Cell, int]]
) -> dict[tuple[str, Cell, int], Trace]:
    """Some samples, as read and stored; those are missing that a stop left unanswered."""
    config, mode = context.config, context.config.direct.mode
    asked = [
        (build_direct_call(config, context.survey, model, cell, sample), model.name, cell, sample)
        for model, cell, sample in samples
    ]
    answers = await run_calls(context, STAGE, [call for call, *_ in asked])
    traces: list[tuple[Call, Trace]] = []
    for call, model, cell, sample in asked:
        if call.key in answers:
            traces.append((call, _parse_sample(context, answers[call.key], model, cell, sample)))
    wanted = [build_repair_call(context, call, trace, answers[call.key].text) for call, trace in traces]
    second = await run_calls(context, STAGE, [call for call in wanted if call is not None])
    found = [
        merge_repaired_trace(
            trace, _parse_sample(context, second[call.key], trace.model, trace.cell, trace.sample), mode
        )
        if call is not None and call.key in second
        else trace
        for (_, trace), call in zip(traces, wanted, strict=True)
    ]
    await asyncio.to_thread(results.save_traces, context.db, context.audit_id, found)
    return {(t.model, t.cell, t.sample): t for t in found}


def _parse_sample(context: RunContext, answer: Answer, model: str, cell: Cell, sample: int) -> Trace:
    config, task = context.config, context.survey.task
    if task is not None:
        return parse_task_trace(answer, task, model, cell, sample, config.direct.mode)
    language = language_of_sample(config, cell.country, sample)
    return parse_trace(answer, model, cell, sample, config.direct.mode, language)


def build_repair_call(context: RunContext, call: Call, trace: Trace, text: str | None) -> Call | None:
    """The second question, which shows the model its own answer; None where none is needed, or none is wanted."""
    probe, max_chars = context.config.direct, context.config.probes.review.max_trace_chars
    if not probe.repair or trace.outcome is not Outcome.UNPARSED or not text:
        return None
    task = context.survey.task
    if task is not None:
        prompt, values = load_prompt(f"repair.task.{probe.mode}"), dict[str, str]()
        problem = describe_parse_problem(task, trace.cell, text)
    else:
        fields = question_prompt_fields(context.survey, trace.cell, ENGLISH)
        prompt, values = load_prompt(f"repair.{probe.mode}"), {end: fields[end] for end in ("never", "always")}
        problem = str(parse_structured_answer(MoralJudgement, text))
    question = prompt.render(
        **values, **({"problem": truncate_middle(problem, max_chars)} if probe.mode == "structured" else {})
    )[-1]
    return replace(call, messages=(*call.messages, Message("assistant", truncate_middle(text, max_chars)), question))
