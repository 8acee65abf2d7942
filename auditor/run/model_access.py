"""Asking an audit's models: the one way in, for a run and for all that asks more afterwards."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeVar

from auditor import bootstrap
from auditor.config import AuditConfig
from auditor.domain import Survey
from auditor.run.api_keys import remember_secrets, secret_variables, short_secrets_note
from auditor.run.engines import require_engine, sending
from auditor.run.survey_plan import planned_cells
from auditor.storage import audits, costs, ledger, limit_changes
from auditor.storage.database import Database
from auditor.storage.new_results import readings

if TYPE_CHECKING:
    from auditor.agents.recording import Book
    from auditor.agents.run_context import Asker, Context, Encoder, Progress
    from auditor.models.dispatch import Sender
    from auditor.models.gateway import Gateway

T = TypeVar("T")
NO_ENCODER = "none"
SWITCH_S = 0.0002
"""After how long a thread that waits for the interpreter may have it."""


def ask_models(
    work: Callable[[Context], Awaitable[T]],
    config: AuditConfig,
    survey: Survey,
    audit: audits.Audit,
    db: Database,
    *,
    encoder: Callable[[], Encoder] | None = None,
    progress: Progress | None = None,
    signals: bool = False,
) -> T:
    """Do what asks an audit's models, within its budget and its limits; the caller holds the run's lock.

    Args:
        work: is given what nodes work in.
        encoder: of the answers to direct questions, where they are compared.
        progress: is told of every answer.
        signals: whether SIGINT, SIGTERM and SIGHUP stop it with everything saved; only from the main thread.

    Raises:
        ConfigError: a key is not set, or would go where its owner has not allowed.
        UsageError: there is no cluster that could be used, or its hosts could not write to the database.
        ModelSetupError, StorageError: what is wrong, and how to mend it.
        Interrupted: a signal stopped it.
    """
    from auditor.agents.run_context import Silent
    from auditor.errors import Interrupted

    require_engine(config, db.url)
    remember_secrets(secret_variables(config))
    if progress is not None and (note := short_secrets_note(config)):
        progress.noted(note)

    async def inside() -> T:
        async with _surroundings(config, survey, audit, db, progress or Silent(), encoder) as context:
            try:
                with _stopped_by_signals(context.stop) if signals else _nothing():
                    return await work(context)
            except asyncio.CancelledError:
                if context.stop.is_set():  # the second signal: whoever sent it does not want to wait
                    stopped = "the run was stopped at once; everything that had arrived is saved."
                    raise Interrupted(stopped, "Give the same command again.") from None
                raise

    with _brisk_threads(), bootstrap.seldom_collecting():
        return asyncio.run(inside())


def moral_encoder_of(config: AuditConfig) -> Callable[[], Encoder] | None:
    """The encoder of the probe `semantic`, checked now and loaded on first use; None where it is not asked for."""
    probe = config.probes.semantic
    if probe is None:
        return None
    from auditor.models.embeddings import check_encoder, load_encoder
    from auditor.models.text_similarity import check_rivals

    name = probe.encoder or config.embedding.model
    check_encoder(name)
    check_rivals(probe.rivals)
    return functools.cache(lambda: load_encoder(name))


def encoder_of(config: AuditConfig) -> Callable[[], Encoder] | None:
    """The encoder, loaded on first use; that it can be loaded is checked now, before anything is asked."""
    if config.embedding.model == NO_ENCODER or config.probes.direct is None or config.direct.samples < 2:
        return None
    from auditor.models.embeddings import check_encoder, load_encoder

    check_encoder(config.embedding.model)
    return functools.partial(load_encoder, config.embedding.model)


def _gateway(
    config: AuditConfig,
    book: Book,
    replayed: Container[str],
    stop: threading.Event,
    sender: Sender | None,
    noted: Callable[[str], None],
) -> Gateway:
    """The gateway to all models that are really asked."""
    from auditor.models.gateway import Gateway
    from auditor.models.multiprocess_dispatch import Spreading, helpers_for

    models = {m.name: m for m in [*config.models, *config.judge_models] if m.name not in replayed}
    if sender is None:
        helpers = helpers_for(os.cpu_count()) if config.run.processes is None else config.run.processes - 1
        sender = Spreading(models.values(), helpers)
    return Gateway(
        models.values(),
        config.limits,
        spent_usd=costs.cost(book.db, book.audit_id).usd or 0.0,
        seed=config.seed,
        stop=stop,
        on_limit=functools.partial(limit_changes.note, book.db, book.run, book.audit_id),
        sender=sender,
        noted=noted,
    )


@asynccontextmanager
async def _surroundings(
    config: AuditConfig,
    survey: Survey,
    audit: audits.Audit,
    db: Database,
    progress: Progress,
    encoder: Callable[[], Encoder] | None,
) -> AsyncIterator[Context]:
    """What nodes work in, with a gateway to the audit's models that is closed at the end."""
    from auditor.agents.recording import Book, Recording
    from auditor.agents.run_context import Context
    from auditor.run.batches import batching
    from auditor.run.replay import Divided, Replaying, load_records
    from auditor.run.telemetry import Telling, opened

    records = load_records(config.models, survey)
    stop, run = threading.Event(), uuid.uuid4().hex
    sink, book = opened(config), Book(db, audit.id, run)
    async with sending(config, audit.id, db, progress.noted) as sender:
        gateway = _gateway(config, book, records, stop, sender, progress.noted)
        batches = batching(gateway, config, book, stop, progress.noted)
        telling = (
            Telling(batches or gateway, sink, config.name, config.telemetry) if sink and config.telemetry else None
        )
        asker: Asker = telling or batches or gateway
        here = Recording(Replaying(asker, records), book)
        began = ledger.now()
        try:
            yield Context(
                config=config,
                survey=survey,
                audit_id=audit.id,
                cells=planned_cells(survey),
                db=db,
                gateway=here if sender is None else Divided(records, here, asker),
                encoder=encoder,
                moral_encoder=moral_encoder_of(config),
                progress=progress,
                stop=stop,
                run=run,
            )
        finally:
            if batches is not None:
                await batches.close()
            await gateway.close()
            if telling is not None:
                await asyncio.to_thread(telling.finish, readings(db, audit.id, began), progress.noted)


@contextmanager
def _brisk_threads() -> Iterator[None]:
    """Let other threads have the interpreter sooner while models are asked.

    The writer lets it go at each of a transaction's statements; behind a busy event loop it would get it back after
    Python's usual 5 ms each time, and what arrived would wait for the disk that long.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(usual, SWITCH_S))
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """The first signal drains, the second stops at once; what arrived is recorded either way."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    wanted = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

    def on_signal() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        stop.set()

    for number in wanted:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in wanted:
            loop.remove_signal_handler(number)
