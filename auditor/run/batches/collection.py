"""Looking after batches, and handing out what came of them."""

from __future__ import annotations

import asyncio
import tempfile
from asyncio import FIRST_COMPLETED as FIRST
from dataclasses import replace
from datetime import UTC, datetime
from typing import IO

from auditor.domain import Answer, Attempt, Outcome
from auditor.errors import ModelSetupError
from auditor.models.batches.call_translation import read
from auditor.models.batches.client import NotTaken
from auditor.models.batches.provider import Result, State
from auditor.models.failures import Failure
from auditor.models.provider_request import Reply
from auditor.models.responses import sanitize
from auditor.models.transport import KEPT_BYTES, MAX_BYTES
from auditor.run.batches.manager import Office, not_taken
from auditor.run.batches.model_queue import Desk, Tray, Waiter
from auditor.run.batches.result_file import read_lines
from auditor.storage import batches

SLOWEST = 15
"""The longest pause between two looks at a batch, in first pauses."""


def watch(office: Office, tray: Tray, desk: Desk, *, fresh: bool = False) -> None:
    """See to it that somebody looks after a batch for which calls wait.

    Args:
        fresh: whether it has only just gone out.
    """
    if tray.task is None or tray.task.done():
        tray.task = office.spawn(_look_after(office, tray, desk, fresh))


async def _look_after(office: Office, tray: Tray, desk: Desk, fresh: bool) -> None:
    try:
        if tray.remote is None and not await _is_found(office, tray, desk):
            return
        state = await _ended(office, tray, desk, fresh)
        tray.crowded = state.crowded
        if state.refused is not None:
            await _not_taken(office, tray, desk, state)
            return
        while tray.waiters:  # more may come while some are handed out
            await _until_all_came(tray, office.settings.quiet_s)
            await _hand_out(office, tray, desk, state)
        office.spawn(_see_recorded(office, tray))
    except Exception as error:  # noqa: BLE001 - it goes to whoever waits for it
        for waiter in tray.waiters.values():
            waiter.fail(error)
        tray.waiters.clear()


async def _is_found(office: Office, tray: Tray, desk: Desk) -> bool:
    """Whether a batch of which only the preparation was written down is at the provider."""
    try:
        found = await office.patiently(lambda: office.find(desk, tray.batch))
    except NotTaken as error:
        raise not_taken(desk, str(error)) from None
    for remote in found:
        tray.remote = remote
        if desk.dialect.is_sure or await _is_ours(office, tray, desk):
            await batches.submitted(office.book.db, tray.batch, remote)
            return True
    tray.remote = None
    office.noted(f"A batch of {len(tray.batch.calls)} calls to '{desk.section.name}' never left: they go out now.")
    office.give_up(tray, desk, "never submitted")
    return False


async def _is_ours(office: Office, tray: Tray, desk: Desk) -> bool:
    """Whether the results of what may be a batch are of its calls; that is known once it has ended."""
    state, wanted = await _ended(office, tray, desk, fresh=False), set(tray.batch.calls)
    for path in state.results:
        with tempfile.TemporaryFile() as file:
            await _fetch(office, tray, desk, path, file)
            if any(result is not None and result.key in wanted for result in read_lines(file, desk.dialect)):
                return True
    return False


async def _ended(office: Office, tray: Tray, desk: Desk, fresh: bool) -> State:
    """A batch's state once it has ended; a provider that cannot be reached is asked again, for days if need be."""
    first = pause = office.settings.poll_s
    while True:
        if fresh:
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, SLOWEST * first)
        fresh = True
        try:
            state = await desk.dialect.look(desk.post, tray.remote or "")
        except NotTaken as error:
            if not error.again:
                raise _lost(tray, desk, str(error)) from None
            continue
        if state.ended:
            return state


async def _not_taken(office: Office, tray: Tray, desk: Desk, state: State) -> None:
    """A batch that was refused as a whole: where that is for others that are under way, it goes out again later."""
    others = [
        other.task
        for other in office.under_way()
        if other.batch.name == tray.batch.name and other.task and not other.task.done() and not other.crowded
    ]
    tries = max((waiter.refused for waiter in tray.waiters.values()), default=0)
    if not state.crowded or (tries >= office.config.limits.max_attempts and not others):
        office.forget(tray, "refused")
        raise not_taken(desk, state.refused or "")
    office.noted(f"The batch {tray.remote} has to wait for others: {state.refused}")
    for waiter in tray.waiters.values():
        waiter.refused += not others
    await asyncio.wait([*others, office.spawn(asyncio.sleep(SLOWEST * office.settings.poll_s))], return_when=FIRST)
    office.give_up(tray, desk, "refused")


async def _until_all_came(tray: Tray, quiet_s: float) -> None:
    """Wait while more calls come to wait for a batch, since all of its results are fetched at once."""
    before = -1
    while before != len(tray.waiters):
        before = len(tray.waiters)
        await asyncio.sleep(quiet_s)


async def _hand_out(office: Office, tray: Tray, desk: Desk, state: State) -> None:
    waiting, strange, name = dict(tray.waiters), 0, desk.section.name
    asked, wanted = len(waiting), set(tray.batch.calls)
    for path in state.results:
        with tempfile.TemporaryFile() as file:
            await _fetch(office, tray, desk, path, file)
            for result in read_lines(file, desk.dialect):
                if result is None or result.key not in wanted:
                    strange += 1
                elif (waiter := waiting.pop(result.key, None)) is not None:
                    await _hand(office, tray, desk, waiter, result)
    for waiter in waiting.values():
        await _hand(office, tray, desk, waiter, Result(waiter.call.key, None, why=f"the batch is {state.words}"))
    office.noted(f"The batch {tray.remote} of '{name}' is {state.words}: {asked} calls were collected.")
    if strange:
        office.noted(f"{strange} lines of the batch {tray.remote} are of no call in it, and were not taken.")


async def _fetch(office: Office, tray: Tray, desk: Desk, path: str, file: IO[bytes]) -> None:
    most = len(tray.batch.calls) * KEPT_BYTES + MAX_BYTES

    async def whole() -> None:
        file.seek(0)
        file.truncate()
        await desk.post.fetch(path, file, most)

    try:
        await office.patiently(whole)
    except NotTaken as error:
        raise _lost(tray, desk, str(error)) from None
    file.seek(0)


async def _hand(office: Office, tray: Tray, desk: Desk, waiter: Waiter, result: Result) -> None:
    call, number = waiter.call, waiter.number
    if result.status is None:
        reply = _never_asked(waiter, result.why)
    else:
        reply = await read(desk.endpoint, call, result, number=number, timeout_s=desk.section.timeout_s)
    began = tray.batch.prepared_at
    took = (datetime.now(UTC) - began).total_seconds()
    attempts = [replace(a, started_at=began, latency_s=took) for a in reply.answer.attempts]
    answer = replace(reply.answer, attempts=tuple(attempts))
    office.budget.settle(tray.share_usd, answer.cost_usd)
    if not answer.outcome.is_answer:
        tray.left.discard(call.key)
    del tray.waiters[call.key]
    waiter.resolve(replace(reply, answer=answer))
    await asyncio.sleep(0)  # so that it is recorded while the next is read


def _never_asked(waiter: Waiter, why: str) -> Reply:
    why = sanitize(why)
    attempt = Attempt(waiter.number, datetime.now(UTC), 0.0, Outcome.TIMEOUT, error=why, cost_usd=0.0, estimated=False)
    answer = Answer(waiter.call.key, Outcome.TIMEOUT, error=why, attempts=(attempt,), cost_usd=0.0)
    return Reply(answer, Failure(Outcome.TIMEOUT, True, False, why))


async def _see_recorded(office: Office, tray: Tray) -> None:
    """Close a batch once all of its answers are recorded; those that nobody asks for any more stay to be had."""
    before = -1
    while not await office.is_recorded(tray) and before != len(tray.left):
        before = len(tray.left)
        await asyncio.sleep(office.settings.quiet_s)


def _lost(tray: Tray, desk: Desk, why: str) -> ModelSetupError:
    return ModelSetupError(
        f"the batch {tray.remote} of model '{desk.section.name}' cannot be collected: {why.rstrip(' .')}.",
        "Use the key that it was submitted with. Without [batch] in the config its calls are asked, and paid, anew.",
    )
