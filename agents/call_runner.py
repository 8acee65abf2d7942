"""Asking many calls at once: what is in the ledger is never asked again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

from auditor.agents.run_context import RunContext
from auditor.domain import Answer, Call
from auditor.errors import AuditorError
from auditor.storage import ledger


async def run_calls(context: RunContext, stage: str, calls: Sequence[Call]) -> dict[str, Answer]:
    """Answers by key, from the ledger or the models.

    Each model has workers of its own, so that a slow one does not idle the rest. When a model turns out to be
    unusable, or the run is asked to stop, no further call goes out, what is in flight is awaited and recorded, and the
    answers are incomplete: nothing is raised, since a branch that raises would cancel its siblings' requests.
    """
    unique = {call.key: call for call in calls}
    answers = await asyncio.to_thread(ledger.load_answers, context.db, unique)
    missing = [call for key, call in unique.items() if key not in answers]
    context.progress.on_calls_planned(stage, len(unique), len(answers))
    lanes: dict[str, list[Call]] = {}
    for call in missing:
        lanes.setdefault(call.name, []).append(call)
    await asyncio.gather(
        *(
            _run_queue(context, stage, queue, answers)
            for name, lane in lanes.items()
            for queue in [iter(lane)]
            for _ in range(min(len(lane), context.max_concurrent_calls(name)))
        )
    )
    return answers


async def _run_queue(context: RunContext, stage: str, queue: Iterator[Call], answers: dict[str, Answer]) -> None:
    """Take calls one by one until there are none, or no more may go out."""
    for call in queue:
        if context.stop_event.is_set():
            return
        try:
            answer = await context.client.complete(call)
        except AuditorError as error:
            context.fatal_errors.append(error)
            context.stop_event.set()
            return
        answers[call.key] = replace(answer, attempts=())  # as the ledger has it; their bodies would fill the memory
        context.progress.on_answer(stage, answer)
