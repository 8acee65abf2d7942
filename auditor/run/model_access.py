"""Send calls to an audit's models, for a run and for every later command that needs more answers."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from auditor import bootstrap
from auditor.config import AuditConfig
from auditor.config.sections import DEFAULT_DEADLINE_S
from auditor.config.trust import required_bindings
from auditor.domain import Outcome, Survey
from auditor.errors import RunInterrupted
from auditor.run.api_keys import list_secret_variables, remember_secrets, short_secrets_warning
from auditor.run.batches.waiting_calls import abandoned_batches_notice
from auditor.run.capability_store import DiscoveryOptions
from auditor.run.encoders import probe_encoder_loaders
from auditor.run.engines import require_engine
from auditor.run.request_path import open_request_path
from auditor.run.signals import stop_on_signals
from auditor.run.simulation import bind_simulated_models
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.outages import MIN_OUTAGE_WAIT_S

if TYPE_CHECKING:
    from auditor.agents.run_context import ProgressReporter, RunContext, TextEncoder

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
        from auditor.models.instructor_client import load_instructor  # loads pydantic's models

        load_instructor()


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
    from auditor.agents.run_context import SilentProgress  # loads numpy (0.1 s)

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
    from auditor.agents.background_consistency import BackgroundConsistency, load_stored_evidence
    from auditor.agents.recording import CallRecorder
    from auditor.agents.run_context import RunContext
    from auditor.run.replay import describe_missing_verdicts, load_recorded_verdicts  # survey readers: 0.1 s

    if config.batch is None and (notice := abandoned_batches_notice(db, audit.id)):
        progress.on_notice(notice)
    recorded_verdicts = load_recorded_verdicts(config, survey)
    for notice in describe_missing_verdicts(config, survey, recorded_verdicts):
        progress.on_notice(notice)
    stop_event, recorder = threading.Event(), CallRecorder(db, audit.id, run_id=uuid.uuid4().hex)
    consistency = (
        BackgroundConsistency(
            load_encoder, config.embedding.model, functools.partial(load_stored_evidence, db, audit.id), stop_event
        )
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
