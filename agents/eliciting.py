"""Asking for direct scores: the first question, and the one attempt to repair an answer that cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from auditor.agents.asking import ask
from auditor.agents.calls import direct_call
from auditor.agents.context import Context
from auditor.agents.languages import language_of, question_fields, samples_of
from auditor.agents.reading import read_trace, repaired
from auditor.domain import ENGLISH, Call, Cell, Message, Outcome, Trace
from auditor.models.structured import MoralJudgement, read
from auditor.prompts import load_prompt
from auditor.storage import results

STAGE = "elicit"


async def elicit_traces(context: Context, cells: Sequence[Cell]) -> None:
    """Ask every model about some cells, k samples each in every language, and store what was read."""
    config, mode = context.config, context.config.direct.mode
    asked = [
        (direct_call(config, context.survey, model, cell, sample), model.name, cell, sample)
        for model in config.models
        for cell in cells
        for sample in range(samples_of(config, cell.country))
    ]
    answers = await ask(context, STAGE, [call for call, *_ in asked])
    traces: list[tuple[Call, Trace]] = []
    for call, model, cell, sample in asked:
        if call.key in answers:
            language = language_of(config, cell.country, sample)
            traces.append((call, read_trace(answers[call.key], model, cell, sample, mode, language)))
    wanted = [repair_call(context, call, trace, answers[call.key].text) for call, trace in traces]
    second = await ask(context, STAGE, [call for call in wanted if call is not None])
    found = [
        repaired(trace, second[call.key], mode) if call is not None and call.key in second else trace
        for (_, trace), call in zip(traces, wanted, strict=True)
    ]
    await asyncio.to_thread(results.save_traces, context.db, context.audit_id, found)


def repair_call(context: Context, call: Call, trace: Trace, text: str | None) -> Call | None:
    """The second question, which shows the model its own answer; None where none is needed, or none is wanted."""
    probe = context.config.direct
    if not probe.repair or trace.outcome is not Outcome.UNPARSED or not text:
        return None
    fields = question_fields(context.survey, trace.cell, ENGLISH)
    scale = {"never": fields["never"], "always": fields["always"]}
    if probe.mode == "structured":
        scale["problem"] = str(read(MoralJudgement, text))
    question = load_prompt(f"repair.{probe.mode}").render(**scale)[-1]
    return replace(call, messages=(*call.messages, Message("assistant", text), question))
