"""Sending calls as batches: each is written down before it goes out, and again with the provider's name for it."""

from __future__ import annotations

import asyncio
import uuid

from auditor.domain import Answer, Outcome
from auditor.failpoints import failpoint
from auditor.models.batches.client import NotTaken
from auditor.models.provider_request import Reply
from auditor.run.batches.collection import watch
from auditor.run.batches.manager import Office, not_taken
from auditor.run.batches.model_queue import Desk, Part, Tray, Waiter, parts_of
from auditor.storage import batches
from auditor.storage.batches import Batch

OVER = "the budget is spent"


async def send(office: Office, desk: Desk, waiters: list[Waiter]) -> None:
    """Send calls, as far as the budget goes; what is on its way is written down, whoever stops waiting for it.

    Raises:
        ModelSetupError: the provider does not take them.
    """
    most = min(office.settings.most, desk.dialect.most)
    async for part in parts_of(desk, waiters, most, lambda waiter: _admits(office, desk, waiter)):
        if office.stop.is_set():
            return
        task = asyncio.create_task(_submit(office, desk, part))
        office.sending.add(task)
        task.add_done_callback(office.sending.discard)
        await asyncio.shield(task)


def _admits(office: Office, desk: Desk, waiter: Waiter) -> bool:
    if office.stop.is_set():
        return False
    waiter.reserved_usd = office.budget.estimate(waiter.call, desk.endpoint.price)
    if office.budget.reserve(waiter.reserved_usd):
        return True
    waiter.resolve(Reply(Answer(waiter.call.key, Outcome.OVER_BUDGET, error=OVER), None))
    return False


async def _submit(office: Office, desk: Desk, part: Part) -> None:
    calls, reserved = [w.call.key for w in part.waiters], sum(w.reserved_usd for w in part.waiters)
    batch = await batches.prepare(
        office.book.db,
        office.book.audit_id,
        tag=uuid.uuid4().hex,
        name=desk.section.name,
        calls=calls,
        reserved_usd=reserved,
    )
    failpoint("batch_prepared")
    remote = await _sent(office, desk, part, batch)
    failpoint("batch_sent")
    if remote is not None:
        await batches.submitted(office.book.db, batch, remote)
        office.noted(f"{len(calls)} calls to '{desk.section.name}' went out as the batch {remote}.")
    failpoint("batch_submitted")
    tray = Tray(batch, remote, set(calls), reserved / len(calls), {w.call.key: w for w in part.waiters})
    office.trays |= dict.fromkeys(calls, tray)
    watch(office, tray, desk, fresh=True)


async def _sent(office: Office, desk: Desk, part: Part, batch: Batch) -> str | None:
    """The provider's name for a batch; None where it may have arrived, though nobody heard so, and under which name."""
    tries = 0
    while True:
        try:
            if tries and (found := await office.find(desk, batch)):
                return found[0] if desk.dialect.is_sure else None
            return await desk.dialect.submit(part.post, part.lines, batch.tag)
        except NotTaken as error:
            tries += 1
            if not error.again:
                await batches.end(office.book.db, batch, "refused")
                raise not_taken(desk, str(error)) from None
            if not office.may_retry(error, tries):
                raise not_taken(desk, office.reason(error)) from None  # whether it arrived is found out by the next run
            await office.pause(tries, error)
