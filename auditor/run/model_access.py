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
from auditor.run.api_keys import list_secret_variables, remember_secrets, short_secrets_warning
from auditor.run.engines import open_dispatcher, require_engine
from auditor.run.survey_plan import planned_cells
from auditor.storage import audits, costs, ledger, limit_changes
from auditor.storage.database import Database
from auditor.storage.new_results import load_new_results

if TYPE_CHECKING:
    from auditor.agents.recording import CallRecorder
    from auditor.agents.run_context import ModelClient, ProgressReporter, RunContext, TextEncoder
    from auditor.models.dispatch import Dispatcher
    from auditor.models.gateway import Gateway

T = TypeVar("T")
NO_ENCODER = "none"
THREAD_SWITCH_INTERVAL_S = 0.0002
"""After how long a thread that waits for the interpreter may have it."""


def run_with_models(
    work: Callable[[RunContext], Awaitable[T]],
    config: AuditConfig,
    survey: Survey,
    audit: audits.Audit,
    db: Database,
    *,
    load_encoder: Callable[[], TextEncoder] | None = None,
    progress: ProgressReporter | None = None,
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
    from auditor.agents.run_context import SilentProgress
    from auditor.errors import RunInterrupted

    require_engine(config, db.url)
    remember_secrets(list_secret_variables(config))
    if progress is not None and (note := short_secrets_warning(config)):
        progress.on_notice(note)

    async def inside() -> T:
        async with _open_context(config, survey, audit, db, progress or SilentProgress(), load_encoder) as context:
            try:
                with _stop_on_signals(context.stop_event) if signals else _no_signals():
                    return await work(context)
            except asyncio.CancelledError:
                if context.stop_event.is_set():  # the second signal: whoever sent it does not want to wait
                    stopped = "the run was stopped at once; everything that had arrived is saved."
                    raise RunInterrupted(stopped, "Give the same command again.") from None
                raise

    with _short_switch_interval(), bootstrap.infrequent_garbage_collection():
        return asyncio.run(inside())


def semantic_encoder_loader(config: AuditConfig) -> Callable[[], TextEncoder] | None:
    """The encoder of the probe `semantic`, checked now and loaded on first use; None where it is not asked for."""
    probe = config.probes.semantic
    if probe is None:
        return None
    from auditor.models.embeddings import check_encoder, load_encoder
    from auditor.models.text_similarity import check_similarity_packages

    name = probe.encoder or config.embedding.model
    check_encoder(name)
    check_similarity_packages(probe.rivals)
    return functools.cache(lambda: load_encoder(name))


def direct_encoder_loader(config: AuditConfig) -> Callable[[], TextEncoder] | None:
    """The encoder, loaded on first use; that it can be loaded is checked now, before anything is asked."""
    if config.embedding.model == NO_ENCODER or config.probes.direct is None or config.direct.samples < 2:
        return None
    from auditor.models.embeddings import check_encoder, load_encoder

    check_encoder(config.embedding.model)
    return functools.partial(load_encoder, config.embedding.model)


def _create_gateway(
    config: AuditConfig,
    recorder: CallRecorder,
    replayed_models: Container[str],
    stop_event: threading.Event,
    dispatcher: Dispatcher | None,
    notify: Callable[[str], None],
) -> Gateway:
    """The gateway to all models that are really asked."""
    from auditor.models.gateway import Gateway
    from auditor.models.multiprocess_dispatch import MultiprocessDispatcher, max_helpers

    models = {m.name: m for m in [*config.models, *config.judge_models] if m.name not in replayed_models}
    if dispatcher is None:
        helpers = max_helpers(os.cpu_count()) if config.run.processes is None else config.run.processes - 1
        dispatcher = MultiprocessDispatcher(models.values(), helpers)
    return Gateway(
        models.values(),
        config.limits,
        spent_usd=costs.sum_audit_cost(recorder.db, recorder.audit_id).usd or 0.0,
        seed=config.seed,
        stop_event=stop_event,
        on_limit_change=functools.partial(
            limit_changes.record_limit_change, recorder.db, recorder.run_id, recorder.audit_id
        ),
        dispatcher=dispatcher,
        notify=notify,
    )


@asynccontextmanager
async def _open_context(
    config: AuditConfig,
    survey: Survey,
    audit: audits.Audit,
    db: Database,
    progress: ProgressReporter,
    load_encoder: Callable[[], TextEncoder] | None,
) -> AsyncIterator[RunContext]:
    """What nodes work in, with a gateway to the audit's models that is closed at the end."""
    from auditor.agents.recording import CallRecorder, RecordingClient
    from auditor.agents.run_context import RunContext
    from auditor.run.batches import create_batching_client
    from auditor.run.replay import ReplayClient, RoutingClient, load_records
    from auditor.run.telemetry import TracedClient, open_telemetry_sink

    records = load_records(config.models, survey)
    stop, run = threading.Event(), uuid.uuid4().hex
    sink, book = open_telemetry_sink(config), CallRecorder(db, audit.id, run)
    async with open_dispatcher(config, audit.id, db, progress.on_notice) as sender:
        gateway = _create_gateway(config, book, records, stop, sender, progress.on_notice)
        batches = create_batching_client(gateway, config, book, stop, progress.on_notice)
        telling = (
            TracedClient(batches or gateway, sink, config.name, config.telemetry) if sink and config.telemetry else None
        )
        asker: ModelClient = telling or batches or gateway
        here = RecordingClient(ReplayClient(asker, records), book)
        began = ledger.utc_now()
        try:
            yield RunContext(
                config=config,
                survey=survey,
                audit_id=audit.id,
                cells=planned_cells(survey),
                db=db,
                client=here if sender is None else RoutingClient(records, here, asker),
                load_encoder=load_encoder,
                load_semantic_encoder=semantic_encoder_loader(config),
                progress=progress,
                stop_event=stop,
                run_id=run,
            )
        finally:
            if batches is not None:
                await batches.close()
            await gateway.close()
            if telling is not None:
                await asyncio.to_thread(telling.finish, load_new_results(db, audit.id, began), progress.on_notice)


@contextmanager
def _short_switch_interval() -> Iterator[None]:
    """Let other threads have the interpreter sooner while models are asked.

    The writer lets it go at each of a transaction's statements; behind a busy event loop it would get it back after
    Python's usual 5 ms each time, and what arrived would wait for the disk that long.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(usual, THREAD_SWITCH_INTERVAL_S))
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


@contextmanager
def _no_signals() -> Iterator[None]:
    yield


@contextmanager
def _stop_on_signals(stop_event: threading.Event) -> Iterator[None]:
    """The first signal drains, the second stops at once; what arrived is recorded either way."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    wanted = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

    def on_signal() -> None:
        if stop_event.is_set() and task is not None:
            task.cancel()
        stop_event.set()

    for number in wanted:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in wanted:
            loop.remove_signal_handler(number)
