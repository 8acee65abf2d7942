"""Running many calls concurrently; answers that are in the ledger are reused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

from auditor.agents.run_context import RunContext
from auditor.domain import Answer, Call
from auditor.errors import AuditorError
from auditor.storage import ledger


async def run_calls(context: RunContext, stage: str, calls: Sequence[Call]) -> dict[str, Answer]:
    """Get the answers to calls, by the key of the call, from the ledger or from the models.

    Each model has its own workers, so that a slow model does not hold up the others. If a model turns out to be
    unusable, or the run is asked to stop, no further call is sent, calls in flight are awaited and recorded, and the
    answers are incomplete. Nothing is raised, since an exception in one branch would cancel the calls of the others.
    """
    unique_calls = {call.key: call for call in calls}
    answers = await asyncio.to_thread(ledger.load_answers, context.db, unique_calls)
    unanswered_calls = [call for key, call in unique_calls.items() if key not in answers]
    context.progress.on_calls_planned(stage, len(unique_calls), len(answers))
    calls_by_model: dict[str, list[Call]] = {}
    for call in unanswered_calls:
        calls_by_model.setdefault(call.name, []).append(call)
    await asyncio.gather(
        *(
            _run_queue(context, stage, queue, answers)
            for name, model_calls in calls_by_model.items()
            for queue in [iter(model_calls)]  # one queue, from which all workers of the model take calls
            for _ in range(min(len(model_calls), context.max_concurrent_calls(name)))
        )
    )
    return answers


async def _run_queue(context: RunContext, stage: str, queue: Iterator[Call], answers: dict[str, Answer]) -> None:
    """Send calls one after another until the queue is empty or the run is stopped; add answers by key to `answers`."""
    for call in queue:
        if context.stop_event.is_set():
            return
        try:
            answer = await context.client.complete(call)
        except AuditorError as error:
            context.fatal_errors.append(error)
            context.stop_event.set()
            return
        answers[call.key] = replace(answer, attempts=())  # as loaded from the ledger; the bodies would fill the memory
        context.progress.on_answer(stage, answer)
