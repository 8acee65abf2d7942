"""Send calls to an audit's models: stored capabilities, the path of a request, and the clients of a run."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import math
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from auditor import bootstrap
from auditor.agents.background_consistency import BackgroundConsistency
from auditor.agents.call_builders import describe_structure
from auditor.agents.call_runner import CallRecorder, RecordingClient
from auditor.agents.run_context import RunContext, SilentProgress
from auditor.config import AuditConfig, ModelSection
from auditor.config.sections import DEFAULT_DEADLINE_S
from auditor.config.trust import list_secret_variables, remember_secrets, required_bindings, short_secrets_warning
from auditor.domain import Capability, CapabilityKey, Outcome, Survey
from auditor.errors import RunInterrupted
from auditor.lazy_imports import import_when_used
from auditor.models.budget import estimate_sent_cost
from auditor.models.litellm_client import token_price
from auditor.run.batches.waiting_calls import abandoned_batches_notice
from auditor.run.ray_engine import open_dispatcher, require_engine
from auditor.run.signals import stop_on_signals
from auditor.run.survey_plan import (
    EncoderFirstClient,
    bind_simulated_models,
    create_simulated_dispatcher,
    probe_encoder_loaders,
)
from auditor.run.telemetry import TracedClient, open_telemetry_sink
from auditor.storage import audits, capabilities, costs
from auditor.storage.call_records import StoredCapability
from auditor.storage.capabilities import current_capabilities, save_capability
from auditor.storage.database import Database
from auditor.storage.database_errors import MIN_OUTAGE_WAIT_S
from auditor.storage.records import load_records

if TYPE_CHECKING:
    from auditor.agents.run_context import ModelCapabilities, ModelClient, ProgressReporter, TextEncoder
    from auditor.models.dispatch import Dispatcher
    from auditor.models.gateway import Gateway

if not TYPE_CHECKING:
    models_gateway = import_when_used("auditor.models.gateway")
    structured = import_when_used("auditor.models.structured")
    batching_client = import_when_used("auditor.run.batches.batching_client")
    replay = import_when_used("auditor.run.replay")
else:
    from auditor.models import gateway as models_gateway, structured
    from auditor.run import replay
    from auditor.run.batches import batching_client


@dataclass(frozen=True, slots=True)
class DiscoveryOptions:
    """How a run finds out what its models accept.

    Attributes:
        preflight: whether it does so before it sends any other call.
        rediscover: whether it does so again for models of which it is known.
    """

    preflight: bool = True
    rediscover: bool = False


class DatabaseCapabilityStore:
    """A `CapabilityStore` in the database. Capabilities are fixed for the audit, whichever version of litellm runs."""

    def __init__(self, db: Database, audit_id: int, *, rediscover: bool = False) -> None:
        """Read the stored capabilities.

        Args:
            db: the database.
            audit_id: the audit.
            rediscover: whether all is to be found out again; what was stored stays on record.
        """
        self._db, self._audit_id = db, audit_id
        stored = current_capabilities(load_records(db, audit_id, StoredCapability))
        self._replaced_numbers = {key: entry.number for key, entry in stored.items()} if rediscover else {}
        self._capabilities = {} if rediscover else {key: entry.capability for key, entry in stored.items()}

    def load(self) -> Mapping[CapabilityKey, Capability]:
        """Return the stored capabilities; none if all is to be found out again."""
        return dict(self._capabilities)

    async def save(self, key: CapabilityKey, capability: Capability, evidence: str) -> Capability:
        """Store a capability, unless one is stored that this run uses, and return the stored one.

        Raises:
            StorageError: the database cannot be written.
        """
        return await save_capability(
            self._db,
            self._audit_id,
            key,
            capability,
            evidence,
            metadata.version("litellm"),
            newer_than=self._replaced_numbers.get(key, 0),
        )


class RequestPath(NamedTuple):
    """What the graph's nodes use of the path: the outermost link, and what is known of the models' servers."""

    client: ModelClient
    capabilities: ModelCapabilities


@asynccontextmanager
async def open_request_path(
    config: AuditConfig,
    survey: Survey,
    recorder: CallRecorder,
    stop_event: threading.Event,
    notify: Callable[[str], None],
    *,
    rediscover: bool = False,
    encoder_loaders: Sequence[Callable[[], TextEncoder]] = (),
) -> AsyncIterator[RequestPath]:
    """Yield the path of an audit's requests, and close its links at the end.

    A call goes from the last link that is built here to the first; a link that is not configured is not there:

        recording -> replay -> encoders -> tracing -> batches -> gateway -> dispatcher -> litellm

    Simulated models answer in the dispatcher's place.

    Args:
        config: the audit's configuration.
        survey: the survey, or the task, that the audit asks about.
        recorder: records calls in the ledger of the run.
        stop_event: once set, no further request is sent.
        notify: receives notices for the user.
        rediscover: whether to find out again what the models' servers accept.
        encoder_loaders: load the encoders that will compare the answers, before the first request.

    Raises:
        ImportFileError: a file of recorded answers cannot be used.
        ConfigError: a key is not set, or a price that the budget needs is not known.
        UsageError: there is no usable cluster, or a package is not installed.
        ModelSetupError: an embedded model cannot be started.
    """
    records = replay.load_records(config, survey)
    for notice in replay.describe_missing_answers(config, survey, records):
        notify(notice)
    models = {name: model for name, model in config.models_by_name.items() if name not in records}
    async with AsyncExitStack() as links:
        # Opened first, so that a mistake in its settings shows before a model or a cluster is started.
        sink = await links.enter_async_context(open_telemetry_sink(config, recorder, notify))

        dispatcher: Dispatcher = (
            create_simulated_dispatcher(config, survey)
            if config.is_simulated
            else await links.enter_async_context(open_dispatcher(config, models.values(), notify))
        )
        gateway = _create_gateway(config, models.values(), dispatcher, recorder, stop_event, notify, rediscover)
        client: ModelClient = gateway
        if config.batch is not None:
            client = batching_client.BatchingClient(gateway, config, recorder, stop_event, notify)
            links.push_async_callback(client.close)
        if config.telemetry is not None and sink is not None:
            client = TracedClient(client, sink, config.name, config.telemetry)
        if encoder_loaders and not config.is_simulated:
            client = EncoderFirstClient(client, encoder_loaders)
        if records:
            client = replay.ReplayClient(client, records)
        client = RecordingClient(client, recorder)

        yield RequestPath(client, gateway)


def _create_gateway(
    config: AuditConfig,
    models: Collection[ModelSection],
    dispatcher: Dispatcher,
    recorder: CallRecorder,
    stop_event: threading.Event,
    notify: Callable[[str], None],
    rediscover: bool,
) -> Gateway:
    """Create the gateway, whose costs, limits and capabilities are read from and written to the audit's database."""
    return models_gateway.Gateway(
        models,
        config.limits,
        spent_usd=sum_spending(recorder.db, recorder.audit_id, config).usd,
        largest_usd=costs.find_largest_costs(recorder.db, recorder.audit_id),
        seed=config.seed,
        stop_event=stop_event,
        on_limit_change=functools.partial(
            capabilities.record_limit_change, recorder.db, recorder.run_id, recorder.audit_id
        ),
        dispatcher=dispatcher,
        notify=notify,
        capability_store=DatabaseCapabilityStore(recorder.db, recorder.audit_id, rediscover=rediscover),
        describe_structure=describe_structure,
    )


def sum_spending(db: Database, audit_id: int, config: AuditConfig) -> costs.Spending:
    """Sum what an audit may have spent; requests whose cost is unknown count by the usual prices of their models."""
    prices = {name: price for name, model in config.models_by_name.items() if (price := token_price(model)) is not None}
    spending = costs.sum_spending(
        db, audit_id, config.max_in_flight, token_prices=prices, collects_batches=config.batch is not None
    )
    uncounted_usd = math.fsum(
        estimate_sent_cost(prices[request.name], request.request, request.sent)
        for request in costs.load_uncounted_requests(db, audit_id)
        if request.name in prices
    )
    return spending._replace(usd=spending.usd + uncounted_usd)


T = TypeVar("T")
THREAD_SWITCH_INTERVAL_S = 0.0002
"""How long a thread waits for the interpreter before it requests it; Python's default is 0.005 s."""


def require_instructor(config: AuditConfig) -> None:
    """Require the package that requests structured answers, if an audit asks for any.

    Raises:
        ModelSetupError: it cannot be imported.
    """
    if not config.asks_for_structures:
        return
    try:
        is_installed = importlib.util.find_spec("instructor") is not None
    except (ImportError, ValueError):
        is_installed = False
    if not is_installed:
        structured.load_instructor()


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
    repeated: Collection[tuple[str, Outcome]] = (),
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
        repeated: see `RunContext.repeated`.

    Raises:
        ConfigError: a key is not set, or would go to a server without the user's trust.
        UsageError: there is no usable cluster, or its hosts could not write to the database.
        ModelSetupError, StorageError: the message says what is wrong, and how to fix it.
        RunInterrupted: a signal stopped it.
    """
    require_engine(config)
    require_instructor(config)
    bootstrap.allow_machine_credentials(binding.key for binding in required_bindings(config))  # trusted, as was checked
    remember_secrets(list_secret_variables(config))
    if progress is not None and (warning := short_secrets_warning(config)):
        progress.on_notice(warning)

    reporter = progress or SilentProgress()

    async def run_work() -> T:
        """Run `work` with an open context; a second signal ends it as RunInterrupted."""
        async with _open_context(
            bind_simulated_models(config, survey),
            survey,
            audit,
            db,
            reporter,
            load_encoder,
            discovery or DiscoveryOptions(),
            repeated,
        ) as context:
            try:
                with stop_on_signals(context.stop_event, reporter.on_notice) if signals else nullcontext():
                    return await work(context)
            except asyncio.CancelledError:
                db.outages.stop_waiting()
                if context.stop_event.is_set():  # the second signal, which does not wait for open requests
                    message = "the run was stopped at once; everything that had arrived is saved."
                    raise RunInterrupted(message, "To resume, run the same command again.") from None
                raise

    bootstrap.freeze_imported_modules()
    with (
        _short_switch_interval(),
        bootstrap.infrequent_garbage_collection(),
        wait_for_database(db, config, reporter.on_notice),
    ):
        return asyncio.run(run_work())


def wait_for_database(db: Database, config: AuditConfig, notify: Callable[[str], None]) -> AbstractContextManager[None]:
    """Wait in this context, if a server restarts or another program locks the database.

    It is waited for as long as `limits.deadline_s`, which is 120 s if not set, and at least `MIN_OUTAGE_WAIT_S`.
    """
    max_wait_s = max(MIN_OUTAGE_WAIT_S, config.limits.deadline_s or DEFAULT_DEADLINE_S)
    return db.outages.wait_for_database(max_wait_s, notify)


@asynccontextmanager
async def _open_context(
    config: AuditConfig,
    survey: Survey,
    audit: audits.Audit,
    db: Database,
    progress: ProgressReporter,
    load_encoder: Callable[[], TextEncoder] | None,
    options: DiscoveryOptions,
    repeated: Collection[tuple[str, Outcome]],
) -> AsyncIterator[RunContext]:
    """Yield the context of the graph's nodes, whose client sends calls through the path of requests."""
    if config.batch is None and (notice := abandoned_batches_notice(db, audit.id)):
        progress.on_notice(notice)
    recorded_verdicts = replay.load_recorded_verdicts(config, survey)
    for notice in replay.describe_missing_verdicts(config, survey, recorded_verdicts):
        progress.on_notice(notice)
    stop_event, recorder = threading.Event(), CallRecorder(db, audit.id, run_id=uuid.uuid4().hex)
    consistency = (
        BackgroundConsistency(load_encoder, config.embedding.model, db, audit.id, stop_event)
        if load_encoder is not None
        else None
    )
    encoder_loaders = probe_encoder_loaders(config)
    loaders = [*([] if load_encoder is None else [load_encoder]), *encoder_loaders.values()]
    async with AsyncExitStack() as resources:
        if consistency is not None:
            resources.push_async_callback(consistency.close)
        path = await resources.enter_async_context(
            open_request_path(
                config,
                survey,
                recorder,
                stop_event,
                progress.on_notice,
                rediscover=options.rediscover,
                encoder_loaders=loaders,
            )
        )
        context = RunContext(
            config=config,
            survey=survey,
            audit_id=audit.id,
            cells=list(survey.asked_cells),
            db=db,
            client=path.client,
            consistency=consistency,
            encoder_loaders=encoder_loaders,
            progress=progress,
            stop_event=stop_event,
            run_id=recorder.run_id,
            capabilities=path.capabilities,
            preflight=options.preflight,
            recorded_verdicts=recorded_verdicts,
            repeated=frozenset(repeated),
        )
        yield context
        for notice in context.ignored_keys.notices():
            progress.on_notice(notice)


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
