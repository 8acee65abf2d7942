"""Send calls to an audit's models, for a run and for every later command that needs more answers."""

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
from auditor.errors import RunInterrupted
from auditor.run.api_keys import list_secret_variables, remember_secrets, short_secrets_warning
from auditor.run.capability_store import DatabaseCapabilityStore, DiscoveryOptions
from auditor.run.engines import open_dispatcher, require_engine
from auditor.run.survey_plan import planned_cells
from auditor.run.telemetry import TracedClient, open_telemetry_sink
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
"""How long a thread waits for the interpreter before it requests it; Python's default is 0.005 s."""


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
    discovery: DiscoveryOptions | None = None,
) -> T:
    """Run a coroutine that calls an audit's models, within its budget and limits; the caller holds the run's lock.

    Args:
        work: receives the run's context, with the client for the models; its result is returned.
        config: the audit's configuration.
        survey: the survey, or the task, that the audit asks about.
        audit: the stored audit.
        db: the database.
        load_encoder: loads the encoder that compares answers to direct questions; None if they are not compared.
        progress: receives every answer and notice.
        signals: whether SIGINT, SIGTERM and SIGHUP stop it with everything saved; only from the main thread.
        discovery: how it finds out what the models accept.

    Raises:
        ConfigError: a key is not set, or would go to a server without the user's trust.
        UsageError: there is no usable cluster, or its hosts could not write to the database.
        ModelSetupError, StorageError: the message says what is wrong, and how to fix it.
        RunInterrupted: a signal stopped it.
    """
    from auditor.agents.run_context import SilentProgress  # loads scipy (1 s)

    require_engine(config, db.url)
    remember_secrets(list_secret_variables(config))
    if progress is not None and (warning := short_secrets_warning(config)):
        progress.on_notice(warning)

    async def run_work() -> T:
        """Run `work` with an open context; a second signal ends it as RunInterrupted."""
        async with _open_context(
            config, survey, audit, db, progress or SilentProgress(), load_encoder, discovery or DiscoveryOptions()
        ) as context:
            try:
                with _stop_on_signals(context.stop_event) if signals else _no_signals():
                    return await work(context)
            except asyncio.CancelledError:
                if context.stop_event.is_set():  # the second signal, which does not wait for open requests
                    message = "the run was stopped at once; everything that had arrived is saved."
                    raise RunInterrupted(message, "Give the same command again.") from None
                raise

    with _short_switch_interval(), bootstrap.infrequent_garbage_collection():
        return asyncio.run(run_work())


def semantic_encoder_loader(config: AuditConfig) -> Callable[[], TextEncoder] | None:
    """A function that loads the text encoder of the probe `semantic` once; None without that probe.

    Whether the encoder and the packages of other similarity measures (`rivals`) can be used is checked at once.

    Raises:
        AuditorError: they cannot be used.
    """
    probe = config.probes.semantic
    if probe is None:
        return None
    from auditor.models.embeddings import check_encoder, load_encoder  # loads httpx (0.2 s)
    from auditor.models.text_similarity import check_similarity_packages  # for this probe only

    encoder_name = probe.encoder or config.embedding.model
    check_encoder(encoder_name)
    check_similarity_packages(probe.rivals)
    return functools.cache(lambda: load_encoder(encoder_name))


def direct_encoder_loader(config: AuditConfig) -> Callable[[], TextEncoder] | None:
    """A function that loads the text encoder that compares direct answers; None if no answers are compared.

    None is needed without the direct probe, with fewer than two samples per cell, or with the model "none". Whether
    the encoder can be used is checked at once.

    Raises:
        AuditorError: it cannot be used.
    """
    if config.embedding.model == NO_ENCODER or config.probes.direct is None or config.direct.samples < 2:
        return None
    from auditor.models.embeddings import check_encoder, load_encoder  # loads httpx (0.2 s)

    check_encoder(config.embedding.model)
    return functools.partial(load_encoder, config.embedding.model)


def _create_gateway(
    config: AuditConfig,
    recorder: CallRecorder,
    replayed_models: Container[str],
    stop_event: threading.Event,
    dispatcher: Dispatcher | None,
    notify: Callable[[str], None],
    *,
    rediscover: bool,
) -> Gateway:
    """Create the gateway to all models that are not replayed from a file.

    Args:
        config: the audit's configuration.
        recorder: names the database, run and audit that limits and costs are recorded for.
        replayed_models: names of models whose answers come from a file.
        stop_event: once set, no further request is sent.
        dispatcher: sends requests from the workers of a cluster; None to send them from processes of this machine.
        notify: receives notices for the user.
        rediscover: whether to find out again what models accept.
    """
    from auditor.agents.structure_instruction import describe_structure  # loads scipy (1 s)
    from auditor.models.gateway import Gateway  # loads httpx (0.3 s)
    from auditor.models.multiprocess_dispatch import MultiprocessDispatcher, max_helpers  # loads httpx (0.5 s)

    models = {
        model.name: model for model in [*config.models, *config.judge_models] if model.name not in replayed_models
    }
    if dispatcher is None:
        # `run.processes` counts this process too; the helpers are the others.
        n_helpers = max_helpers(os.cpu_count()) if config.run.processes is None else config.run.processes - 1
        dispatcher = MultiprocessDispatcher(models.values(), n_helpers)
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
        capability_store=DatabaseCapabilityStore(recorder.db, recorder.audit_id, rediscover=rediscover),
        describe_structure=describe_structure,
    )


@asynccontextmanager
async def _open_context(
    config: AuditConfig,
    survey: Survey,
    audit: audits.Audit,
    db: Database,
    progress: ProgressReporter,
    load_encoder: Callable[[], TextEncoder] | None,
    options: DiscoveryOptions,
) -> AsyncIterator[RunContext]:
    """Yield the context of the graph's nodes, with a client for the audit's models, and close the client at the end."""
    from auditor.agents.recording import CallRecorder, RecordingClient  # loads scipy (1 s)
    from auditor.agents.run_context import RunContext  # loads scipy (1 s)
    from auditor.run.batches import create_batching_client  # loads httpx (0.5 s)
    from auditor.run.replay import ReplayClient, load_records  # loads the survey readers (0.1 s)

    records = load_records(config.models, survey)
    stop_event, run_id = threading.Event(), uuid.uuid4().hex
    sink, recorder = open_telemetry_sink(config), CallRecorder(db, audit.id, run_id)
    async with open_dispatcher(config, progress.on_notice) as dispatcher:
        gateway = _create_gateway(
            config, recorder, records, stop_event, dispatcher, progress.on_notice, rediscover=options.rediscover
        )
        batching_client = create_batching_client(gateway, config, recorder, stop_event, progress.on_notice)
        # Outermost first: recording, replay, telemetry, batches, gateway.
        traced_client = (
            TracedClient(batching_client or gateway, sink, config.name, config.telemetry)
            if sink and config.telemetry
            else None
        )
        model_client: ModelClient = traced_client or batching_client or gateway
        started_at = ledger.utc_now()
        try:
            yield RunContext(
                config=config,
                survey=survey,
                audit_id=audit.id,
                cells=planned_cells(survey),
                db=db,
                client=RecordingClient(ReplayClient(model_client, records), recorder),
                load_encoder=load_encoder,
                load_semantic_encoder=semantic_encoder_loader(config),
                progress=progress,
                stop_event=stop_event,
                run_id=run_id,
                capabilities=gateway,
                preflight=options.preflight,
            )
        finally:
            if batching_client is not None:
                await batching_client.close()
            await gateway.close()
            if traced_client is not None:
                await asyncio.to_thread(
                    traced_client.finish, load_new_results(db, audit.id, started_at), progress.on_notice
                )


@contextmanager
def _short_switch_interval() -> Iterator[None]:
    """Let threads switch sooner while requests are in flight.

    The database writer releases the interpreter at each statement of a transaction. Behind a busy event loop it would
    get it back only after Python's default of 5 ms each time, which delays the storage of answers.
    """
    previous_interval = sys.getswitchinterval()
    sys.setswitchinterval(min(previous_interval, THREAD_SWITCH_INTERVAL_S))
    try:
        yield
    finally:
        sys.setswitchinterval(previous_interval)


@contextmanager
def _no_signals() -> Iterator[None]:
    """A context that leaves signals as they are."""
    yield


@contextmanager
def _stop_on_signals(stop_event: threading.Event) -> Iterator[None]:
    """Set the event at the first signal, so that open requests finish; cancel the task at the second."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    signal_numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

    def on_signal() -> None:
        """Ask the run to stop; if it was asked before, cancel it."""
        if stop_event.is_set() and task is not None:
            task.cancel()
        stop_event.set()

    for signal_number in signal_numbers:
        loop.add_signal_handler(signal_number, on_signal)
    try:
        yield
    finally:
        for signal_number in signal_numbers:
            loop.remove_signal_handler(signal_number)
