"""Finding out what the servers of all models accept, before other calls are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

from langgraph.runtime import Runtime

from auditor.agents.call_builders import build_direct_call, plan_stand_ins
from auditor.agents.localization import first_samples
from auditor.agents.logprob_scoring import find_measures
from auditor.agents.run_context import RunContext
from auditor.agents.stages import AuditState, enter_stage
from auditor.config import REPLAY, ModelSection
from auditor.domain import Call, Purpose
from auditor.errors import AuditorError, ModelSetupError, UnusableModelsError
from auditor.metrics.people.savings import next_interim_look
from auditor.storage import costs, ledger

STAGE = "preflight"
KEYS_PER_LOOKUP = 200
"""Number of planned calls whose answers are looked up at once."""


async def preflight(state: AuditState, runtime: Runtime[RunContext]) -> AuditState:
    """Find out what the servers of all models accept, and a log-probability measure for each model."""
    context = runtime.context
    await enter_stage(context, STAGE)
    await find_capabilities(context)
    context.raise_if_stopped()
    measures = await find_measures(context)
    context.raise_if_stopped()
    return {"measures": measures}


async def find_capabilities(context: RunContext) -> None:
    """Send one call to each model of which it is not known what its server accepts.

    To an audited model that is its first planned question, whose answer the audit uses; to a judge that has none, a
    review of a stand-in trace. Nothing is sent if no planned question is left. If models turn out to be unusable, one
    error that names all of them is added to the context's, and the run is stopped.
    """
    calls = await asyncio.to_thread(_plan_calls, context)
    stand_ins = [(call.name, call.purpose.value, call.key) for call in calls if call.purpose is Purpose.PREFLIGHT]
    await asyncio.to_thread(costs.record_calls, context.db, context.audit_id, stand_ins)
    context.progress.on_calls_planned(STAGE, len(calls), 0)
    failures = await asyncio.gather(*(_send_call(context, call) for call in calls))
    errors = [error for error in failures if error is not None]
    if errors:
        context.stop_with(_merge_errors(errors))


async def _send_call(context: RunContext, call: Call) -> AuditorError | None:
    """Send one call; returns the error that ended it, or None."""
    try:
        answer = await context.client.complete(call)
    except AuditorError as error:
        return error
    context.progress.on_answer(STAGE, answer)
    context.ignored_keys.record(call, answer)
    context.answers_ahead[call.key] = replace(answer, attempts=())
    return None


def _merge_errors(errors: Sequence[AuditorError]) -> AuditorError:
    """One error that says what all errors about unusable models say; the first error if another is among them."""
    setup_errors = {error.message: error for error in errors if isinstance(error, ModelSetupError)}
    if len(setup_errors) == 1 or any(not isinstance(error, ModelSetupError) for error in errors):
        return next((error for error in errors if not isinstance(error, ModelSetupError)), errors[0])
    merged = UnusableModelsError(
        f"{len(setup_errors)} models cannot be used. Recorded answers are kept.",
        " ".join(str(error) for error in setup_errors.values()),
    )
    merged.errors = tuple(setup_errors.values())
    return merged


def _plan_calls(context: RunContext) -> list[Call]:
    """The calls that find out what servers accept; empty if it is known, or if nothing is left to be asked."""
    config = context.config
    if not context.preflight or not config.probes.direct or not context.cells:
        return []
    needs_discovery = context.capabilities.needs_discovery
    asked_models = [model for model in config.models if model.provider is not REPLAY]
    first_calls = {model.name: next(_guaranteed_calls(context, model)) for model in config.models}
    unknown_models = {model.name for model in asked_models if needs_discovery(first_calls[model.name])}
    stand_ins = plan_stand_ins(config, context.survey, context.cells[0])
    stand_ins = [call for call in stand_ins if needs_discovery(call)]
    if not unknown_models and not stand_ins:
        return []
    open_calls = {model.name: _first_unanswered_call(context, model) for model in config.models}
    if not any(open_calls.values()):
        return []
    direct_calls = [call for name, call in open_calls.items() if call is not None and name in unknown_models]
    # A structured answer to a question shows in which form its model can judge, too.
    shown_forms = {call.capability_key for call in direct_calls if call.schema is not None}
    return [*direct_calls, *(call for call in stand_ins if call.capability_key not in shown_forms)]


def _first_unanswered_call(context: RunContext, model: ModelSection) -> Call | None:
    """The first question to a model that is certainly asked and has no recorded answer; None if there is none."""
    calls = _guaranteed_calls(context, model)
    while chunk := [call for _, call in zip(range(KEYS_PER_LOOKUP), calls, strict=False)]:
        answered_keys = ledger.find_answered_keys(context.db, [call.key for call in chunk])
        for call in chunk:
            if call.key not in answered_keys:
                return call
    return None


def _guaranteed_calls(context: RunContext, model: ModelSection) -> Iterator[Call]:
    """Yield the questions to a model that are asked whatever its answers are, in the order of asking."""
    config, cells = context.config, context.cells_in_elicitation_order
    n_cells = len(cells) if config.direct.target_width is None else next_interim_look(0, len(cells))
    for cell in cells[:n_cells]:
        for first_sample in first_samples(config, cell.country):
            for sample in range(first_sample, first_sample + config.direct.guaranteed_samples):
                yield build_direct_call(config, context.survey, model, cell, sample)
